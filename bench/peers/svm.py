"""What support vector machines that learned from made rows get wrong on held-out ones, in their own environment.

    python svm.py TABLES.npz ROWS

Arrays: `held`, `kinds` (JSON), and any number of tables; of each so many rows are learned from, and a mistake counts as
much as all of them together would make it count: C = 1 for all rows, more for fewer. Keys become columns of
0 and 1, classes of numbers their middle in [0, 1]. Prints JSON: by table and task the share that is wrong.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import SVC  # type: ignore[import-not-found]


def features(table: np.ndarray, kinds: dict[str, Any], left_out: int) -> Any:
    """All columns but the one that is told."""
    found = []
    for at, (size, number) in enumerate(zip(kinds["sizes"], kinds["numbers"], strict=True)):
        if at == left_out:
            continue
        column = table[:, at]
        found.append(
            sparse.csr_matrix(((column + 0.5) / size)[:, None])
            if number
            else sparse.csr_matrix((np.ones(len(column)), (np.arange(len(column)), column)), (len(column), size))
        )
    return sparse.hstack(found).tocsr()


def main() -> None:
    """Prints what is wrong."""
    tables, rows = np.load(sys.argv[1]), int(sys.argv[2])
    kinds: dict[str, Any] = json.loads(str(tables["kinds"]))
    held = tables["held"]
    order = np.random.default_rng(0)
    found: dict[str, dict[str, float]] = {}
    for name in tables.files:
        if name in {"held", "kinds"}:
            continue
        table = tables[name]
        weight = max(1.0, len(table) / rows)
        table = table[order.permutation(len(table))[:rows]]
        for task, (column, codes) in kinds["tasks"].items():
            wanted, there = np.isin(table[:, column], codes), np.isin(held[:, column], codes)
            if wanted.all() or not wanted.any():
                said = np.full(len(held), bool(wanted[0]))
            else:
                machine = SVC(kernel="rbf", C=weight, gamma="auto", cache_size=500)
                said = machine.fit(features(table, kinds, column), wanted).predict(features(held, kinds, column))
            found.setdefault(name, {})[task] = float(np.mean(said != there))
            print(name, task, found[name][task], file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()

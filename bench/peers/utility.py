"""AUC of gradient boosting trained on synthetic rows and tested on held-out ones, in its own environment.

    python utility.py TABLES.npz

Arrays: `held`, and any number of others; the last column is predicted. Prints JSON, by name.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier  # type: ignore[import-not-found]
from sklearn.metrics import roc_auc_score  # type: ignore[import-not-found]

if __name__ == "__main__":
    tables = np.load(sys.argv[1])
    held, found = tables["held"], {}
    for name in tables.files:
        if name == "held":
            continue
        table = tables[name]
        if len(set(table[:, -1])) < 2:  # one class alone cannot be learned
            found[name] = 0.5
            continue
        model = HistGradientBoostingClassifier(random_state=0).fit(table[:, :-1], table[:, -1])
        found[name] = float(roc_auc_score(held[:, -1], model.predict_proba(held[:, :-1])[:, 1]))
    print(json.dumps(found))

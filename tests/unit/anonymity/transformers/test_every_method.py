"""What every method promises, on many small tables and policies."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.anonymity.tables import Case, random_case, satisfied, write_files

from dalenius.anonymity.losses import losses
from dalenius.anonymity.models import KAnonymity, Presence
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.run import METHODS, Publication, anonymize
from dalenius.anonymity.table import Table, read_table, write_table
from dalenius.errors import InputError

EXAMPLES = 2000 if os.environ.get("DALENIUS_LONG") == "1" else 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("hierarchies")
    write_files(found)
    return found


def rows_of(table: Table, names: tuple[str, ...]) -> list[tuple[str | None, ...]]:
    return list(zip(*(table[name].cells() for name in names), strict=True))


def keeps_what_it_promises(case: Case, found: Publication, file: Path) -> None:
    table, roles, quasi = case.table, case.roles, case.roles.quasi
    # what is judged is what a reader has: the file
    write_table(found.table, file)
    found = replace(found, table=read_table(file))
    assert found.table.names == table.names and found.table.rows == table.rows
    assert set(found.table["name"].cells()) == {"*"}
    assert found.table["s"].cells() == table["s"].cells() and found.table["n"].cells() == table["n"].cells()
    # every cell is a label of its value, verbatim; or the whole row is suppressed
    shown = rows_of(found.table, quasi)
    hidden = {row for row, cells in enumerate(shown) if set(cells) == {"*"}}
    for name in quasi:
        hierarchy = roles.hierarchy(table, name)
        places = {value: code for code, value in enumerate(table[name].values)}
        pairs = zip(table[name].cells(), found.table[name].cells(), strict=True)
        for row, (value, label) in enumerate(pairs):
            own = [labels[to[places[value]]] for labels, to in zip(hierarchy.labels, hierarchy.maps, strict=True)]
            assert label in own or row in hidden
    assert found.suppressed <= case.suppress * table.rows + 1e-9
    # that all rows read `*` is what the highest labels say, where there are any
    starred = all(roles.hierarchy(table, name).labels[-1] == ("*",) for name in quasi)
    told = len(hidden) if len(hidden) < table.rows or not starred else 0
    assert found.suppressed + found.generalised == told
    assert not found.generalised or found.method not in {"optimal", "greedy"}
    # every class keeps every model, by an independent judge
    classes = defaultdict[tuple[str | None, ...], list[int]](list)
    for row, cells in enumerate(shown):
        classes[cells].append(row)
    assert all(satisfied(case, each) for each in classes.values())
    assert found.classes == len(classes) and all(each.met for each in found.models)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=EXAMPLES)
@given(seed=st.integers(0, 2**32 - 1), loss=st.sampled_from(["ncp", "entropy", "discernibility", "class-size"]))
def test_what_is_asked_is_kept(method: str, folder: Path, seed: int, loss: str):
    rng = np.random.default_rng(seed)
    case = random_case(rng, folder)
    asked: dict[str, Any] = {"suppress": case.suppress, "method": method, "loss": loss}
    rooted = all(case.roles.hierarchy(case.table, name).rooted for name in case.roles.quasi)
    possible = satisfied(case, range(case.table.rows))
    if rooted and not possible:  # not even all rows together
        with pytest.raises(InputError):
            anonymize(case.table, case.roles, case.models, **asked)
        return
    try:
        found = anonymize(case.table, case.roles, case.models, **asked, keep_order=True)
    except InputError:
        assert not rooted
        return
    keeps_what_it_promises(case, found, folder / ("out.csv" if seed % 2 else "out.parquet"))
    # the same rows in another order are published alike; rows that models cannot tell apart may change places
    order = rng.permutation(case.table.rows)
    again = anonymize(case.table.take(order), case.roles, case.models, **asked)
    names = (*case.roles.quasi, *sorted({each.column for each in found.models if each.column is not None}))
    assert Counter(rows_of(again.table, names)) == Counter(rows_of(found.table, names))
    # and leave in an order that says nothing
    assert rows_of(again.table, case.table.names) == rows_of(again.table.sorted(), case.table.names)


@pytest.mark.parametrize("method", ["mondrian", "mondrian-relaxed", "local"])
def test_finer_methods_lose_less_than_one_recoding_for_all(method: str, folder: Path):
    rng = np.random.default_rng(5)
    many = 3000
    table = Table.of(
        {
            "age": [str(each) for each in rng.integers(18, 90, many)],
            "letter": list(rng.choice(list("abcdef"), many, p=[0.5, 0.2, 0.1, 0.1, 0.05, 0.05])),
            "sex": list(rng.choice(["f", "m"], many)),
        }
    )
    written = {
        "quasi": ["age", "letter", "sex"],
        "hierarchies": {"age": {"width": 5, "levels": 4}, "letter": "tree.csv"},
    }
    roles = Roles.from_dict(written, folder)
    best = anonymize(table, roles, [KAnonymity(10)])
    found = anonymize(table, roles, [KAnonymity(10)], method=method)
    assert found.loss.ncp < best.loss.ncp / 2
    kept = anonymize(table, roles, [KAnonymity(10)], method=method, keep_order=True)
    assert losses(table, kept.table, roles) == found.loss


def test_presence_needs_one_recoding_for_all(folder: Path):
    case = random_case(np.random.default_rng(0), folder)
    for method in ("mondrian", "local"):
        with pytest.raises(InputError, match="presence"):
            anonymize(case.table, case.roles, [Presence(0, 1, case.table)], method=method)

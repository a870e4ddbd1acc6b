"""Odd tables through the command line: answers or refusals for people and for scripts, never a traceback."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

ALL = (
    "COUNT(*), COUNT(weight), COUNT(DISTINCT user_id), COUNT(DISTINCT age), SUM(amount), AVG(age), VAR_SAMP(amount), "
    "STDDEV_POP(age), CORR(age, amount), COVAR_SAMP(age, amount), MEDIAN(age), QUANTILE_CONT(amount, 0.9), MIN(age), "
    "MAX(amount)"
)
QUESTIONS = (
    f"SELECT {ALL} FROM visits",
    f"SELECT region, {ALL} FROM visits GROUP BY region",
    f"SELECT weight, {ALL} FROM visits GROUP BY weight",
)


def lay(shop, table, *, declared=True):
    pq.write_table(table, shop.folder / "visits.parquet")
    policy = shop.policy if declared else shop.policy[: shop.policy.index("[contribution]")]
    (shop.folder / "visits.toml").write_text(policy.replace("epsilon = 3.0", "epsilon = 30.0").replace("1.0", "30.0"))
    assert shop.call("protect", "visits.toml", "--quiet")[0] == 0


def one_unit(rows):
    values = {"age": [40] * rows, "region": ["north"] * rows, "amount": [9e9] * rows, "weight": [70.0] * rows}
    when = pa.array([None] * rows, pa.date32())
    return pa.table({"user_id": ["u"] * rows, **values, "when": when})


def no_rows():
    return one_unit(1).slice(0, 0)


def all_null():
    table = one_unit(500)
    units = pa.array([str(at) for at in range(500)])
    return pa.table(
        {name: units if name == "user_id" else pa.nulls(500, table[name].type) for name in table.schema.names}
    )


@pytest.mark.parametrize(
    ("table", "declared", "only"),
    [
        (no_rows(), True, (0,)),
        (no_rows(), False, (2,)),
        (one_unit(10_000), True, (1,)),
        (one_unit(1), False, (0,)),
        (all_null(), False, (2,)),
    ],
    ids=["no rows", "no rows, limits found", "one unit", "one row, limits found", "all NULL, limits found"],
)
def test_every_aggregate_answers_in_json_and_in_words(empty_shop, table, declared, only):
    """In the short form not every table with every question: in process they are (`tests/unit/queries`)."""
    shop = empty_shop
    lay(shop, table, declared=declared)
    for question in QUESTIONS if LONG else [QUESTIONS[at] for at in only]:
        before = shop.spent()
        code, preview = shop.json("preview", question, "--epsilon", 0.5)
        assert code == 0 and len(preview["columns"]) >= 14
        assert shop.call("preview", question, "--plan")[0] == 0
        assert shop.spent() == before
        code, found = shop.json("ask", question, "--epsilon", 0.5)
        assert code == 0 and found["charge"]["epsilon"] == 0.5
        for row, intervals in zip(found["rows"], found["interval"], strict=True):
            for key, value, interval in zip(found["keys"], row, intervals, strict=True):
                assert key or (value is None or math.isfinite(value))
                assert key or (interval is not None and interval[0] <= interval[1])
        code, out, err = shop.call("ask", question, "--epsilon", 0.5)  # again: free
        assert code == 0 and "free: asked before" in " ".join(out.split()) and "Traceback" not in out + err


def test_no_key_is_found_where_there_is_nobody_and_that_is_said(empty_shop):
    lay(empty_shop, no_rows())
    code, out, _ = empty_shop.call("ask", "SELECT weight, COUNT(*) FROM visits GROUP BY weight", "--epsilon", 0.5)
    assert code == 0 and "No key was found" in " ".join(out.split())

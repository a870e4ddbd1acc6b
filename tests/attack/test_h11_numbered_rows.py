"""H11: a row's number within its unit follows from that unit's rows alone.

Stronger than the fuzzer's claim on sensitivity: what a data set holds is what it holds without one unit, and what that
unit holds by itself, to the last integer; and the order of rows in the file is nobody's business. The unit has 500
rows that tie in almost everything.
"""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from tests.shop import Shop, data

from dalenius.errors import DaleniusError

QUESTIONS = 14
VICTIM = 1
_ORDERS = ("day", "day DESC", "amount NULLS FIRST", "amount DESC", "status, note", "UPPER(note), amount * 0", "region")
_ENDS = (
    *("k = 1", "k <= 2", "k IN (2, 3)", "k > 1", "k <= 1 OR amount > 3", "NOT (k > 2)", "k % 2 = 0"),
    *("CASE WHEN k < 3 THEN status = 'open' ELSE amount > 20 END", "k = 1 AND status = 'open'"),
)
_ASKED = ("COUNT(*)", "SUM(amount)", "SUM(k)", "COUNT(*) FILTER (WHERE k <= 2)", "SUM(CASE WHEN k = 1 THEN amount END)")


def tables(kept: str, seed: int = 0) -> dict[str, pa.Table]:
    """All rows, those without the victim's, or the victim's alone; in an order of their own."""
    chance, made = random.Random(1), data()
    orders = made["orders"].to_pylist()
    days = [each["day"] for each in orders[:2]]
    orders += [
        {
            "order_id": 1000 + at,
            "user_id": VICTIM if at < 500 else chance.randint(2, 9),
            "amount": chance.choice((0.0, -0.0, 5.0, None, float("nan"), 1e9)),
            "status": chance.choice(("open", "done", None)),
            "region": "n",
            "day": chance.choice((*days, None)),
            "note": chance.choice(("a", "A", None)),
        }
        for at in range(600)
    ]
    found = {"people": made["people"].to_pylist(), "orders": orders}
    if kept != "all":
        found = {
            name: [row for row in rows if (row["user_id"] == VICTIM) == (kept == "alone")]
            for name, rows in found.items()
        }
    for rows in found.values():
        random.Random(seed).shuffle(rows)
    return {**made, **{name: pa.Table.from_pylist(rows, made[name].schema) for name, rows in found.items()}}


@pytest.fixture(scope="module")
def shops(tmp_path_factory: pytest.TempPathFactory) -> list[Shop]:
    folder: Path = tmp_path_factory.mktemp("numbered")
    made = {"all": tables("all"), "without": tables("without"), "alone": tables("alone"), "again": tables("all", 1)}
    return [Shop.protected(folder / name, each, rows=20) for name, each in made.items()]


def question(chance: random.Random) -> str:
    by, order = chance.choice(("user_id", "user_id", "user_id, status", "user_id, note")), chance.choice(_ORDERS)
    number = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {order})"
    shown = chance.choice(("*", "user_id, amount, status", "user_id, amount, status, region"))
    rows = f"(SELECT {shown}, {number} AS k FROM orders)"
    asked, end = chance.choice(_ASKED), chance.choice(_ENDS)
    match chance.randrange(6):
        case 0:
            return f"SELECT SUM(amount) FROM (SELECT DISTINCT ON ({by}) {shown} FROM orders ORDER BY {by}, {order}) t"
        case 1:
            return f"SELECT SUM(amount) FROM (SELECT {shown} FROM orders QUALIFY {number} <= 3) t"
        case 2:
            return f"SELECT {asked} FROM people p LEFT JOIN {rows} t ON t.user_id = p.user_id AND t.k <= 2"
        case 3:
            return (
                f"SELECT {asked.replace('amount', 't.amount')} FROM {rows} t JOIN people p USING (user_id) WHERE k = 1"
            )
        case 4:
            return f"SELECT t.status, COUNT(*) FROM {rows} t JOIN orders o USING (user_id) WHERE t.k <= 2 GROUP BY 1"
    return f"SELECT {asked} FROM {rows} t WHERE {end}"


def test_what_all_hold_is_what_the_others_and_one_unit_hold(shops):
    chance, compared = random.Random(7), 0
    for _ in range(QUESTIONS):
        text = question(chance)
        try:
            whole, without, alone, again = (each.exact(text) for each in shops)
        except DaleniusError:
            continue
        added = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(without, alone, strict=True)]
        assert (whole, whole) == (again, added), text
        compared += 1
    assert compared > QUESTIONS / 2

"""H2: the doubles that can be released are the same on neighbours, since they are made of noisy integers alone.

What the ledger keeps are noisy integers and the laws of their noise. Every number that an analyst sees (averages,
variances, errors, intervals, arithmetic) is a function of those and of the plan. So equal integers give equal doubles,
bit for bit, whatever the rows held; and the integers reach everything on both sides (H1).
"""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction
from functools import cache

import pyarrow as pa
import pytest
from tests.attack.curators import neighbours
from tests.attack.curators import plan_of as planned
from tests.conftest import LONG

from dalenius import Curator
from dalenius.measuring.plan import Plan
from dalenius.queries.answering import Answer, measure_plan
from dalenius.queries.rules.price import price_plan

STEP = Fraction(1, 100)
COLUMNS = """
[columns.x]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.g]
type = "category"
keys = ["a", "b", "c"]
"""
SUMS = ["SELECT SUM(x) FROM t", "SELECT g, SUM(x) FROM t GROUP BY g", "SELECT SUM(x) FROM t WHERE x > 0.1 + 0.2"]
QUESTIONS = [
    *SUMS,
    "SELECT COUNT(*), COUNT(x), COUNT(DISTINCT id) FROM t",
    "SELECT AVG(x) FROM t",
    "SELECT COUNT(DISTINCT x), COVAR_POP(x, x * x), CORR(x, -x) FROM t",
    "SELECT FLOOR(x / 100) * 100 AS b, COUNT(DISTINCT g) FROM t GROUP BY b",
    "SELECT VAR_POP(x), VAR_SAMP(x), STDDEV_POP(x), STDDEV(x) FROM t",
    "SELECT g, AVG(x), SUM(x) / COUNT(*) AS r FROM t GROUP BY g HAVING COUNT(*) > -1e9 ORDER BY r",
    "SELECT ROUND(100.0 * COUNT_IF(x > 7) / COUNT(*), 3), SQRT(SUM(x)), LN(SUM(x * x)) FROM t",
]


@pytest.fixture(scope="module", params=["zcdp", "pure"])
def pair(request, tmp_path_factory):
    """The victim's values are those that sums in floating point stumble over."""
    table = pa.table({"id": list(range(400)), "x": [0.1 * at for at in range(400)], "g": ["a", "b"] * 200})
    victim = pa.table({"id": [999] * 3, "x": [1e-9, 4999.999999999999, math.pi], "g": ["c", "a", "b"]})
    return neighbours(tmp_path_factory.mktemp("h2"), table, victim, COLUMNS, accounting=request.param)


@cache
def plan_of(curator: Curator, question: str) -> Plan:
    """Each side's own, made once."""
    return planned(curator, question)


def contents(curator: Curator, question: str, times: int) -> list[bytes]:
    (version,) = curator.tables()
    plan, engine = plan_of(curator, question), curator.engines.of(version.fingerprint)
    return [measure_plan(plan, price_plan(plan, 0.5), engine, "salt", 60.0) for _ in range(times)]


def shown(curator: Curator, question: str, content: bytes) -> str:
    """Everything of the answer, each double to its last bit."""
    return repr(Answer.read(plan_of(curator, question), content, 0.95).table())


def stored(curator: Curator) -> list[bytes]:
    with curator.ledger.database.reading() as connection:
        rows = connection.execute("SELECT content FROM releases ORDER BY question").fetchall()
    return [bytes(row[0]) for row in rows]


@pytest.mark.parametrize("question", QUESTIONS)
def test_equal_noisy_integers_give_equal_doubles_on_both_sides(pair, question):
    for curator in pair:
        for content in contents(curator, question, 3 if LONG else 1):
            assert shown(pair[0], question, content) == shown(pair[1], question, content)


@pytest.mark.parametrize("question", QUESTIONS)
def test_only_whole_numbers_and_public_laws_are_kept(pair, question):
    without, with_ = (json.loads(contents(each, question, 1)[0]) for each in pair)
    for content in (without, with_):
        found = content.pop("limits", [])  # chosen from noisy counts: they, and the noise made for them, may differ
        assert all(set(each) == {"measure", "clip", "beyond", "hidden"} for each in found)
        assert set(content) == {"format", "epsilon", "delta", "rho", "measures"}
        assert all(re.fullmatch(r"-?\d+", value) for part in content["measures"] for value in part.pop("values"))
        for each in found:
            assert set(content["measures"][each["measure"]].pop("law")) < {"gaussian", "laplace"}
    assert without == with_


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_released_is_computed_from_what_is_kept(pair, question):
    for curator in pair:
        release = curator.analyst("bob").ask(question, epsilon=0.3, fresh=True)  # by itself: others ask the like
        again = Answer.read(plan_of(curator, question), stored(curator)[-1], 0.95).table()
        assert repr((again.rows, again.noise_error, again.interval)) == repr(
            (release.rows, release.noise_error, release.interval)
        )


def off_the_lattice(value: float) -> bool:
    return float(round(Fraction(value) / STEP) * STEP) != value


@pytest.mark.parametrize("question", SUMS)
def test_sums_are_the_doubles_nearest_to_whole_numbers_of_steps(pair, question):
    for curator in pair:
        for content in contents(curator, question, 20 if LONG else 5):
            rows = Answer.read(plan_of(curator, question), content, 0.95).table().rows
            assert not [row[-1] for row in rows if off_the_lattice(row[-1])]


def test_a_sum_of_doubles_is_noticed(pair):
    """A release that adds the noise to SUM(x) in floating point."""
    (version,) = pair[1].tables()
    engine = pair[1].engines.of(version.fingerprint)
    [(summed,)] = engine.run(f"SELECT sum(x) FROM {engine.scan}")
    assert off_the_lattice(summed + 12.34)

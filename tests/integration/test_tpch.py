"""TPC-H: each of the 22 queries has the outcome that it must have, and what is answered is right.

Here limits are declared wide enough that nobody's rows are clipped, and ε is huge. So an answer is the truth and noise
of the size that the release says, and the two can be told apart: `bench/tpch.py` measures what ε = 1 costs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.shop.questions import ABOUT_ONE, ABOUT_OTHERS, ANSWERED, KEYS, LIMITED, OUTCOMES, PUBLIC, QUESTIONS
from bench.shop.tables import TABLES, Shop, shop

from dalenius import Curator
from dalenius.analyst import Analyst
from dalenius.errors import DaleniusError

pytestmark = pytest.mark.integration

EPSILON = 1e11
# A release says 1.96 σ of each number; 4 times that is 7.8 σ, which Gaussian noise exceeds with chance 5e-15. There are
# fewer than 1,000 numbers here, so a false alarm has a chance below 1e-11.
TIMES = 4
ROUNDED = 2e-5  # of a number: prices are added up in steps of 0.1
UNTOLD = 1e-3  # of a number: more than the noise of any of these revenues at this ε
LIMITS = {"orders": "[contribution]\nrows = 64\n", "lineitem": "[contribution]\nrows = 300\n"}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Scale 0.01: 1,500 customers, 15,000 orders, 60,000 items."""
    found = shop(tmp_path_factory.mktemp("tpch"), 0.01)
    for policy in found.policies:
        text = policy.read_text().replace("epsilon = 1000", "epsilon = 1e14")
        policy.write_text(f"{text}\n{LIMITS.get(policy.stem, '')}")
    return found


@pytest.fixture(scope="session")
def analyst(made: Shop, tmp_path_factory: pytest.TempPathFactory) -> Analyst:
    curator = Curator(home=tmp_path_factory.mktemp("home") / ".dalenius")
    curator.protect(*made.policies, yes=True)
    return curator.analyst("ana")


@pytest.fixture(scope="session")
def raw(made: Shop) -> duckdb.DuckDBPyConnection:
    found = duckdb.connect()
    for name in TABLES:
        found.read_parquet(str(made.data(name))).create_view(name)
    return found


def refusal(analyst: Analyst, query: int) -> DaleniusError:
    with pytest.raises(DaleniusError) as caught:
        analyst.ask(QUESTIONS[query], epsilon=EPSILON)
    return caught.value


def line(error: DaleniusError, query: int) -> str:
    """The line that a refusal points at."""
    assert error.at is not None
    return QUESTIONS[query].splitlines()[error.at.line - 1].strip()


def test_every_query_has_an_outcome():
    assert sorted(QUESTIONS) == sorted(OUTCOMES) == list(range(1, 23))


@pytest.mark.parametrize("query", ANSWERED)
def test_an_answer_is_the_truth_and_noise(query, analyst, raw):
    keys = KEYS[query]
    text = QUESTIONS[query].replace(f"limit {LIMITED[query]}", "") if query in LIMITED else QUESTIONS[query]
    truth = {tuple(map(str, row[:keys])): row[keys:] for row in raw.execute(text).fetchall()}
    release = analyst.ask(QUESTIONS[query], epsilon=EPSILON)
    held = {
        tuple(map(str, row[:keys])): list(zip(row[keys:], errors[keys:], strict=True))
        for row, errors in zip(release.rows, release.noise_error, strict=True)
    }
    assert query in LIMITED or set(truth) <= set(held)
    compared = 0
    for key, cells in held.items():
        for (value, error), true in zip(cells, truth.get(key, [0] * len(cells)), strict=True):
            if value is None or key not in truth:  # an average of nothing, or a group without rows
                continue
            assert (error is None) == (query == 15)  # which supplier is the best depends on the noise: no ± says how
            most = TIMES * error if error is not None else UNTOLD * abs(float(true))
            assert abs(float(value) - float(true)) <= most + ROUNDED * abs(float(true))
            compared += 1
    assert compared


@pytest.mark.parametrize(("query", "groups"), [(5, 5), (7, 4), (8, 2), (12, 2)])
def test_only_groups_that_can_have_rows_are_answered(query, groups, analyst):
    """By r_name = 'ASIA' five nations are left; by two names and two years four groups; and so on."""
    assert len(analyst.ask(QUESTIONS[query], epsilon=EPSILON).rows) == groups


@pytest.mark.parametrize("query", PUBLIC)
def test_what_is_public_is_exact_and_free(query, analyst, raw):
    before = analyst.budget()
    release = analyst.ask(QUESTIONS[query])
    assert [tuple(row) for row in release.rows] == raw.execute(QUESTIONS[query]).fetchall()
    assert analyst.budget() == before


@pytest.mark.parametrize("query", ABOUT_ONE)
def test_rows_about_one_customer_are_refused(query, analyst):
    error = refusal(analyst, query)
    assert error.code == "sql.refused"
    key = {3: "lineitem.l_orderkey", 10: "customer.c_custkey", 18: "customer.c_custkey"}[query]
    assert error.message == f"GROUP BY {key!r} would make groups about one c_custkey each."
    assert "answers are about many" in error.why and "many share" in error.fix
    assert line(error, query) in {"l_orderkey,", "c_custkey,", "c_name,"}


@pytest.mark.parametrize("query", ABOUT_OTHERS)
def test_what_depends_on_other_customers_rows_is_refused(query, analyst):
    error = refusal(analyst, query)
    assert error.code == "sql.refused"
    # an average or a sum over everybody's items or accounts
    assert error.message == f"A {'scalar' if query == 22 else 'correlated'} subquery is not supported."
    assert error.why and error.fix
    assert line(error, query).startswith(("0.2 * avg(l_quantity)", "0.5 * sum(l_quantity)", "avg(c_acctbal)"))


def test_what_is_refused_costs_nothing(analyst):
    before = analyst.budget()
    for query in (*ABOUT_ONE, *ABOUT_OTHERS):
        assert refusal(analyst, query).charge.epsilon == 0
    assert analyst.budget() == before

"""An owner's audit of a question: on the real table, for nothing, and without a word about anybody."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import LONG

from dalenius import Curator
from dalenius.app.cli import build, run
from dalenius.audit.lower_bounds import bounding
from dalenius.audit.questions import auditing, sampling
from dalenius.audit.questions.auditing import audit_question
from dalenius.audit.questions.neighbours import Place, WithoutUnit
from dalenius.errors import InputError, NotAllowedError, SourceChangedError
from dalenius.mechanisms.discrete_gaussian import widened
from dalenius.queries.answering import measure_plan
from dalenius.queries.ask import Ask
from dalenius.queries.rules import price

VICTIM = "zed the famous"
COUNT = "SELECT COUNT(*) AS n FROM visits"
FEWEST = 200  # what is looked at here does not depend on how many there are
SAMPLES = 20_000 if LONG else FEWEST
POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
{neighbors}
[budget]
epsilon = 30.0
delta = 1e-6
{period}
[analysts.ana]
epsilon = 10.0
[columns.amount]
type = "integer"
bounds = [0, 100]
[columns.city]
type = "text"
[columns.day]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[contribution]
rows = 5
groups = 3
"""


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(bounding, "FEWEST", FEWEST)


@pytest.fixture
def home(tmp_path):
    return protected(tmp_path)


def protected(folder, neighbors="", period=""):
    people = [VICTIM] * 40 + [f"p{at % 30}" for at in range(120)]
    days = pa.array([date(2025, 3, 1)] * 160)
    table = {"person": people, "amount": [at % 90 for at in range(160)], "city": ["a", "b", None, "c"] * 40}
    pq.write_table(pa.table({**table, "day": days}), folder / "visits.parquet")
    (folder / "policy.toml").write_text(POLICY.format(neighbors=neighbors, period=period))
    curator = Curator(folder / "home")
    curator.protect(folder / "policy.toml")
    return curator


def spent(curator):
    return curator.ledger.balance("visits", "").remaining_epsilon


@pytest.mark.parametrize(
    "question",
    [COUNT, "SELECT city, COUNT(*) FROM visits GROUP BY city"]
    + (["SELECT SUM(amount), AVG(amount) FROM visits", "SELECT MEDIAN(amount) FROM visits"] if LONG else []),
)
def test_a_question_stays_within_its_claim_and_costs_nothing(home, question):
    before = spent(home)
    found = audit_question(home, Ask(question, 3.0), samples=SAMPLES, confidence=1 - 1e-6)
    assert not found.bound.broken and spent(home) == before
    notes = [each.data for each in home.ledger.records(("note",))]
    assert [set(each) for each in notes] == [{"audit", "by", "samples", "tables"}]
    assert not list(home.ledger.records(("charge", "answer")))


def test_too_little_noise_is_seen_on_the_real_table(home, monkeypatch):
    monkeypatch.setattr(price, "widened", lambda value: widened(value / 60))
    found = audit_question(home, Ask(COUNT, 1.0), samples=3 * FEWEST)
    assert found.bound.broken
    assert set(found.to_dict()) == {
        *("tables", "claim", "claimed", "epsilon", "delta", "confidence", "samples", "broken"),
    }


def test_every_sample_goes_the_way_of_a_real_release(home, monkeypatch):
    runs = []

    def counted(*parts):
        runs.append(1)
        return measure_plan(*parts)

    monkeypatch.setattr(sampling, "measure_plan", counted)
    audit_question(home, Ask(COUNT, 1.0), samples=FEWEST)
    assert len(runs) == 2 * FEWEST


def test_the_note_is_on_disk_before_anything_is_read(home, monkeypatch):
    def stop(*_parts):
        raise ZeroDivisionError

    monkeypatch.setattr(auditing, "_pairs", stop)
    with pytest.raises(ZeroDivisionError):
        audit_question(home, Ask(COUNT, 1.0), samples=FEWEST)
    assert [each.data["audit"] for each in home.ledger.records(("note",))] == ["question"]


def engine_of(curator):
    from dalenius.ledger.requests import OWNER
    from dalenius.queries.planning import OpenTables, plan_ask
    from dalenius.releasing.leaving import Asker

    owner = Asker(OWNER, curator.ledger, curator.registry, curator.engines)
    planned = plan_ask(owner, Ask(COUNT, 1.0), among=OpenTables.of_owner(owner))
    return planned.plan, planned.snapshot.engine(curator.engines)


def test_a_neighbour_lacks_all_rows_of_one_unit_and_no_others(home):
    plan, engine = engine_of(home)

    def people(heavy, at):
        left = WithoutUnit(engine, plan.table, Place(heavy, at), "salt")
        return left.scan, dict(left.run(f"SELECT person, count(*) FROM {left.scan} GROUP BY 1"))

    scan, heaviest = people(True, 0)
    assert VICTIM not in heaviest and VICTIM not in scan and sum(heaviest.values()) == 120
    others = [people(False, at)[1] for at in range(31)]
    assert {each for one in others for each in ({VICTIM, *(f"p{at}" for at in range(30))} - one.keys())} == {
        VICTIM,
        *(f"p{at}" for at in range(30)),
    }
    assert sum(people(True, 500)[1].values()) == 160  # nobody has that place


def test_units_are_exchanged_where_the_policy_says_so(tmp_path):
    curator = protected(tmp_path, neighbors='neighbors = "substitute"')
    plan, engine = engine_of(curator)
    for pair in auditing._pairs(plan, engine, "salt")[:4]:
        sides: list[Any] = list(pair)
        counts = [each.run(f"SELECT count(DISTINCT person) FROM {each.scan}") for each in sides]
        assert counts[0] == counts[1] == [(30,)]


def test_what_has_no_simple_neighbour_is_refused_before_anything_is_read(tmp_path):
    curator = protected(tmp_path, period='period = { column = "day", every = "month" }')
    with pytest.raises(NotAllowedError):
        audit_question(curator, Ask(COUNT, 1.0), samples=FEWEST)
    assert not list(curator.ledger.records(("note",)))


def test_files_that_changed_are_refused(home):
    path = home.home.parent / "visits.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    with pytest.raises(SourceChangedError):
        audit_question(home, Ask(COUNT, 1.0), samples=FEWEST)


def test_too_few_samples_are_refused(home):
    with pytest.raises(InputError):
        audit_question(home, Ask(COUNT, 1.0), samples=3)


def test_the_terminal_says_claim_bound_and_samples_alone(home, capsys):
    words = ["audit", "question", COUNT, "--epsilon", "2", "--samples", str(FEWEST), "--home", str(home.home)]
    assert run(build(), words) == 0
    out = capsys.readouterr().out
    assert "claimed" in out and "shown" in out and "keep it to yourself" in out
    assert VICTIM not in out and "event found" not in out and "160" not in out
    assert run(build(), [*words, "--json"]) == 0
    assert "rates" not in json.loads(capsys.readouterr().out)


def test_no_server_has_a_way_to_it():
    from pathlib import Path

    import dalenius.app

    folder = Path(dalenius.app.__file__).parent
    named = [path for path in folder.rglob("*.py") if "audit.questions" in path.read_text()]
    assert [path.name for path in named] == ["audit_bounds.py"]

"""A home that an earlier dalenius wrote: its stored answers are still the answers, and asking for them again is free.

`tests/data/home_written_before.tar.gz` was written before this package had releases of several kinds (commit faada58):
two tables and a public one, limits found, and ten questions of every kind of statistic, one of them served from
another analyst's. Its ledger says where its files lay, so it is unpacked there. Its keys protect made-up rows only.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from dalenius.curator import Curator
from dalenius.ledger.verification import verify

DATA = Path(__file__).parents[2] / "data" / "home_written_before.tar.gz"
PLACE = Path("/tmp/dalenius-home-written-before")  # as its ledger has it


@pytest.fixture(scope="module")
def before():
    """What was asked and answered then."""
    with PLACE.with_suffix(".lock").open("w") as lock:  # another run of the tests may be at it
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        with tarfile.open(DATA) as packed:
            packed.extractall(PLACE, filter="data")
        yield json.loads((PLACE / "answers.json").read_text())
        shutil.rmtree(PLACE)


def numbers_in(note: str) -> Counter[str]:
    return Counter(re.findall(r"\d+(?:[.,]\d+)*", note))


def test_stored_answers_stay_valid_and_free(before):
    curator = Curator(PLACE / "home")
    spent = curator.ledger.entries
    charges = sum(each.kind == "charge" for each in spent())
    for each in before:
        found = json.loads(
            json.dumps(curator.analyst(each["analyst"]).ask(each["sql"], epsilon=each["epsilon"]).to_dict())
        )
        assert found["free"], each["sql"]
        for answer in (found, each["answer"]):
            for limit in answer.get("limits", ()):  # what was measured is told in the names that were typed by now
                limit["measure"] = re.sub(r'"visits\.(\w+)"', r"v.\1", limit["measure"])
        assert {name: found[name] for name in each["answer"] if name != "notes"} == {
            name: value for name, value in each["answer"].items() if name != "notes"
        }
        for note in each["answer"]["notes"]:  # in other words, and more, by now; but of the same numbers
            assert any(numbers_in(note) <= numbers_in(now) for now in found["notes"]), note
        assert found["receipt"] == each["receipt"]
    assert sum(each.kind == "charge" for each in spent()) == charges
    curator.ledger.database.close()


def test_it_verifies_and_lists_what_left(before):
    curator = Curator(PLACE / "home")
    verify(curator.ledger)
    kinds = [each.kind for each in curator.releases()]
    assert kinds.count("question") == len(before)
    assert kinds.count("limits") == 1
    curator.ledger.database.close()


def test_its_budgets_have_the_halves_of_delta_that_they_had(before):
    curator = Curator(PLACE / "home")
    for dataset in curator.ledger.datasets():
        budget = curator.ledger.budget(dataset)
        assert budget.selection == 0.5 and budget.conversion_delta == budget.delta / 2
        assert "selection" not in budget.to_dict()
    assert all("selection" not in each.text for each in curator.tables())
    curator.ledger.database.close()


def test_it_goes_on_charging(before):
    curator = Curator(PLACE / "home")
    sql = "SELECT COUNT(*) AS n FROM people WHERE region = 'north'"
    found = curator.analyst("ana").ask(sql, epsilon=0.1)
    assert not found.free
    assert all(each["sql"] != sql for each in before)
    verify(curator.ledger)
    curator.ledger.database.close()

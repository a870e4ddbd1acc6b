"""What earlier answers cost who asks later: no number of them, and no size, fills the memory or makes previews slow.

Eight answers of 59,049 groups each made a free preview take half a gigabyte more, and up to 64 were read.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.kept import laid
from tests.shop import Shop

from dalenius.analyst import Analyst
from dalenius.ledger import questions
from dalenius.measuring.expressions import Type
from dalenius.queries.ask import Ask
from dalenius.queries.known import sources, written
from dalenius.queries.own_answers import own_answers
from dalenius.queries.planning import plan_ask
from dalenius.queries.workloads import known as of_workloads

FINE = "SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY region, smoker"
COARSE = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"
OTHER = "SELECT COUNT(*) AS n FROM people WHERE age < {}"


@pytest.fixture
def ana(place: Path) -> Analyst:
    sources._READ.forked()
    curator = laid(place, "bounded known answers", lambda folder: Shop.protected(folder).curator)
    return curator.analyst("ana")


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """The charges whose stored bytes were read."""
    found: list[int] = []
    own = questions.release_of

    def release_of(ledger: Any, view: Any, question: Any) -> Any:
        found.append(question.number)
        return own(ledger, view, question)

    monkeypatch.setattr(questions, "release_of", release_of)
    return found


def looked(ana: Analyst) -> list[sources.OwnRelease]:
    """The releases that are looked through, newest first."""
    snapshot = plan_ask(ana._asker, Ask(COARSE)).snapshot
    return sources.own_sources(ana._asker, snapshot.dataset, snapshot.epoch)


def test_answers_are_read_one_after_another_until_it_is_too_much(ana, monkeypatch, reads):
    ana.ask(FINE, epsilon=2.0)
    for at in range(3):
        ana.ask(OTHER.format(20 + at), epsilon=0.1)
    found = looked(ana)
    assert len(found) == 4
    monkeypatch.setattr(sources, "_MOST_BYTES", found[0].size + found[1].size)
    sources._READ.forked()
    reads.clear()
    assert [each.charge for each in looked(ana)] == [each.charge for each in found[:2]]
    assert len(reads) == 3  # the one that is too much, and none of those before it
    assert not ana.ask(COARSE, epsilon=0.5).free


def test_what_is_too_large_is_not_read_at_all(ana, monkeypatch, reads):
    ana.ask(FINE, epsilon=2.0)
    monkeypatch.setattr(sources, "_LARGEST", 100)
    sources._READ.forked()
    reads.clear()
    assert looked(ana) == []
    assert reads == []


def test_one_large_answer_hides_no_other(ana, monkeypatch):
    ana.ask(COARSE, epsilon=2.0)
    ana.ask("SELECT region, age // 10 AS d, COUNT(*) AS n FROM people GROUP BY region, d", epsilon=0.1)
    monkeypatch.setattr(sources, "_MOST_GROUPS", 8)
    assert ana.ask("SELECT COUNT(*) AS n FROM people WHERE region = 'n'", epsilon=0.1).free


def test_groups_are_written_by_their_places():
    values = [f"a long key of a column, number {at:02}" for at in range(25)]
    cells = tuple(product(values, values, values))[:16384]
    data = json.loads(json.dumps(written.cells_to_json(cells)))
    assert written.cells_of_json(data, [Type.TEXT] * 3) == cells
    assert len(json.dumps(data)) < 2**18
    assert written.cells_of_json(json.loads(json.dumps(written.cells_to_json(((),)))), []) == ((),)


def test_what_is_kept_of_answers_weighs_what_they_take(ana):
    ana.ask(FINE, epsilon=2.0)
    sources._ANSWERS.forked()
    for at in range(40):  # who types ever new confidences
        ana.preview(COARSE, epsilon=0.5, confidence=0.9 + at / 1000)
    assert len(sources._ANSWERS) == 40
    assert sources._ANSWERS.weight >= 40 * sources._PER_GROUP * 8
    release = next(iter(sources._READ._held.values()))[0]
    assert sources._READ.weight >= release.size // sources._PER_VALUE


def test_workloads_are_read_once_to_see_which_questions_they_hold(ana, monkeypatch):
    asked = [OTHER.format(20), OTHER.format(40)]
    ana.ask_many(asked, epsilon=2.0)
    of_workloads._KEYS.forked()
    ana.preview("SELECT SUM(age) AS s FROM people WHERE region = 's'", epsilon=0.3)
    with monkeypatch.context() as patched:
        patched.setattr(of_workloads, "own_releases", None)  # whoever calls it fails
        ana.preview("SELECT SUM(age) AS s FROM people WHERE region = 'n'", epsilon=0.3)
    assert ana.ask(asked[0], epsilon=1.0).free


def test_of_many_answers_to_one_question_the_most_accurate_are_read(ana, monkeypatch):
    monkeypatch.setattr(questions, "_MOST_PRICES", 2)
    for at in range(4):
        ana.ask(COARSE, epsilon=0.1 + at / 100)
    found = plan_ask(ana._asker, Ask(COARSE))
    own = own_answers(ana._asker, found.plan, found.snapshot, 0.95)
    assert [round(each.epsilon, 2) for each in own] == [0.12, 0.13]

"""What is answered for nothing follows from what its asker has paid for, and from nothing else.

Chains of questions, workloads, refreshes, other policies and new people, without noise (`chains`): a free answer is the
truth of the data as they are now, nobody looked at the data for it, nothing was recorded, and who has paid for nothing
gets nothing. Each planted bug shows within a short run.
"""

from __future__ import annotations

import pytest
from tests.attack.chains import run_chains, without_noise

from dalenius.queries.known import deriving, following, sources, workloads
from dalenius.queries.workloads.attributes import Atoms

SEED = 27


def test_a_free_answer_follows_from_what_was_paid_for(tmp_path, monkeypatch, rounds):
    chains = rounds(2000) // (1 if rounds(20) == 20 else 4)  # 25 in the short form
    with without_noise(monkeypatch) as looks:
        seen = run_chains(tmp_path, chains, SEED, looks)
    assert not seen.wrong, seen.wrong
    assert seen.chains == chains
    assert seen.steps["free"] > 0.3 * chains  # not so few that nothing was tried
    assert seen.steps["paid"] > chains


def another_filter(monkeypatch):
    """Conditions are not looked at: another filter is treated as equal."""

    def atoms_of(plan, measure):
        return Atoms(plan.keys, ())

    for module in (sources, deriving, workloads):
        monkeypatch.setattr(module, "atoms_of", atoms_of)


def missing_rows(monkeypatch):
    """Rows that no group counts, such as those without a key, are taken to be none."""

    def part_in_part(inner, outer, classes):
        own, wanted = inner or [0] * classes, outer or [0] * classes
        found: dict[int, int] = {}
        for mine, theirs in zip(own, wanted, strict=True):
            if mine >= 0 and found.setdefault(mine, theirs) != theirs:
                return None
        return found

    monkeypatch.setattr(following, "part_in_part", part_in_part)


def other_data(monkeypatch):
    """Data versions are not told apart."""
    for module in (sources, workloads):
        monkeypatch.setattr(module, "frame_of", lambda plan, data_version: "the same")
    monkeypatch.setattr(sources, "key_stored", lambda kind, key, epoch: _Any())


def others_answers(monkeypatch):
    """Whose answer it is does not matter."""
    from dalenius.ledger import questions

    monkeypatch.setattr(questions, "_is_own", lambda state, question, analyst: question.state == "answered")


class _Any(str):
    """Equal to everything."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("plant", "start"),  # a little before the chain that shows it
    [(another_filter, 0), (missing_rows, 4), (other_data, 174), (others_answers, 0)],
)
def test_a_planted_bug_is_caught(tmp_path, monkeypatch, plant, start):
    with without_noise(monkeypatch) as looks:
        plant(monkeypatch)
        _forget()
        assert run_chains(tmp_path, 12, SEED, looks, start).wrong
    _forget()


def _forget():
    """What was read of answers before a bug was planted, or under it."""
    sources._READ.forked()
    sources._ANSWERS.forked()

"""No home shows more of one unit than its ledger has charged, whatever became of its data and policies meanwhile."""

from __future__ import annotations

import json

import pytest
from tests.conftest import LONG

from dalenius import Curator
from dalenius.app.cli import build, run
from dalenius.audit.transcripts import lives
from dalenius.audit.transcripts.lives import fuzz_lives
from dalenius.audit.transcripts.tape import Tape
from dalenius.ledger.ledger import Ledger
from dalenius.measuring.limits.at_protect import ProtectSearch
from dalenius.mechanisms import DiscreteGaussian
from dalenius.mechanisms.laws import DiscreteGaussianLaw

SEED = 1977


@pytest.mark.skipif(not LONG, reason="seconds for each life; the command below lives one")
def test_no_home_shows_more_than_its_ledger_has_charged():
    report = fuzz_lives(cases=600, seed=SEED)
    assert not report.violations, report.violations[0]
    for done in ("ask", "again", "refresh", "policy", "people", "monthly", "pure", "zcdp", "substitute", "reached"):
        assert report.done[done] > 20, done


def less_noise_than_is_said(monkeypatch):
    """The event that is charged is right, and the noise is not; an event that costs more the ledger would refuse."""
    law = vars(DiscreteGaussian)["noise"].fget
    monkeypatch.setattr(DiscreteGaussian, "noise", property(lambda self: DiscreteGaussianLaw(law(self).variance / 30)))


def limits_for_nothing(monkeypatch):
    mechanism = ProtectSearch._mechanism

    def cheap(self, bound, share, *rest):
        return mechanism(self, bound, 50 * share, *rest)

    monkeypatch.setattr(ProtectSearch, "_mechanism", cheap)


def charges_of_another_epoch(monkeypatch):
    """As if what was asked before new people came were theirs, too."""
    charged = lives._charged
    monkeypatch.setattr(lives, "_charged", lambda entries, epoch, period: charged(entries, 3 - epoch, period))


PLANTED = {less_noise_than_is_said: 6, limits_for_nothing: 6, charges_of_another_epoch: 6}  # by a seed that shows it


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_life_that_shows_more_is_caught(plant, monkeypatch):
    if not LONG and plant is not charges_of_another_epoch:
        pytest.skip("seconds: a life has many steps")
    plant(monkeypatch)
    report = fuzz_lives(cases=40, seed=PLANTED[plant])
    assert [each.kind for each in report.violations] == ["transcript"]


def test_the_command_says_what_was_done(capsys):
    assert run(build(), ["audit", "fuzz", "--what", "lives", "--cases", "1", "--seed", "6", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cases"] == 1 and found["violations"] == []


def test_a_first_table_with_periods_is_protected_where_a_ledger_is_there(tmp_path):
    """Lives found this: its earlier ways of telling periods were looked up, and it has none."""
    Ledger.create(tmp_path / "home")
    plot = lives._Plot("1", "zcdp", "add-remove", monthly=True, found=True, epoch=1, month=2)
    life = lives._Life(plot, 0, tmp_path, Tape())
    life._write()
    life._protect(5)
    assert [each.table for each in Curator(tmp_path / "home").tables()] == ["visits"]

"""The section [joint]: who may compute with a data set, and what that may spend."""

from __future__ import annotations

import pytest

from dalenius.errors import PolicyInvalidError
from dalenius.tables.difference import difference
from dalenius.tables.policy import JointSpec, Policy
from dalenius.tables.reading import read_text

TEXT = """
[table]
name = "visits"
source = "visits.csv"
unit = "patient"
[budget]
epsilon = 3.0
delta = 1e-6
{more}
"""
SECTION = """
[joint]
partners = ["lab", "north-clinic"]
epsilon = 1.0
"""


def read(more: str = SECTION) -> Policy:
    return read_text(TEXT.format(more=more))


def test_partners_an_allotment_and_an_overlap_are_read_and_written():
    assert read().joint == JointSpec(("lab", "north-clinic"), 1.0)
    found = read(SECTION + "overlap = 2")
    assert found.joint == JointSpec(("lab", "north-clinic"), 1.0, 2)
    assert read_text(found.text) == found
    assert read("").joint is None and read_text(read("").text).joint is None


def test_another_partner_costs_nobody_a_stored_answer():
    without, with_ = read(""), read()
    assert without.meaning == with_.meaning and without.version != with_.version
    assert {each.place for each in difference(without, with_)} == {"joint.partners", "joint.epsilon"}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[joint]\nepsilon = 1.0", "missing"),
        ('[joint]\npartners = ["lab"]', "missing"),
        ("[joint]\npartners = []\nepsilon = 1.0", "list of parties"),
        ('[joint]\npartners = "lab"\nepsilon = 1.0', "list of parties"),
        ('[joint]\npartners = ["Lab!"]\nepsilon = 1.0', "list of parties"),
        ('[joint]\npartners = ["lab", "lab"]\nepsilon = 1.0', "twice"),
        ('[joint]\npartners = ["lab"]\nepsilon = 4.0', "more than the whole budget"),
        ('[joint]\npartners = ["lab"]\nepsilon = 1.0\noverlap = 0', "overlap"),
        ('[joint]\npartners = ["lab"]\nepsilon = 1.0\noverlaps = 2', "overlap"),
        (SECTION + "[analysts.joint]\nepsilon = 1.0", "taken"),
    ],
)
def test_what_makes_no_sense_is_refused(more: str, words: str):
    with pytest.raises(PolicyInvalidError, match=words):
        read(more)


def test_pure_budgets_and_tables_without_one_have_no_partners():
    pure = TEXT.replace("delta = 1e-6", 'accounting = "pure"').format(more=SECTION)
    with pytest.raises(PolicyInvalidError, match="zCDP"):
        read_text(pure)
    other = TEXT.replace("[budget]\nepsilon = 3.0\ndelta = 1e-6", "").replace("unit =", 'dataset = "shop"\nunit =')
    with pytest.raises(PolicyInvalidError, match="budget"):
        read_text(other.format(more=SECTION))

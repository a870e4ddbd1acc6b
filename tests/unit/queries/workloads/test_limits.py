"""Workloads find the limits that fit them: what that costs, which ones, and what is said of what they cut off."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise

from dalenius.accounting.neighbors import Neighbors
from dalenius.curator import Curator
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.plan import require
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.queries.workloads.blocks import WorkloadPlan
from dalenius.queries.workloads.choosing import _Trying
from dalenius.queries.workloads.expecting import SquaredErrors
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.limits import Limiting, lower_block, together
from dalenius.queries.workloads.planning import plan_workload
from dalenius.queries.workloads.pricing import Cost, price_workload
from dalenius.queries.workloads.release import WorkloadPreview
from dalenius.queries.workloads.request import WorkloadAsk
from dalenius.releasing.stored import read_release

POLICY = """
[table]
name = "stays"
source = "stays.parquet"
unit = "person"
[budget]
epsilon = 500
delta = {delta}
accounting = "{accounting}"
[analysts.ana]
epsilon = 500
[columns.ward]
type = "integer"
bounds = [1, 6]
[columns.night]
type = "boolean"
[columns.days]
type = "integer"
bounds = [0, 30]
{more}
"""
PEOPLE = 4000
COUNTS = (
    "SELECT COUNT(*) AS n FROM stays",
    "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward",
    "SELECT ward, night, COUNT(*) AS n FROM stays GROUP BY ward, night",
)
MIXED = (*COUNTS, "SELECT ward, SUM(days) AS s FROM stays GROUP BY ward", "SELECT AVG(days) AS a FROM stays")
AT_NIGHT = (
    "SELECT COUNT(*) AS n FROM stays WHERE night",
    "SELECT ward, COUNT(*) AS n FROM stays WHERE night GROUP BY ward",
)

NIGHTS = (
    *AT_NIGHT,
    *(f"SELECT COUNT(*) AS n FROM stays WHERE night AND days <= {each}" for each in (1, 2, 4, 6, 8)),
    "SELECT ward, COUNT(*) AS n FROM stays WHERE night AND days > 5 GROUP BY ward",
)


def protected(folder: Path, accounting: str = "zcdp", more: str = "", tail: float = 1.5) -> Curator:
    """People with Pareto(tail) rows."""
    chance = np.random.default_rng(21)
    rows = np.minimum(np.floor(chance.random(PEOPLE) ** (-1 / tail)), 400).astype(int)
    person = np.repeat(np.arange(PEOPLE), rows)
    size = len(person)
    table = {
        "person": person,
        "ward": chance.integers(1, 7, size),
        "night": chance.random(size) < 0.5,
        "days": chance.integers(0, 11, size),
    }
    pq.write_table(pa.table(table), folder / "stays.parquet")
    delta = 0 if accounting == "pure" else 1e-6
    (folder / "stays.toml").write_text(POLICY.format(accounting=accounting, delta=delta, more=more))
    curator = Curator(folder / "home")
    with seeded_noise():
        curator.protect(folder / "stays.toml")
    return curator


@pytest.fixture(scope="module")
def curator(tmp_path_factory) -> Curator:
    return protected(tmp_path_factory.mktemp("stays"))


@pytest.fixture(scope="module")
def pure(tmp_path_factory) -> Curator:
    return protected(tmp_path_factory.mktemp("pure"), "pure")


def settled(curator: Curator, asked: tuple[str, ...], epsilon: float) -> WorkloadPlan:
    ask = WorkloadAsk.of({"questions": list(asked), "epsilon": epsilon})
    return plan_asked(curator.analyst("ana")._asker, ask).plan


def in_l1(curator: Curator, asked: tuple[str, ...], epsilon: float) -> tuple[WorkloadPlan, Cost]:
    """At the limits of the table, all of them in L1."""
    found = settled(curator, asked, epsilon)
    plain = plan_workload(found.plans, found.keys, found.weights, by_cells=frozenset())
    return plain, Cost.of(plain, epsilon)


def test_a_limit_that_public_counts_tell_costs_nothing(curator):
    plain, cost = in_l1(curator, COUNTS, 0.02)
    (part,), (before,) = Limiting(plain, cost).planned().parts, plain.parts
    assert part.search == 0 and part.share == before.share
    assert part.found is not None and part.found.clip == part.measure.clip < before.measure.clip == part.before


def test_a_workload_about_fewer_rows_pays_for_its_search_out_of_its_own_share(curator):
    plain, cost = in_l1(curator, AT_NIGHT, 0.5)
    (part,), (before,) = Limiting(plain, cost).planned().parts, plain.parts
    assert part.found is None and part.search > 0 and part.share + part.search == before.share


@pytest.mark.parametrize(("accounting", "asked"), [("zcdp", MIXED), ("zcdp", AT_NIGHT), ("pure", MIXED)])
def test_shares_of_all_that_is_drawn_add_up_to_the_price(curator, pure, accounting, asked):
    home = curator if accounting == "zcdp" else pure
    workload = settled(home, asked, 1.0)
    drawn = sum(part.share + part.search for part in workload.parts) + sum(each for each, _ in workload.beside.values())
    assert drawn == 1
    price = price_workload(workload, 1.0)
    assert len(price.events) == len(workload.parts) + sum(bool(part.search) for part in workload.parts)


@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.SUBSTITUTE])
def test_for_every_limit_that_may_be_found_the_noise_is_that_of_its_price(curator, neighbors):
    plain, cost = in_l1(curator, COUNTS, 1.0)
    cost = replace(cost, neighbors=neighbors)
    (block,) = plain.blocks
    for clip in (1, 2, 7, 10**9):
        (part,) = lower_block(block, {0: Clip(0, clip, None, 0)}).parts
        assert part.measure.clip == min(clip, block.parts[0].measure.clip)  # never higher than it was
        rho = Fraction(require(cost.rho))
        mechanism, search = cost.mechanism(part), cost.search(replace(part, search=part.share / 10))
        assert isinstance(mechanism, DiscreteGaussian) and isinstance(search, DiscreteGaussian)
        assert mechanism.squared_sensitivity >= part.measure.limit**2 * part.strategy.change("l2")
        assert mechanism.rho <= part.share * rho and search.rho <= part.share / 10 * rho


def test_limits_of_the_sums_of_averages_follow_those_of_rows(curator):
    plain, cost = in_l1(curator, MIXED, 1.0)
    found = Limiting(plain, cost).planned()
    (block,) = found.blocks
    group = next(each for each in together(block) if len(each) > 1)
    rows, days = sorted((block.parts[at] for at in group), key=lambda each: each.summed.text)
    assert days.measure.clip >= min(days.before, 3.5 * rows.measure.clip)  # five days each, on average


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
def test_no_part_is_expected_to_be_worse_than_one_by_one(curator, epsilon):
    found = curator.analyst("ana").preview_many(MIXED, epsilon=epsilon).expected
    assert all(each.squared_error <= 1.001 * each.one_by_one for each in found.parts)
    for each in found.questions:
        if each.columns == ("a",):
            assert each.noise_error[0] <= 1.001 * each.one_by_one[0]


def test_a_preview_says_which_errors_are_only_known_afterwards(curator):
    ana = curator.analyst("ana")
    found = ana.preview_many(NIGHTS, epsilon=0.5)
    assert [each.searched for each in found.expected.parts] == [True]
    assert "(rows): these errors are a guess" in str(found)
    assert WorkloadPreview.from_dict(found.to_dict()).expected.parts == found.expected.parts


def test_a_question_with_a_limit_of_its_own_is_asked_beside_where_all_gain_by_it(curator):
    """A rare condition has a low limit alone, and the noise of all rows together; an average counts as any other."""
    rare = "SELECT COUNT(*) AS n FROM stays WHERE days = 7 AND ward = 3 AND night"
    asked = (*COUNTS, rare)
    found = curator.analyst("ana").preview_many(asked, epsilon=4.0).expected
    trying = _Trying(settled(curator, asked, 4.0).plans, "abcd", [1.0] * 4, 4.0, lambda: None)
    searching = next(at for at, each in enumerate(trying.plans) if each.plan.searched)
    others = {at: SquaredErrors(0.5, 0.0, 1.0) for at in range(4) if at != searching}
    assert trying._better_alone({**others, searching: SquaredErrors(3.0, 0.0, 1.0)}) == {searching}
    # The others' noise grows by a third, which adds ½ in all.
    assert trying._better_alone({**others, searching: SquaredErrors(1.4, 0.0, 1.0)}) == set()
    assert found.questions[3].noise_error[0] <= 3 * found.questions[3].one_by_one[0]


def test_a_price_settles_what_is_measured_and_the_same_price_the_same(curator):
    first, again = (settled(curator, MIXED, 2.0) for _ in range(2))
    assert [each.share for each in first.parts] == [each.share for each in again.parts]
    assert first.beside == again.beside
    assert [each.measure.clip for each in first.parts] == [each.measure.clip for each in again.parts]


def test_answers_say_which_limits_were_found_and_how_far_they_may_be_off_in_all(curator):
    ana = curator.analyst("ana")
    found = ana.ask_many(NIGHTS, epsilon=0.5)
    together = [not each.beside for each in found.expected.questions]
    assert sum(together) >= 2
    for release, inside in zip(found.releases, together, strict=True):
        assert release.limits
        said = "This workload " if inside else "This question "
        assert any(note.startswith(said) and "at most" in note for note in release.notes)
        for noise, total in zip(release.interval, release.total_interval, strict=True):
            assert total[-1][0] <= noise[-1][0] and noise[-1][1] <= total[-1][1]
    again = ana.ask_many(NIGHTS, epsilon=0.5)
    assert again.free and [each.total_interval for each in again.releases] == [
        each.total_interval for each in found.releases
    ]
    alone = ana.ask(NIGHTS[1], epsilon=0.4)
    assert alone.free and alone.total_interval == found[1].total_interval


def test_what_is_stored_has_the_counts_that_limits_were_chosen_from(curator):
    found = curator.analyst("ana").ask_many(NIGHTS, epsilon=0.5)
    stored = read_release(curator.ledger, found.receipt["id"], "ana")["content"]
    assert stored["parts"] and "ward" not in json.dumps(stored)
    for part in stored["parts"]:
        assert Clip.of_json(part["found"]).counts is not None and int(part["clip"]) <= int(part["before"])


def test_limits_that_the_owner_declared_stand(tmp_path):
    ana = protected(tmp_path, more="[contribution]\nrows = 5\n").analyst("ana")
    found = ana.ask_many(COUNTS, epsilon=1.0)
    for release in found.releases:
        assert all(each[-1] is None for each in release.total_interval) and not release.limits
        assert any("The owner declared how much one person may add." in note for note in release.notes)
        assert any("One person counts with at most 5 rows" in note for note in release.notes)

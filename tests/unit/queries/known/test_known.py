"""A question that follows from what its asker has paid for is free; nothing else is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid
from tests.seeded_noise import seeded_noise
from tests.shop import Shop

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.errors import LedgerCorruptError, SourceChangedError
from dalenius.measuring.plan import Limits
from dalenius.queries.ask import Ask
from dalenius.queries.kind import CORRUPT, NOT_COMBINED
from dalenius.queries.known import following, sources
from dalenius.queries.known.answers import ALONE
from dalenius.queries.known.deciding import Candidate, candidates
from dalenius.queries.known.sealed import ASKED, seal, unseal
from dalenius.queries.known.written import plan_of_json, plan_to_json
from dalenius.queries.planning import plan_ask
from dalenius.queries.workloads.linear import atoms_of

BY_BOTH = "SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY region, smoker"
BY_REGION = "SELECT region, COUNT(*) AS n FROM people GROUP BY region"


@pytest.fixture
def curator(place: Path) -> Curator:
    """A home in which nobody has asked yet."""
    return laid(place, "known answers", lambda folder: Shop.protected(folder).curator)


@pytest.fixture
def ana(curator: Curator) -> Analyst:
    """Who asks."""
    return curator.analyst("ana")


def charges(curator: Curator) -> int:
    return len(list(curator.ledger.records(("charge", "answer", "grant"))))


def test_a_coarser_grouping_is_the_sum_of_a_finer_one(curator, ana):
    fine = ana.ask(BY_BOTH, epsilon=2.0)
    before = charges(curator)
    coarse = ana.ask(BY_REGION, epsilon=0.5)
    assert coarse.free
    assert coarse.charge == {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
    assert charges(curator) == before
    by_hand: dict[str, int] = {}
    for region, _, n in fine.rows:
        by_hand[region] = by_hand.get(region, 0) + n
    for region, n in coarse.rows:
        assert abs(n - by_hand[region]) <= 1  # each is rounded by itself
    assert coarse.noise_error[0][1] == pytest.approx(np.sqrt(2) * fine.noise_error[0][2], abs=2)
    assert coarse.receipt == fine.receipt
    assert any("follows from an answer" in note for note in coarse.notes)


def test_a_preview_says_what_is_known(ana):
    assert not any(each.known for each in ana.preview(BY_REGION).choices)
    ana.ask(BY_BOTH, epsilon=2.0)
    told = ana.preview(BY_REGION)
    assert all(each.known for each in told.choices)
    assert "known already: free" in str(told)
    assert not ana.preview(BY_REGION, epsilon=3.0).choices[0].known
    assert not any(each.known for each in ana.preview(BY_REGION, fresh=True).choices)


def test_what_a_price_would_buy_more_exactly_is_charged_and_combined(curator, ana):
    ana.ask(BY_REGION, epsilon=1.0)
    alone = ana.preview(BY_REGION, epsilon=1.2).choices[0].noise_error[1]
    paid = ana.ask(BY_REGION, epsilon=1.2)
    assert not paid.free
    assert paid.charge["epsilon"] == 1.2
    assert paid.noise_error[0][1] < 0.9 * alone
    assert any("combined with an earlier answer" in note for note in paid.notes)
    ana.ask(BY_BOTH, epsilon=3.0)
    again = ana.ask(BY_REGION, epsilon=1.2)  # whatever was asked since
    assert again.free
    assert again.rows == paid.rows
    assert again.noise_error == paid.noise_error


def test_fresh_pays_each_time_and_stands_alone(curator, ana):
    first = ana.ask(BY_REGION, epsilon=1.0)
    alone = ana.preview(BY_REGION, epsilon=1.2).choices[0].noise_error[1]
    more = ana.ask(BY_REGION, epsilon=1.2, fresh=True)
    assert more.noise_error[0][1] == alone
    second = ana.ask(BY_REGION, epsilon=1.0, fresh=True)
    third = ana.ask(BY_REGION, epsilon=1.0, fresh=True)
    assert [each.charge["epsilon"] for each in (first, second, third)] == [1.0, 1.0, 1.0]
    assert len({each.receipt["id"] for each in (first, second, third)}) == 3
    assert second.noise_error == third.noise_error == first.noise_error
    assert ana.ask(BY_REGION, epsilon=1.0).rows == first.rows  # what is stored stays what it is
    ana.ask(BY_BOTH, epsilon=3.0)
    assert not ana.ask("SELECT COUNT(*) AS n FROM people WHERE region = 'n'", epsilon=0.1, fresh=True).free


def test_fresh_that_is_sent_again_is_charged_once(curator, ana):
    first = ana.ask(BY_REGION, epsilon=1.0, fresh=True, idempotency_key="k1")
    before = charges(curator)
    again = ana.ask(BY_REGION, epsilon=1.0, fresh=True, idempotency_key="k1")
    assert again.rows == first.rows
    assert again.free
    assert charges(curator) == before
    assert not ana.ask(BY_REGION, epsilon=1.0, fresh=True, idempotency_key="k2").free


def test_what_is_compared_with_earlier_answers_is_bounded(ana, monkeypatch):
    """By what may have to be tried, before any of it is: no earlier question makes previews slow."""
    conditions = " AND ".join(f"LENGTH(note) > {at} * age" for at in range(1, 14))
    plan = plan_ask(ana._asker, Ask(f"SELECT COUNT(*) AS n FROM people WHERE {conditions}")).plan
    atoms = atoms_of(plan, plan.measures[0])
    looked = following.Attributes(plan.table.policy.columns, left=2**12)
    monkeypatch.setattr(following, "find_attributes", None)  # whoever calls it fails
    assert looked.of(atoms) is None
    assert looked.left < 0


def test_the_rest_of_a_total_follows_where_it_is_known_what_limits_took(place):
    with seeded_noise(7):
        curator = laid(place, "known rest", _with_found_limits)
        ana = curator.analyst("ana")
        for asked in ("SELECT COUNT(*) AS n FROM visits", "SELECT COUNT(*) AS n FROM visits WHERE smoker"):
            ana.ask(asked, epsilon=4.0, limits=Limits(search=0.1))
    (way,) = ways_to(ana, "SELECT COUNT(*) AS n FROM visits WHERE NOT smoker")
    assert way.table.total_interval[0][0][0] <= 600 <= way.table.total_interval[0][0][1]


def _with_found_limits(folder: Path) -> Curator:
    """Two rows of each of 600 people, every second of them a smoker's; the owner declares no limits."""
    rows = {"person": [at // 2 for at in range(1200)], "smoker": [at % 2 == 0 for at in range(1200)]}
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    policy = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 50.0
delta = 1e-6
[analysts.ana]
epsilon = 30.0
[columns.smoker]
type = "boolean"
default = false
"""
    (folder / "visits.toml").write_text(policy)
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml", yes=True)
    return curator


def test_a_difference_of_declared_limits_is_not_taken_for_rows(ana):
    """min(a + b, c) − min(a, c) is not min(b, c)."""
    ana.ask("SELECT COUNT(*) AS n FROM people", epsilon=8.0)
    ana.ask("SELECT COUNT(*) AS n FROM people WHERE smoker", epsilon=8.0)
    assert not ana.ask("SELECT COUNT(*) AS n FROM people WHERE NOT smoker", epsilon=0.05).free


def test_a_total_does_not_follow_from_groups_that_leave_rows_out(ana):
    ana.ask(BY_REGION, epsilon=4.0)
    assert not ana.ask("SELECT COUNT(*) AS n FROM people", epsilon=0.1).free  # a region may be missing
    assert ana.ask("SELECT COUNT(*) AS n FROM people WHERE region IS NOT NULL", epsilon=0.1).free


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT COUNT(*) AS n FROM people WHERE region = 'n' AND age < 50",
        "SELECT COUNT(*) AS n FROM people WHERE age < 50",
        "SELECT SUM(age) AS n FROM people WHERE region = 'n'",
        "SELECT COUNT(DISTINCT user_id) AS n FROM people WHERE region = 'n'",
        "SELECT COUNT(age) AS n FROM people WHERE region = 'n'",
        "SELECT COUNT(*) AS n FROM orders WHERE region = 'n'",
    ],
)
def test_other_rows_do_not_follow(ana, asked):
    ana.ask(BY_REGION, epsilon=4.0)
    assert not ana.ask(asked, epsilon=0.1).free


def ways_to(ana: Analyst, asked: str) -> list[Candidate]:
    """What follows from own answers, as good as it may be."""
    return candidates(ana._asker, plan_ask(ana._asker, Ask(asked)), "", 0.95)


def test_averages_follow_from_averages_and_from_nothing_else(ana):
    """Rows and sum of an average are limited together; those of two answers are limited each in its own way."""
    asked = "SELECT AVG(age) AS m FROM people WHERE smoker"
    ana.ask("SELECT smoker, SUM(age) AS s, COUNT(age) AS n FROM people GROUP BY smoker", epsilon=20.0)
    assert not ways_to(ana, asked)
    ana.ask("SELECT smoker, AVG(age) AS s FROM people GROUP BY smoker", epsilon=20.0)
    (way,) = ways_to(ana, asked)
    assert abs(way.table.rows[0][0] - 42.0) <= 3 * way.table.noise_error[0][0]  # ε = 20 is hardly any noise
    assert not ways_to(ana, "SELECT AVG(age + 1) AS m FROM people WHERE smoker")
    assert not ways_to(ana, "SELECT COUNT(age) AS m FROM people WHERE region = 'n'")


def test_what_only_orders_or_cuts_must_be_as_exact_too(ana):
    ana.ask(BY_BOTH, epsilon=0.01)
    for more in ("ORDER BY COUNT(*) DESC LIMIT 1", "HAVING COUNT(*) > 3"):
        asked = f"SELECT region FROM people GROUP BY region {more}"
        assert not ana.preview(asked, epsilon=2.0).choices[0].known
        assert ana.preview(asked, epsilon=0.001).choices[0].known


def test_joins_whose_questions_read_other_columns_are_paid_for(ana):
    """A question over a join knows the columns that it reads, and its conditions are part of the join."""
    joined = "FROM orders LEFT JOIN people ON people.user_id = orders.user_id"
    ana.ask(f"SELECT smoker, COUNT(*) AS n {joined} GROUP BY smoker", epsilon=4.0)
    assert not ana.ask(f"SELECT COUNT(*) AS n {joined}", epsilon=0.1).free
    assert not ana.ask(f"SELECT COUNT(*) AS n {joined}", epsilon=0.2, fresh=True).free


def test_by_its_error_it_is_free_where_all_groups_are_as_exact(ana):
    fine = ana.ask(BY_BOTH, epsilon=2.0)
    wide = 2.0 * fine.noise_error[0][2]
    assert ana.ask(BY_REGION, error=wide).free
    assert ana.preview(BY_REGION, error=wide).choices[0].known
    exact = ana.preview(BY_REGION, error=fine.noise_error[0][2])
    assert not exact.choices[0].known


def test_nobody_follows_from_others_answers(place):
    text = "\n[analysts.bob]\nepsilon = 10.0\n"
    curator = laid(place, "known by two", lambda folder: _for_two(folder, text))
    curator.analyst("ana").ask(BY_BOTH, epsilon=2.0)
    bob = curator.analyst("bob")
    assert not any(each.known for each in bob.preview(BY_REGION).choices)
    assert bob.ask(BY_REGION, epsilon=0.5).charge["epsilon"] == 0.5


def _for_two(folder: Path, more: str) -> Curator:
    from tests.shop import BUDGET

    return Shop.protected(folder, budget=BUDGET + more).curator


BY_STATUS = "SELECT status, COUNT(*) AS n FROM orders GROUP BY status"
OF_ALL = "SELECT COUNT(*) AS n FROM orders WHERE status IN ('open', 'done')"


def test_limits_over_other_groups_are_named_before_and_after(ana):
    ana.ask(BY_STATUS, epsilon=4.0)
    before = ana.preview(OF_ALL, epsilon=0.01)
    assert before.choices[0].known
    known = ana.ask(OF_ALL, epsilon=0.01)
    assert known.free
    for notes in (before.notes, known.notes):
        assert any("at most 1,000 rows over its 2 groups" in note for note in notes)


def test_a_part_of_the_groups_says_that_alone_limits_might_take_less(ana):
    ana.ask(BY_STATUS, epsilon=4.0)
    asked = "SELECT COUNT(*) AS n FROM orders WHERE status = 'open'"
    assert ALONE in ana.preview(asked, epsilon=0.01).notes
    known = ana.ask(asked, epsilon=0.01)
    assert known.free and ALONE in known.notes
    assert ALONE not in ana.ask(OF_ALL, epsilon=0.01).notes


@pytest.mark.parametrize("tight", [Limits(rows=7, search=0), Limits(groups=1, search=0)])
def test_tighter_limits_serve_nobody_who_did_not_type_them(ana, tight):
    ana.ask(BY_STATUS, epsilon=4.0, limits=tight)
    assert not ana.ask(OF_ALL, epsilon=0.01).free
    ana.ask(BY_STATUS, epsilon=5.0, limits=tight)  # nor two of them together
    assert not ana.ask(OF_ALL, epsilon=0.011).free


def test_who_types_a_limit_gets_that_limit(ana):
    ana.ask(BY_STATUS, epsilon=4.0)
    asked = OF_ALL
    assert not ana.ask(asked, epsilon=0.01, limits=Limits(rows=3)).free
    assert not ana.ask(
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 2) {asked[7:]}", epsilon=0.01
    ).free
    assert ana.ask(asked, epsilon=0.01).free


def test_parts_of_a_union_and_of_a_workload_are_sources(ana):
    ana.ask(f"{BY_REGION} UNION ALL SELECT status, COUNT(*) AS n FROM orders GROUP BY status", epsilon=4.0)
    assert ana.ask(OF_ALL, epsilon=0.05).free
    ana.ask_many(
        ["SELECT COUNT(*) FROM people WHERE age < 40", "SELECT COUNT(*) FROM people WHERE age < 60"], epsilon=4.0
    )
    between = ana.ask("SELECT COUNT(*) AS n FROM people WHERE age >= 40 AND age < 60", epsilon=0.1)
    assert between.free
    assert any("workload" in note for note in between.notes)
    assert not ana.ask("SELECT COUNT(*) AS n FROM people WHERE age >= 40 AND age < 61", epsilon=0.1).free


def test_what_was_asked_is_sealed(curator, ana, tmp_path):
    ana.ask("SELECT COUNT(*) AS n FROM people WHERE region = 'w' AND age < 37", epsilon=1.0)
    (number,) = [entry.number for entry in curator.ledger.records(("charge",)) if entry.data["analyst"] == "ana"]
    stored = _content(curator, number)
    assert ASKED in stored
    assert "region" not in json.dumps(stored)
    assert unseal(curator.ledger, stored[ASKED])["plan"]["where"]
    other = Shop.protected(tmp_path / "other").curator
    assert unseal(other.ledger, stored[ASKED]) is None
    assert unseal(curator.ledger, stored[ASKED][:-8] + "AAAAAAA=") is None
    assert unseal(curator.ledger, seal(curator.ledger, {"a": [1]})) == {"a": [1]}


def _content(curator: Curator, number: int) -> Any:
    with curator.ledger.view() as view:
        (content,) = view.connection.execute("SELECT content FROM releases WHERE question = ?", (number,)).fetchone()
    return json.loads(content)


@pytest.mark.parametrize(
    "asked",
    [
        BY_BOTH,
        "SELECT age // 10 AS d, AVG(age), SUM(age) FROM people WHERE region IN ('n', 's') GROUP BY d",
        "SELECT MEDIAN(amount), VAR_POP(amount), COUNT(DISTINCT region) FROM orders WHERE day >= DATE '2025-03-01'",
        "SELECT DATE_TRUNC('month', day) AS m, CORR(amount, amount + 1) FROM orders GROUP BY m",
        "SELECT people.region, COUNT(*) FROM people JOIN orders USING (user_id) GROUP BY people.region",
    ],
)
def test_a_plan_that_is_read_back_has_the_same_key(ana, asked):
    plan = plan_ask(ana._asker, Ask(asked)).plan
    read = plan_of_json(json.loads(json.dumps(plan_to_json(plan))), plan.table)
    assert read.key(1) == plan.key(1)
    assert read.answers == plan.answers
    assert read.statistics == plan.statistics


def test_another_plan_than_the_one_that_it_is_stored_for_is_not_taken(ana, monkeypatch):
    ana.ask(BY_BOTH, epsilon=2.0)
    monkeypatch.setattr(sources, "key_stored", lambda kind, key, epoch: "another")
    assert not ana.ask(BY_REGION, epsilon=0.5).free


def test_many_answers_later_the_latest_are_looked_through(ana, monkeypatch):
    monkeypatch.setattr(sources, "LATEST", 2)
    ana.ask(BY_BOTH, epsilon=2.0)
    for at in range(2):
        ana.ask(f"SELECT COUNT(*) AS n FROM people WHERE age < {at + 20}", epsilon=0.1)
    assert not ana.ask(BY_REGION, epsilon=0.5).free


def test_intervals_of_what_follows_cover(curator, rounds):
    """Sums of groups are as far off as is said; the noise here is made up, and its seed is fixed.

    A share of 95% is outside of these bounds with a chance below 1e-6 in the long form, and 1e-4 in the short one.
    """
    from dalenius.queries.known.deriving import derive
    from dalenius.queries.known.sources import own_sources, paid_measures

    ana = curator.analyst("ana")
    asked = [
        "SELECT smoker, COUNT(*) AS n FROM people GROUP BY smoker",
        "SELECT COUNT(*) AS n FROM people WHERE smoker",
    ]
    for each in (*asked, "SELECT region, smoker, COUNT(*) AS n FROM people GROUP BY region, smoker"):
        ana.ask(each, epsilon=1.0)
    found = plan_ask(ana._asker, Ask("SELECT COUNT(*) AS n FROM people WHERE NOT smoker"))
    releases = own_sources(ana._asker, found.snapshot.dataset, found.snapshot.epoch)
    paid = list(paid_measures(releases, found.plan, found.snapshot, 0.95))
    random, tries = np.random.default_rng(3), rounds(2000)
    assert derive(found.plan, paid)
    held = 0
    for _ in range(tries):  # of nobody: what was measured is noise alone
        for one in paid:
            object.__setattr__(one, "values", random.normal(0.0, one.deviations))
        numbers = derive(found.plan, paid) or []
        held += abs(float(numbers[0].values[0])) <= 1.96 * np.sqrt(float(numbers[0].variances[0]))
    share, slack = held / tries, 5 * np.sqrt(0.05 * 0.95 / tries)
    assert 0.95 - slack <= share <= 0.95 + slack


def test_what_is_shown_combined_promises_what_all_of_it_cost(ana):
    ana.ask(BY_REGION, epsilon=1.0)
    both = ana.ask(BY_REGION, epsilon=1.05)
    assert any("combined with an earlier answer" in note for note in both.notes)
    assert both.charge["epsilon"] == 1.05
    assert both.guarantee["epsilon"] == pytest.approx(1.486, abs=1e-3)  # ρ(1) + ρ(1.05), converted


def test_asked_by_its_error_again_it_is_the_same_answer(ana):
    first = ana.ask(BY_REGION, error=150)
    ana.ask(BY_BOTH, epsilon=2.0)  # which is more exact, and has its groups
    again = ana.ask(BY_REGION, error=150)
    assert again.free and again.rows == first.rows


def test_a_union_is_paid_for_anew_where_that_is_asked_for(ana):
    union = f"{BY_REGION} UNION ALL {BY_STATUS}"
    first = ana.ask(union, epsilon=1.0)
    assert ana.ask(union, epsilon=1.0).rows == first.rows
    fresh = ana.ask(union, epsilon=1.0, fresh=True)
    assert not fresh.free and fresh.charge["epsilon"] == 1.0
    assert ana.ask(union, epsilon=1.0).free


def test_a_file_that_changed_stops_questions_of_workloads_too(place):
    shop = laid(place, "a workload, changed", lambda folder: Shop.protected(folder).curator)
    ana, asked = shop.analyst("ana"), "SELECT COUNT(*) AS n FROM people WHERE age < 40"
    ana.ask_many([asked, "SELECT COUNT(*) AS n FROM people WHERE age < 60"], epsilon=2.0)
    assert ana.ask(asked, epsilon=0.1).free
    (source,) = ana._asker.registry.current()["people"].policy.source
    pq.write_table(pq.read_table(source).slice(1), source)
    with pytest.raises(SourceChangedError):
        ana.ask(asked, epsilon=0.1)


def test_free_answers_carry_the_warnings_of_all_others(ana, monkeypatch):
    ana.ask(BY_BOTH, epsilon=2.0)
    ana.ask_many(
        ["SELECT COUNT(*) FROM people WHERE age < 40", "SELECT COUNT(*) FROM people WHERE age < 60"], epsilon=4.0
    )
    monkeypatch.setattr("dalenius.releasing.leaving.warning", lambda _: "Rows were published.")
    for asked in (BY_REGION, "SELECT COUNT(*) AS n FROM people WHERE age >= 40 AND age < 60"):
        known = ana.ask(asked, epsilon=0.1)
        assert known.free and "Rows were published." in known.notes


@pytest.mark.parametrize(
    ("error", "note"), [(KeyError("n"), NOT_COMBINED), (LedgerCorruptError("It is.", why="So.", fix="No."), CORRUPT)]
)
def test_what_was_paid_for_is_shown_and_that_it_was_not_combined_is_said(ana, monkeypatch, error, note):
    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr("dalenius.queries.known.sharpening.sharpen", broken)
    found = ana.ask(BY_REGION, epsilon=1.0)
    assert not found.free and note in found.notes and "'n'" not in str(found.notes)

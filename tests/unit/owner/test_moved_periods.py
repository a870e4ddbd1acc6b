"""A policy with other bounds moves rows to other periods: then both pay, the one before and the one now."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius import Curator
from dalenius.errors import BudgetError
from dalenius.ledger import Ledger, verify
from dalenius.measuring.expressions import TRUE
from dalenius.measuring.periods import charged_periods, paying_periods
from dalenius.measuring.plan import EarlierPeriods
from dalenius.tables.policy import Bounds

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 1.0
delta = 1e-6
period = { column = "day", every = "month" }
[analysts.ana]
epsilon = 1.0
[columns.day]
type = "date"
bounds = ["2024-01-01", "2024-12-31"]
[contribution]
rows = 5
"""
WIDER = POLICY.replace("2024-12-31", "2025-12-31")


def write(file: Path, months: int) -> None:
    days = [date(2024, 11, 3) + timedelta(days=30 * at) for at in range(months)]
    pq.write_table(pa.table({"user_id": range(months), "day": pa.array(days, pa.date32())}), file)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "visits.parquet", 6)
    return tmp_path


def protect(folder: Path, text: str) -> Curator:
    (folder / "visits.toml").write_text(text)
    curator = Curator(folder / "home")
    curator.protect(folder / "visits.toml", yes=True)
    return curator


def month(label: str) -> str:
    return f"SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('month', day) = '{label}-01' AND {within(label)}"


def within(label: str) -> str:
    return f"day BETWEEN '{label}-01' AND '{label}-28'"


def charges(curator: Curator) -> dict[str, int]:
    ledger = curator.ledger
    found = {label: ledger.balance("visits", "", label).charges for label in ledger.periods("visits") if label}
    return {label: count for label, count in found.items() if count}


def test_rows_that_were_counted_at_the_bound_are_paid_for_by_both_months(folder):
    protect(folder, POLICY).analyst("ana").ask(month("2024-12"), epsilon=0.3)
    curator = protect(folder, WIDER)
    release = curator.analyst("ana").ask(month("2025-03"), epsilon=0.3)
    assert charges(curator) == {"2024-12": 2, "2025-03": 1}
    assert any("2024-12" in each and "before" in each for each in release.notes)
    curator.analyst("ana").ask(month("2024-11"), epsilon=0.3)  # was there before, and is there now
    assert charges(curator) == {"2024-11": 1, "2024-12": 2, "2025-03": 1}
    verify(curator.ledger)


def test_what_the_month_before_has_left_is_what_the_new_month_has(folder):
    ana = protect(folder, POLICY).analyst("ana")
    ana.ask(month("2024-12"), epsilon=0.95)
    curator = protect(folder, WIDER)
    for asked in (curator.analyst("ana").ask, protect(folder, WIDER).analyst("ana").ask):
        with pytest.raises(BudgetError, match="2024-12"):
            asked(month("2025-03"), epsilon=0.6)
    assert charges(curator) == {"2024-12": 1}


def test_narrower_bounds_make_the_last_month_pay_from_all_that_come_into_it(folder):
    ana = protect(folder, WIDER).analyst("ana")
    for label in ("2025-02", "2025-03", "2024-02"):
        ana.ask(month(label), epsilon=0.3)
    curator = protect(folder, POLICY)
    curator.analyst("ana").ask(month("2024-12"), epsilon=0.3)
    assert charges(curator) == {"2024-02": 1, "2024-12": 1, "2025-02": 2, "2025-03": 2}


def test_where_nothing_was_counted_before_only_the_month_itself_pays(folder):
    protect(folder, POLICY).analyst("ana").ask(month("2024-02"), epsilon=0.3)
    curator = protect(folder, WIDER)
    curator.analyst("ana").ask(month("2025-03"), epsilon=0.3)
    assert charges(curator) == {"2024-02": 1, "2025-03": 1}


@pytest.mark.parametrize("when", ["before the policy", "after the policy", "by the policy", "again and again"])
def test_a_refresh_does_not_let_rows_of_before_be_asked_for_twice(folder, when):
    curator = protect(folder, POLICY)
    curator.analyst("ana").ask(month("2024-12"), epsilon=0.95)
    for rows in {"before the policy": (7,), "again and again": (7, 8, 9)}.get(when, ()):
        write(folder / "visits.parquet", rows)
        curator.refresh("visits")
    if when == "by the policy":
        write(folder / "others.parquet", 7)
    curator = protect(folder, WIDER.replace("visits.parquet", "others.parquet") if when == "by the policy" else WIDER)
    for rows in {"after the policy": (7,), "again and again": (10, 11)}.get(when, ()):
        write(folder / "visits.parquet", rows)
        curator.refresh("visits")
    with pytest.raises(BudgetError, match="2024-12"):
        curator.analyst("ana").ask(month("2025-03"), epsilon=0.6)
    curator.analyst("ana").ask(month("2024-11"), epsilon=0.6)  # which was never charged for them
    assert charges(curator) == {"2024-11": 1, "2024-12": 1}


def test_new_people_begin_anew_as_their_policy_tells_the_months(folder):
    protect(folder, POLICY).analyst("ana").ask(month("2024-12"), epsilon=0.95)
    curator = protect(folder, WIDER)
    write(folder / "visits.parquet", 7)
    curator.refresh("visits", new_people=True, yes=True, reason="the wave of another year")
    release = curator.analyst("ana").ask(month("2025-03"), epsilon=0.6)
    assert not any("before" in each for each in release.notes)


def test_a_way_to_tell_the_months_is_looked_up_once_however_often_the_data_changed(folder, monkeypatch):
    curator = protect(folder, POLICY)
    for rows in (7, 8, 9):
        curator.analyst("ana").ask(month("2024-12"), epsilon=0.1 + rows / 100)
        write(folder / "visits.parquet", rows)
        curator.refresh("visits")
    curator = protect(folder, WIDER)
    looked = Mock(side_effect=curator.ledger.periods_between)
    monkeypatch.setattr(Ledger, "periods_between", looked)
    curator.analyst("ana").preview(month("2025-03"), epsilon=0.1)
    assert looked.call_count == 1


def test_another_change_of_the_policy_charges_no_more(folder):
    protect(folder, POLICY).analyst("ana").ask(month("2024-12"), epsilon=0.3)
    curator = protect(folder, POLICY.replace("rows = 5", "rows = 6"))
    release = curator.analyst("ana").ask(month("2024-12"), epsilon=0.3)
    assert charges(curator) == {"2024-12": 2} and not any("before" in each for each in release.notes)


def test_a_search_for_limits_is_paid_for_by_the_months_before_as_well(folder):
    wide = WIDER.replace("rows = 5", "").replace("2024-01-01", "2024-11-01")
    protect(folder, wide)
    curator = protect(folder, wide.replace("2025-12-31", "2024-12-31"))
    found = charges(curator)
    assert found["2024-12"] == 2 and found["2025-03"] == 2 and found["2025-12"] == 2


# --- against brute force

DAYS = st.dates(date(2024, 1, 1), date(2025, 12, 31))
SPANS = st.tuples(DAYS, DAYS).map(sorted)
EVERY = ("year", "quarter", "month", "week")


def label_of(table, day):
    """The period of a day, by asking about that day alone."""
    bounds = Bounds(day, day)
    columns = {**table.policy.columns, "when": replace(table.policy.columns["when"], bounds=bounds)}
    (found,) = charged_periods(replace(table, policy=replace(table.policy, columns=columns)), TRUE)
    return found


def counted_at(day, column):
    if day is None:
        return column.default
    return min(max(day, column.bounds.low), column.bounds.high)


@settings(max_examples=examples(60))
@given(SPANS, SPANS, st.tuples(*[st.none() | DAYS] * 2), st.sampled_from(EVERY), SPANS)
def test_every_period_in_which_a_row_may_have_been_is_charged(asker, old, new, defaults, every, asked):
    who = asker(period=f'period = {{ column = "when", every = "{every}" }}')
    was, now = (
        replace(who.table.policy.columns["when"], bounds=Bounds(*span), default=default)
        for span, default in zip((old, new), defaults, strict=True)
    )
    policy = replace(who.table.policy, columns={**who.table.policy.columns, "when": now})
    table = replace(who.table, policy=policy)
    days = [date(2023, 12, 1) + timedelta(days=7 * at) for at in range(115)] + [*old, *new, *asked, None]
    labels = frozenset(label_of(table, counted_at(day, was)) for day in days if counted_at(day, was) is not None)
    table = replace(table, moved=(EarlierPeriods(was, labels),))
    plan = replace(who, table=table).plan(
        f"SELECT COUNT(*) FROM visits WHERE \"when\" BETWEEN '{asked[0]}' AND '{asked[1]}'"
    )
    read = charged_periods(table, plan.question.where)
    assert set(read) <= set(plan.periods) and plan.periods == paying_periods(table, read)
    for day in days:
        before, after = counted_at(day, was), counted_at(day, now)
        if before is not None and after is not None and label_of(table, after) in read:
            assert label_of(table, before) in plan.periods


def test_a_datetime_that_is_read_in_another_zone_is_paid_for_by_all_that_was_charged(asker):
    who = asker(period='period = { column = "at", every = "month" }')
    now = who.table.policy.columns["at"]
    for was in (replace(now, zone="Asia/Tokyo"), replace(now, bounds=Bounds(now.bounds.low, datetime(2030, 1, 1)))):  # noqa: DTZ001
        moved = (EarlierPeriods(was, frozenset({"2025-01", "2029-05"})),)
        plan = replace(who, table=replace(who.table, moved=moved)).plan(
            "SELECT COUNT(*) FROM visits WHERE \"at\" >= '2025-03-01'"
        )
        assert plan.periods == (("2025-01", "2025-03", "2029-05") if was.zone else ("2025-03", "2029-05"))

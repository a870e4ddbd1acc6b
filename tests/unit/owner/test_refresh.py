"""`Curator.refresh`: a new data version, on the same budget; new people, on a new one; closed tables."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.kept import laid

from dalenius import Curator
from dalenius.accounting.events import Zcdp
from dalenius.errors import (
    BudgetError,
    InputError,
    LedgerCorruptError,
    LedgerUnavailableError,
    NotAllowedError,
    PolicyInvalidError,
    SourceChangedError,
    SourceUnavailableError,
    UnknownTableError,
)
from dalenius.ledger import Ledger, Request, verify
from dalenius.ledger.database import MIGRATIONS
from dalenius.owner import index, limits, refresh
from dalenius.releasing.snapshot import found_of

POLICY = """
[table]
name = "visits"
source = "visits*.parquet"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 2.0
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 5
"""
ORDERS = """
[table]
name = "orders"
dataset = "visits"
source = "orders.parquet"
unit = "user_id"
[columns.age]
type = "integer"
bounds = [18, 90]
[contribution]
rows = 5
"""
COUNT = "SELECT COUNT(*) FROM visits"
WAVE: dict[str, Any] = {"new_people": True, "yes": True, "reason": "a new wave"}


def write(file: Path, people: range | list[int], **more: Any) -> None:
    ages = [20 + person % 60 for person in people]
    pq.write_table(pa.table({"user_id": list(people), "age": ages, **more}), file)


@pytest.fixture(autouse=True)
def folder(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(place)
    write(place / "visits.parquet", range(100))
    write(place / "orders.parquet", range(50))
    (place / "visits.toml").write_text(POLICY)
    (place / "orders.toml").write_text(ORDERS)
    return place


@pytest.fixture
def curator(folder: Path) -> Curator:
    def lay(place: Path) -> Curator:
        made = Curator(place / "home")
        made.protect(place / "visits.toml")
        return made

    return laid(folder, "test_refresh", lay)


def left(curator: Curator, analyst: str = "") -> float:
    return curator.ledger.balance("visits", analyst).remaining_epsilon


def holds(curator: Curator) -> None:
    """The history holds, and another process reads the same from it."""
    verify(curator.ledger)
    other = Curator(curator.home)
    assert [each.to_record() for each in other.tables()] == [each.to_record() for each in curator.tables()]
    assert left(other) == left(curator)


# --- data versions


def test_files_that_are_as_they_were_need_nothing(curator, folder):
    before = curator.ledger.head
    done = curator.refresh("visits")
    assert (done.state, done.recorded, done.version.data_version) == ("unchanged", False, 1)
    os.utime(folder / "visits.parquet")  # touched, with the same content
    assert curator.refresh("Visits").state == "unchanged"
    assert curator.ledger.head == before


def test_changed_files_become_the_next_data_version(curator, folder):
    write(folder / "visits.parquet", range(120))
    with pytest.raises(SourceChangedError, match="changed since") as caught:
        curator.analyst("ana").ask(COUNT, epsilon=0.5)
    assert "dalenius refresh visits" in caught.value.fix
    done = curator.refresh("visits", reason="twenty more")
    assert (done.state, done.recorded, done.version.data_version) == ("changed", True, 2)
    assert done.files == {"added": 0, "removed": 0, "rewritten": 1}
    assert done.index is not None and done.index["state"] == "built"
    assert abs(curator.analyst("ana").ask(COUNT, epsilon=1.9).value - 120) < 120
    (entry,) = curator.ledger.records(("refresh",))
    assert entry.data["reason"] == "twenty more" and entry.data["table"] == "visits" and "by" in entry.data
    assert [each.data_version for each in curator.history("visits")] == [1, 2]
    holds(curator)


def test_following_the_message_of_protect_works(curator, folder):
    write(folder / "visits.parquet", range(120))
    with pytest.raises(SourceChangedError) as caught:
        curator.protect(folder / "visits.toml")
    assert "'dalenius refresh visits'" in caught.value.fix
    curator.refresh("visits")
    assert curator.protect(folder / "visits.toml")[0].state == "unchanged"


def test_a_new_file_of_a_glob_is_a_refresh(curator, folder):
    write(folder / "visits-2.parquet", range(100, 130))
    done = curator.refresh("visits")
    assert done.files == {"added": 1, "removed": 0, "rewritten": 0} and done.version.data_version == 2
    assert len(done.version.fingerprint.files) == 2
    holds(curator)


def test_the_same_files_under_other_names_keep_their_answers(curator, folder):
    first = curator.analyst("ana").ask(COUNT, epsilon=0.5)
    (folder / "visits.parquet").rename(folder / "visits-old.parquet")
    with pytest.raises(SourceChangedError):
        curator.analyst("ana").ask(COUNT, epsilon=0.5)
    done = curator.refresh("visits")
    assert (done.state, done.version.data_version) == ("moved", 1)
    again = curator.analyst("ana").ask(COUNT, epsilon=0.5)
    assert again.free and again.rows == first.rows
    holds(curator)


def test_a_dry_run_writes_nothing(curator, folder):
    write(folder / "visits.parquet", range(120))
    before = curator.ledger.head
    done = curator.refresh("visits", dry_run=True)
    assert (done.state, done.recorded, done.version.data_version) == ("changed", False, 2)
    assert curator.refresh("visits", dry_run=True, new_people=True).needs == ("yes", "reason")
    assert curator.ledger.head == before


def test_files_that_do_not_fit_the_policy_are_not_recorded(curator, folder):
    pq.write_table(pa.table({"user_id": [1, 2]}), folder / "visits.parquet")
    before = curator.ledger.head
    with pytest.raises(PolicyInvalidError, match="no longer fit") as caught:
        curator.refresh("visits")
    assert "dalenius protect" in caught.value.fix and curator.ledger.head == before
    # and following that message works too: a policy without the column
    text = POLICY.replace('[columns.age]\ntype = "integer"\nbounds = [18, 90]\n', "")
    (folder / "visits.toml").write_text(text)
    (done,) = curator.protect(folder / "visits.toml", yes=True)
    assert done.recorded and done.version.data_version == 2
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    holds(curator)


def test_values_that_cannot_be_read_are_not_recorded(curator, folder):
    broken = pa.array([b"\xff\xfe"] * 2, pa.binary()).view(pa.string())
    text = POLICY + '[columns.name]\ntype = "text"\n'
    write(folder / "visits.parquet", range(2), name=["a", "b"])
    curator.refresh("visits")
    (folder / "visits.toml").write_text(text)
    curator.protect(folder / "visits.toml", yes=True)
    write(folder / "visits.parquet", range(2), name=broken)
    before = curator.ledger.head
    with pytest.raises(SourceUnavailableError, match="Not every value"):
        curator.refresh("visits")
    assert curator.ledger.head == before


def test_a_source_that_is_gone_or_unknown(curator, folder):
    (folder / "visits.parquet").unlink()
    with pytest.raises(SourceUnavailableError):
        curator.refresh("visits")
    with pytest.raises(UnknownTableError, match="no table 'visit'"):
        curator.refresh("visit")


def test_files_of_another_data_set_are_refused(curator, folder):
    other = POLICY.replace('name = "visits"', 'name = "other"').replace("visits*.parquet", "other*.parquet")
    write(folder / "other.parquet", range(200, 300))
    (folder / "other.toml").write_text(other)
    curator.protect(folder / "other.toml")
    shutil.copy(folder / "visits.parquet", folder / "other-2.parquet")
    with pytest.raises(NotAllowedError, match="holds a file of table 'visits'"):
        curator.refresh("other")
    with pytest.raises(NotAllowedError, match="holds a file of table 'visits'"):
        curator.refresh("other", **WAVE)
    holds(curator)


# --- the budget


def test_a_repeat_after_a_refresh_is_a_new_question_charged_anew(curator, folder):
    ana = curator.analyst("ana")
    ana.ask(COUNT, epsilon=0.5)
    assert ana.ask(COUNT, epsilon=0.5).free
    spent = left(curator, "ana")
    write(folder / "visits.parquet", range(120))
    curator.refresh("visits")
    assert left(curator, "ana") == spent  # nothing is given back
    again = ana.ask(COUNT, epsilon=0.5)
    assert not again.free and left(curator, "ana") < spent
    holds(curator)


def test_back_and_forth_between_two_files_gives_no_free_answer_and_no_fresh_budget(curator, folder):
    """Attack: averaging many answers about the same rows by swapping files between them."""
    shutil.copy(folder / "visits.parquet", folder / "one")
    write(folder / "two", range(99))
    ana, answers, versions = curator.analyst("ana"), 0, [1]

    def once() -> None:
        spent = curator.ledger.balance("visits").spent.rho
        assert not ana.ask(COUNT, epsilon=0.5).free
        assert curator.ledger.balance("visits").spent.rho > spent

    while answers < 100:
        try:
            once()
        except BudgetError:
            break
        answers += 1
        shutil.copy(folder / ("two" if answers % 2 else "one"), folder / "visits.parquet")
        versions.append(curator.refresh("visits").version.data_version)
    assert versions == list(range(1, answers + 2))
    assert 1 < answers < 30  # what the allotment pays without any refresh: (2.0 / 0.5)² or so
    holds(curator)


def test_a_stale_process_cannot_ask_about_the_data_before(curator, folder):
    other = Curator(curator.home)
    other.analyst("ana").ask(COUNT, epsilon=0.2)
    write(folder / "visits.parquet", range(120))
    curator.refresh("visits")
    # the other process reads on in the history: its next question is about the new version, and charged
    assert not other.analyst("ana").ask(COUNT, epsilon=0.2).free


# --- limits


@pytest.fixture
def searching(folder: Path) -> Curator:
    """A table whose limits are found."""
    (folder / "visits.toml").write_text(POLICY.replace("[contribution]\nrows = 5\n", ""))
    write(folder / "visits.parquet", [person for person in range(4000) for _ in range(1 + person % 3)])
    made = Curator(folder / "home")
    made.protect(folder / "visits.toml")
    return made


def test_limits_stay_and_are_marked(searching, folder):
    before = searching.registry.limits(searching.tables()[0])
    charges = searching.ledger.balance("visits").charges
    write(folder / "visits.parquet", [person for person in range(9000) for _ in range(1 + person % 3)])
    assert searching.refresh("visits", dry_run=True).search is None
    done = searching.refresh("visits")
    assert done.search is None and done.limits == before | {"data_version": 1}
    assert searching.registry.limits(done.version) == done.limits
    assert Curator(searching.home).registry.limits(done.version) == done.limits
    used = found_of(searching.registry, done.version)
    assert used is not None and used.rows == before["rows"]
    assert searching.ledger.balance("visits").charges == charges
    # once more: still those of the first data version
    write(folder / "visits.parquet", [person for person in range(9001) for _ in range(1 + person % 3)])
    assert searching.refresh("visits").limits == before | {"data_version": 1}
    # another analyst in the policy does not pay for a search either, and the mark stays
    (folder / "visits.toml").write_text((folder / "visits.toml").read_text() + "[analysts.bob]\nepsilon = 1.0\n")
    (changed,) = searching.protect(folder / "visits.toml", yes=True)
    assert changed.search is None and changed.limits["data_version"] == 1
    assert searching.ledger.balance("visits").charges == charges
    holds(searching)


def test_limits_are_found_again_when_the_owner_asks_and_that_is_charged(searching, folder):
    before = searching.registry.limits(searching.tables()[0])
    spent = searching.ledger.balance("visits").spent.rho
    write(folder / "visits.parquet", [person for person in range(9000) for _ in range(1 + person % 3)])
    priced = searching.refresh("visits", find_limits=True, dry_run=True).search
    assert priced is not None
    done = searching.refresh("visits", find_limits=True)
    assert done.search == priced and "data_version" not in done.limits
    assert searching.ledger.balance("visits").spent.rho == pytest.approx(spent + priced["rho"])
    assert abs(before["units"] - 4000) < 1500 and abs(done.limits["units"] - 9000) < 1500
    assert searching.registry.limits(searching.tables()[0]) == done.limits
    # they are of this data now: nothing more to find, nothing to pay
    again = searching.refresh("visits", find_limits=True)
    assert again.search is None and again.limits == done.limits
    holds(searching)


def test_limits_can_be_found_after_a_refresh_that_left_them(searching, folder):
    write(folder / "visits.parquet", [person for person in range(9000) for _ in range(1 + person % 3)])
    searching.refresh("visits")
    done = searching.refresh("visits", find_limits=True)
    assert done.state == "unchanged" and done.search is not None and abs(done.limits["units"] - 9000) < 1500


def test_a_search_that_the_budget_does_not_cover_leaves_the_refresh_recorded(searching, folder):
    (folder / "visits.toml").write_text((folder / "visits.toml").read_text().replace("2.0", "3.0"))
    searching.protect(folder / "visits.toml", yes=True)
    searching.analyst("ana").ask(COUNT, epsilon=left(searching, "ana"))
    write(folder / "visits.parquet", range(5000))
    with pytest.raises(BudgetError) as caught:
        searching.refresh("visits", find_limits=True)
    assert "recorded" in caught.value.fix
    version = searching.tables()[0]
    assert version.data_version == 2 and searching.registry.limits(version)["data_version"] == 1
    holds(searching)


# --- new people


def test_new_people_start_with_a_whole_budget(curator, folder):
    ana = curator.analyst("ana")
    whole = left(curator), left(curator, "ana")
    ana.ask(COUNT, epsilon=1.9)
    write(folder / "visits.parquet", range(1000, 1200))
    done = curator.refresh("visits", **WAVE)
    assert done.new_people and done.recorded and (done.version.epoch, done.version.data_version) == (1, 2)
    assert (left(curator), left(curator, "ana")) == whole
    assert curator.ledger.balance("visits").charges == 0
    assert not ana.ask(COUNT, epsilon=1.9).free
    with pytest.raises(BudgetError):
        ana.ask("SELECT AVG(age) FROM visits", epsilon=1.9)
    (entry,) = curator.ledger.records(("epoch",))
    assert entry.data["reason"] == "a new wave" and entry.data["dataset"] == "visits"
    holds(curator)
    # a plain refresh goes on with their budget
    spent = left(curator)
    write(folder / "visits.parquet", range(1000, 1201))
    assert curator.refresh("visits").version.epoch == 1
    assert left(curator) == spent
    # and a third wave is one more epoch
    write(folder / "visits.parquet", range(2000, 2200))
    assert curator.refresh("visits", **WAVE).version.epoch == 2
    assert left(curator) == whole[0]
    holds(curator)


def test_new_people_need_yes_and_a_reason(curator, folder):
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    spent, head = left(curator), curator.ledger.head
    write(folder / "visits.parquet", range(1000, 1200))
    planned = curator.refresh("visits", new_people=True)
    assert planned.needs == ("yes", "reason") and not planned.recorded
    assert curator.refresh("visits", new_people=True, reason="a new wave").needs == ("yes",)
    for short in ("", "r", "because", "a b c", ". . . . . . . .", "  x  y  z  "):  # words that say nothing
        assert curator.refresh("visits", new_people=True, reason=short).needs == ("yes", "reason")
        with pytest.raises(NotAllowedError, match="need a reason"):
            curator.refresh("visits", new_people=True, yes=True, reason=short)
    assert (left(curator), curator.ledger.head) == (spent, head)
    record = {"dataset": "visits", "epoch": 1, "reason": ""}
    with pytest.raises(InputError, match="reason"):
        curator.ledger.record_all([("epoch", record)], since=head.count, overtaken=lambda _: False)
    with pytest.raises(InputError, match="not an owner action"):
        curator.ledger.record("epoch", {"dataset": "visits", "epoch": 1, "reason": "r"})
    assert (left(curator), curator.ledger.head) == (spent, head)


def test_the_same_people_are_not_new(curator, folder):
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    spent = left(curator)
    with pytest.raises(NotAllowedError, match="are those of before"):
        curator.refresh("visits", **WAVE)
    (folder / "visits.parquet").rename(folder / "visits-moved.parquet")
    with pytest.raises(NotAllowedError, match="of the people before"):
        curator.refresh("visits", **WAVE)
    write(folder / "visits-2.parquet", range(1000, 1200))  # beside the old file
    with pytest.raises(NotAllowedError, match="of the people before"):
        curator.refresh("visits", **WAVE)
    assert left(curator) == spent


def test_the_files_of_people_before_cannot_come_back(curator, folder):
    """Attack: their budget is gone; that of others must not pay for them, by any name."""
    curator.analyst("ana").ask(COUNT, epsilon=1.9)
    shutil.copy(folder / "visits.parquet", folder / "kept")
    write(folder / "visits.parquet", range(1000, 1200))
    curator.refresh("visits", **WAVE)
    shutil.copy(folder / "kept", folder / "visits.parquet")
    with pytest.raises(SourceChangedError):
        curator.analyst("ana").ask(COUNT, epsilon=0.5)
    for more in ({}, WAVE):
        with pytest.raises(NotAllowedError, match="of the people before"):
            curator.refresh("visits", **more)
    shutil.copy(folder / "kept", folder / "elsewhere.parquet")
    moved = POLICY.replace("visits*.parquet", "elsewhere.parquet")
    (folder / "visits.toml").write_text(moved)
    with pytest.raises(NotAllowedError, match="of the people before"):
        curator.protect(folder / "visits.toml", yes=True)
    (folder / "orders.toml").write_text(ORDERS.replace("orders.parquet", "elsewhere.parquet"))
    with pytest.raises(NotAllowedError, match="of the people before"):
        curator.protect(folder / "orders.toml")
    (folder / "other.toml").write_text(moved.replace('name = "visits"', 'name = "other"'))
    with pytest.raises(NotAllowedError, match="is known as table"):
        curator.protect(folder / "other.toml")
    holds(curator)


def test_other_tables_of_the_data_set_are_closed_until_they_follow(curator, folder):
    """Attack: old people in a second table would be read on the new people's budget."""
    curator.protect(folder / "orders.toml")
    ana = curator.analyst("ana")
    ana.ask("SELECT COUNT(*) FROM orders", epsilon=1.9)
    write(folder / "visits.parquet", range(1000, 1200))
    done = curator.refresh("visits", **WAVE)
    assert set(done.closed) == {"orders"}
    assert "still holds" in curator.registry.closed("orders") and curator.registry.closed("visits") is None
    head = curator.ledger.head
    for question in ("SELECT COUNT(*) FROM orders", "SELECT AVG(age) FROM orders"):  # asked before, and new
        for asking in (ana.ask, ana.preview):
            with pytest.raises(NotAllowedError, match="'orders' is closed"):
                asking(question, epsilon=0.1)
    assert curator.ledger.head == head
    ana.ask(COUNT, epsilon=0.5)
    # neither a plain refresh nor a new policy opens it
    assert curator.refresh("orders").state == "unchanged"
    (folder / "orders.toml").write_text(ORDERS.replace("rows = 5", "rows = 4"))
    curator.protect(folder / "orders.toml", yes=True)
    assert curator.registry.closed("orders") is not None
    write(folder / "orders.parquet", range(1000, 1050))
    with pytest.raises(NotAllowedError, match="still holds the people before"):
        curator.refresh("orders")
    write(folder / "elsewhere.parquet", range(1000, 1051))
    (folder / "orders.toml").write_text(ORDERS.replace("orders.parquet", "elsewhere.parquet"))
    with pytest.raises(NotAllowedError, match="still holds the people before") as caught:
        curator.protect(folder / "orders.toml", yes=True)
    assert "refresh orders --new-people" in caught.value.fix
    # following does: into the same epoch, on what is left of its budget
    spent = left(curator)
    joined = curator.refresh("orders", **WAVE)
    assert joined.version.epoch == 1 and joined.reopened and not joined.closed
    assert left(curator) == spent and len(list(curator.ledger.records(("epoch",)))) == 1
    assert not ana.ask("SELECT COUNT(*) FROM orders", epsilon=0.5).free
    holds(curator)


def test_a_table_that_joins_later_is_of_the_new_people(curator, folder):
    write(folder / "visits.parquet", range(1000, 1200))
    curator.refresh("visits", **WAVE)
    (done,) = curator.protect(folder / "orders.toml")
    assert done.version.epoch == 1 and curator.registry.closed("orders") is None
    curator.analyst("ana").ask("SELECT COUNT(*) FROM orders", epsilon=0.5)
    holds(curator)


def test_a_question_planned_for_people_before_is_not_charged_to_the_new_ones(curator, folder):
    """The race: planned, then new people, then charged."""
    old = Request("visits", "ana", "key", 0.5, Zcdp(1e-9), question="q")
    first = curator.ledger.ask(old, lambda _: b"1")
    write(folder / "visits.parquet", range(1000, 1200))
    curator.refresh("visits", **WAVE)
    head = curator.ledger.head
    with pytest.raises(SourceChangedError, match="other ones by now"):
        curator.ledger.ask(old, lambda _: pytest.fail("must not look"))
    with pytest.raises(SourceChangedError):
        curator.ledger.ask(Request("visits", "ana", "other", 0.5, Zcdp(1e-9)), lambda _: pytest.fail("must not look"))
    assert curator.ledger.head == head
    # the same key, of the new people: a question of its own
    again = curator.ledger.ask(Request("visits", "ana", "key", 0.5, Zcdp(1e-9), epoch=1), lambda _: b"2")
    assert (first.content, again.content, again.free) == (b"1", b"2", False)
    holds(curator)


def test_an_answer_that_was_charged_before_new_people_still_ends(curator, folder):
    claim = curator.ledger.charge(Request("visits", "ana", "key", 0.5, Zcdp(1e-9)))
    write(folder / "visits.parquet", range(1000, 1200))
    curator.refresh("visits", **WAVE)
    curator.ledger.answer(claim, b"1")
    assert left(curator) == Curator(curator.home).ledger.budget("visits").filter().remaining_epsilon
    holds(curator)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE epochs SET number = 2",
        "DELETE FROM epochs",
        "INSERT INTO epochs VALUES ('other', 1)",
        "DELETE FROM totals",
    ],
)
def test_verify_sees_an_epoch_that_was_made_up(curator, folder, change):
    write(folder / "visits.parquet", range(1000, 1200))
    curator.refresh("visits", **WAVE)
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    with sqlite3.connect(curator.home / "ledger.sqlite") as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(LedgerCorruptError, match="not what the history adds up to"):
        verify(curator.ledger)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("epoch", {"dataset": "visits", "epoch": 2, "reason": "r"}),
        ("epoch", {"dataset": "visits", "epoch": 1, "reason": ""}),
        ("epoch", {"dataset": "nobody", "epoch": 1, "reason": "r"}),
    ],
)
def test_verify_sees_an_epoch_that_was_not_allowed(curator, kind, data):
    curator.ledger.append(kind, data)
    with pytest.raises(LedgerCorruptError, match="was not allowed"):
        verify(curator.ledger)


def test_verify_sees_a_charge_to_people_before(curator, folder):
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    (charge,) = curator.ledger.records(("charge",))
    write(folder / "visits.parquet", range(1000, 1200))
    curator.refresh("visits", **WAVE)
    curator.ledger.append("charge", charge.data)
    with pytest.raises(LedgerCorruptError, match="was not allowed") as caught:
        verify(curator.ledger)
    assert "other people" in caught.value.why


def test_a_ledger_of_before_epochs_is_brought_up_to_date(curator):
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    spent = left(curator)
    curator.ledger.database.close()
    with sqlite3.connect(curator.home / "ledger.sqlite") as connection:
        for each in ("INDEX entries_by_kind", "TABLE retries", "TABLE epochs"):
            connection.execute(f"DROP {each}")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert len(MIGRATIONS) == 3
    again = Curator(curator.home)
    assert left(again) == spent and again.ledger.epoch("visits") == 0
    assert again.analyst("ana").ask(COUNT, epsilon=0.5).free
    verify(again.ledger)


# --- closed tables


def refreshed(curator: Curator, name: str, *checks: refresh.Check) -> refresh.Refreshed:
    wish = refresh.RefreshRequest(name)
    return refresh.refresh(wish, curator.registry, curator.ledger, curator.engines, checks=checks)


def test_a_check_that_fails_closes_the_table_to_everyone(curator, folder):
    (folder / "visits.toml").write_text(POLICY + "[analysts.bob]\nepsilon = 1.0\n")
    curator.protect(folder / "visits.toml", yes=True)
    curator.analyst("ana").ask(COUNT, epsilon=0.5)
    write(folder / "visits.parquet", range(120))
    seen = []

    def never_unique(version, current):
        seen.append(version.table)
        assert current[version.table] is version and version.data_version == 2
        return "Its keys are not unique."

    done = refreshed(curator, "visits", never_unique)
    assert done.closed == {"visits": "Its keys are not unique."} and done.recorded and seen == ["visits"]
    messages = set()
    head = curator.ledger.head
    for analyst in ("ana", "bob"):
        for question in (COUNT, "SELECT AVG(age) FROM visits WHERE age < 30"):
            with pytest.raises(NotAllowedError) as caught:
                Curator(curator.home).analyst(analyst).ask(question, epsilon=0.1)
            messages.add((caught.value.message, caught.value.why, caught.value.fix))
    assert len(messages) == 1 and curator.ledger.head == head
    # unchanged and still so: nothing is written
    assert refreshed(curator, "visits", lambda *_: "Still not.").closed == {"visits": "Still not."}
    assert curator.ledger.head == head
    # unchanged, but the check passes now (what it looked at beside this table was mended)
    again = refreshed(curator, "visits", lambda *_: None)
    assert again.reopened and again.recorded and again.version.data_version == 2
    assert not curator.analyst("ana").ask(COUNT, epsilon=0.1).free
    holds(curator)


def test_a_check_may_close_other_tables_of_the_data_set(curator, folder):
    curator.protect(folder / "orders.toml")
    write(folder / "visits.parquet", range(120))
    done = refreshed(curator, "visits", lambda version, _: "It dangles." if version.table == "orders" else None)
    assert done.closed == {"orders": "It dangles."}
    with pytest.raises(NotAllowedError, match="'orders' is closed"):
        curator.analyst("ana").ask("SELECT COUNT(*) FROM orders", epsilon=0.1)
    curator.analyst("ana").ask(COUNT, epsilon=0.1)
    assert refreshed(curator, "orders").reopened
    curator.analyst("ana").ask("SELECT COUNT(*) FROM orders", epsilon=0.1)
    holds(curator)


def test_a_new_policy_opens_a_closed_table(curator, folder):
    curator.ledger.record("closed", {"table": "visits", "dataset": "visits", "why": "Because."})
    assert curator.registry.closed("visits") == "Because."
    (folder / "visits.toml").write_text(POLICY.replace("rows = 5", "rows = 4"))
    curator.protect(folder / "visits.toml", yes=True)
    assert curator.registry.closed("visits") is None


ITEMS = """
[table]
name = "items"
dataset = "visits"
source = "items.parquet"
unit = { path = "visit -> visits.visit -> visits.user_id" }
[columns.price]
type = "integer"
bounds = [0, 9]
[contribution]
rows = 5
"""
ITEM_COUNT = "SELECT COUNT(*) FROM items"


@pytest.fixture
def shop(folder: Path) -> Curator:
    """Visits, and items that belong to the visitor by a path."""
    write(folder / "visits.parquet", range(100), visit=list(range(100)))
    pq.write_table(pa.table({"visit": list(range(100)), "price": [3] * 100}), folder / "items.parquet")
    (folder / "items.toml").write_text(ITEMS)
    made = Curator(folder / "home")
    made.protect(folder / "visits.toml", folder / "items.toml")
    return made


def test_a_path_key_that_is_no_longer_unique_closes_the_table_until_it_is(shop, folder):
    ana = shop.analyst("ana")
    ana.ask(ITEM_COUNT, epsilon=0.1)
    write(folder / "visits.parquet", range(100), visit=[0, *range(99)])
    done = shop.refresh("visits")
    assert done.recorded and "not unique" in done.closed["items"] and set(done.closed) == {"items"}
    head = shop.ledger.head
    joined = "SELECT COUNT(*) FROM items JOIN visits ON items.visit = visits.visit"
    for question in (ITEM_COUNT, "SELECT SUM(price) FROM items WHERE price < 3", joined):
        with pytest.raises(NotAllowedError, match="'items' is closed"):
            ana.ask(question, epsilon=0.1)
    assert shop.ledger.head == head
    ana.ask(COUNT, epsilon=0.1)  # visits themselves have no path
    assert not shop.refresh("items").reopened  # as it was: still closed
    write(folder / "visits.parquet", range(100), visit=list(range(100, 200)))
    assert not shop.refresh("visits").closed
    assert shop.refresh("items").reopened
    assert not ana.ask(ITEM_COUNT, epsilon=0.1).free
    holds(shop)


def test_a_path_that_no_longer_fits_closes_the_table(shop, folder):
    write(folder / "visits.parquet", range(101))  # the key is gone
    assert "no column 'visit'" in shop.refresh("visits").closed["items"]
    write(folder / "visits.parquet", range(101), visit=[str(each) for each in range(101)])
    assert shop.refresh("visits").recorded
    assert "different types" in shop.refresh("items").closed["items"]
    holds(shop)


def test_a_table_that_could_not_be_checked_is_closed(shop, folder):
    (folder / "items.parquet").rename(folder / "kept")
    write(folder / "visits.parquet", range(100), visit=[0, *range(99)])
    assert "items" in shop.refresh("visits").closed
    (folder / "kept").rename(folder / "items.parquet")
    with pytest.raises(NotAllowedError, match="'items' is closed"):
        shop.analyst("ana").ask(ITEM_COUNT, epsilon=0.1)


def test_a_repeat_along_a_path_is_charged_after_either_table_changed(shop, folder):
    ana = shop.analyst("ana")
    ana.ask(ITEM_COUNT, epsilon=0.1)
    assert ana.ask(ITEM_COUNT, epsilon=0.1).free
    write(folder / "visits.parquet", range(100), visit=list(range(1, 101)))
    assert not shop.refresh("visits").closed
    assert not ana.ask(ITEM_COUNT, epsilon=0.1).free
    pq.write_table(pa.table({"visit": [1], "price": [3]}), folder / "items.parquet")
    shop.refresh("items")
    assert not ana.ask(ITEM_COUNT, epsilon=0.1).free


def test_new_people_on_a_path_wait_for_all_of_its_tables(shop, folder):
    """Attack: new items tied to old visitors, or new visitors with old items."""
    ana = shop.analyst("ana")
    pq.write_table(pa.table({"visit": list(range(50)), "price": [4] * 50}), folder / "items.parquet")
    assert set(shop.refresh("items", **WAVE).closed) == {"visits"}
    for question in (ITEM_COUNT, COUNT):
        with pytest.raises(NotAllowedError, match="'visits' is closed"):
            ana.ask(question, epsilon=0.1)
    write(folder / "visits.parquet", range(1000, 1100), visit=list(range(100)))
    assert not shop.refresh("visits", **WAVE).closed
    assert shop.ledger.epoch("visits") == 1
    ana.ask(ITEM_COUNT, epsilon=0.1)
    holds(shop)


def test_a_file_that_is_public_is_not_taken(curator, folder):
    text = POLICY.replace("visits*.parquet", "other.parquet").replace('name = "visits"', 'name = "other"')
    write(folder / "other.parquet", range(5000, 5010))
    pq.write_table(pa.table({"user_id": [1], "age": [2]}), folder / "public.parquet")
    (folder / "other.toml").write_text(text + '[public]\ntables = { codes = "public.parquet" }\n')
    curator.protect(folder / "other.toml", yes=True)
    shutil.copy(folder / "public.parquet", folder / "visits-2.parquet")
    with pytest.raises(NotAllowedError, match="public"):
        curator.refresh("visits")


# --- several at once, and killed


def test_two_refreshes_at_once_make_one_version(curator, folder, monkeypatch):
    write(folder / "visits.parquet", range(120))
    other = Curator(curator.home)
    once: list[bool] = []
    plan = refresh._plan

    def overtaken(*arguments):
        found = plan(*arguments)
        if not once:  # after this one was thought out, another process is done with the same
            once.append(True)
            assert other.refresh("visits").version.data_version == 2
        return found

    monkeypatch.setattr(refresh, "_plan", overtaken)
    done = curator.refresh("visits")
    assert once and (done.state, done.version.data_version) == ("unchanged", 2)
    assert [each.data_version for each in Curator(curator.home).history("visits")] == [1, 2]
    holds(curator)


def test_two_declarations_of_new_people_at_once_make_one_epoch(curator, folder, monkeypatch):
    write(folder / "visits.parquet", range(1000, 1200))
    other = Curator(curator.home)
    once: list[bool] = []
    plan = refresh._plan

    def overtaken(*arguments):
        found = plan(*arguments)
        if not once:
            once.append(True)
            other.refresh("visits", **WAVE)
            other.analyst("ana").ask(COUNT, epsilon=1.9)
        return found

    monkeypatch.setattr(refresh, "_plan", overtaken)
    with pytest.raises(NotAllowedError, match="are those of before"):
        curator.refresh("visits", **WAVE)
    assert curator.ledger.epoch("visits") == 1 and curator.ledger.balance("visits").charges == 1
    holds(curator)


def test_a_policy_is_not_recorded_over_a_refresh_that_came_first(curator, folder, monkeypatch):
    """Else the new policy would put the fingerprint and the data version of before in force again."""
    from dalenius.owner import protect

    (folder / "visits.toml").write_text(POLICY.replace("rows = 5", "rows = 4"))
    plan, other = protect.plan, Curator(curator.home)

    def overtaken(*arguments):
        found = plan(*arguments)
        write(folder / "visits.parquet", range(120))
        other.refresh("visits")
        return found

    monkeypatch.setattr(protect, "plan", overtaken)
    with pytest.raises(LedgerUnavailableError, match="at the same time"):
        curator.protect(folder / "visits.toml", yes=True)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert curator.tables()[0].data_version == 2
    (done,) = curator.protect(folder / "visits.toml", yes=True)
    assert done.recorded and done.version.data_version == 2
    holds(curator)


def test_the_same_files_cannot_get_two_budgets_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Attack: two processes protect the same file under two names, each before the other has written."""
    from dalenius.owner import protect

    write(folder / "first.parquet", range(5))
    for name, source in (("start", "first"), ("one", "visits"), ("two", "visits")):
        text = POLICY.replace('name = "visits"', f'name = "{name}"').replace("visits*.parquet", f"{source}.parquet")
        (folder / f"{name}.toml").write_text(text)
    curator = Curator(folder / "home")
    curator.protect(folder / "start.toml")
    plan = protect.plan
    once: list[bool] = []

    def overtaken(*arguments):
        found = plan(*arguments)
        if not once:
            once.append(True)
            Curator(folder / "home").protect(folder / "two.toml")
        return found

    monkeypatch.setattr(protect, "plan", overtaken)
    with pytest.raises(LedgerUnavailableError, match="at the same time"):
        curator.protect(folder / "one.toml")
    with pytest.raises(NotAllowedError, match="is known as table 'two'"):
        curator.protect(folder / "one.toml")


def _refresh(home: Path, start: Any, found: Any) -> None:
    start.wait(60)
    done = Curator(home).refresh("visits")
    found.put((done.state, done.version.data_version))


def test_processes_that_refresh_together_agree(curator, folder):
    curator.ledger.database.close()
    write(folder / "visits.parquet", range(120))
    context = multiprocessing.get_context("spawn")
    start, found = context.Barrier(3, timeout=120), context.Queue()
    processes = [context.Process(target=_refresh, args=(curator.home, start, found)) for _ in range(3)]
    for each in processes:
        each.start()
    done = [found.get(timeout=120) for _ in processes]
    for each in processes:
        each.join(60)
    assert {version for _, version in done} == {2}
    assert sum(state == "changed" for state, _ in done) == 1
    assert len(list(Curator(curator.home).ledger.records(("refresh",)))) == 1


def _killed(home: Path, at: str, more: dict[str, Any]) -> None:
    """Refreshes, and dies at a step: before anything is written, before the index, before the search."""

    def die(*_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    place, name = {
        "record": (Ledger, "record_all"),
        "index": (index, "prepare"),
        "limits": (limits, "find"),
    }[at]
    setattr(place, name, die)
    Curator(home).refresh("visits", **more)


@pytest.mark.parametrize("more", [{"find_limits": True}, WAVE], ids=["limits", "people"])
@pytest.mark.parametrize("at", ["record", "index", "limits"])
def test_killed_anywhere_leaves_a_table_as_before_or_after(searching, folder, at, more):
    before, limits = searching.tables()[0], searching.registry.limits(searching.tables()[0])
    searching.analyst("ana").ask(COUNT, epsilon=0.5)
    spent = left(searching)
    searching.ledger.database.close()
    write(folder / "visits.parquet", range(10_000, 14_000))
    process = multiprocessing.get_context("spawn").Process(target=_killed, args=(searching.home, at, more))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    again = Curator(searching.home)
    (version,) = again.tables()
    verify(again.ledger)
    if at == "record":
        assert version == before and left(again) == spent
        with pytest.raises(SourceChangedError):
            again.analyst("ana").ask(COUNT, epsilon=0.1)
    else:
        assert version.data_version == 2
        assert again.registry.limits(version) == limits | {"data_version": 1}
        assert left(again) > spent if "new_people" in more else left(again) == spent
        assert not again.analyst("ana").ask(COUNT, epsilon=0.1).free
    # once more completes it
    done = again.refresh("visits", **(more if at == "record" or "find_limits" in more else {}))
    assert done.version.data_version == 2
    assert done.index is not None and done.index["state"] in {"built", "kept"}
    assert done.limits is not None
    assert again.ledger.epoch("visits") == (1 if "new_people" in more else 0)
    assert ("data_version" in done.limits) == ("new_people" in more)
    holds(again)


def test_a_refresh_is_plain_data(curator, folder):
    write(folder / "visits.parquet", range(1000, 1200))
    found = json.loads(json.dumps(curator.refresh("visits", **WAVE).to_dict()))
    assert found["epoch"] == 1 and found["new_people"] and found["state"] == "changed"
    assert found["data_version"] == 2 and found["closed"] == {} and found["files"]["rewritten"] == 1

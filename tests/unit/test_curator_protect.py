"""`Curator.protect`: the ledger is the truth, again is nothing, a change is confirmed."""

import stat
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius import Curator
from dalenius.errors import (
    HomeMissingError,
    InputError,
    LedgerCorruptError,
    NotAllowedError,
    PolicyInvalidError,
    SourceChangedError,
    SourceUnavailableError,
    UnknownTableError,
)
from dalenius.ledger import Ledger, verify
from dalenius.tables import Bounds, read_file

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "user_id"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
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
[contribution]
rows = 5
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, ages in (("visits", [20, 30]), ("orders", [40, 50])):
        pq.write_table(pa.table({"user_id": [1, 2], "age": ages}), tmp_path / f"{name}.parquet")
        (tmp_path / f"{name}.toml").write_text(POLICY if name == "visits" else ORDERS)
    return tmp_path


def kinds(curator):
    return [entry.kind for entry in curator.ledger.entries()]


def change(folder, before, after, name="visits"):
    file = folder / f"{name}.toml"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))


def test_a_new_table_makes_the_home_and_writes_budget_allotments_policy_in_this_order(folder):
    curator = Curator()
    with pytest.raises(HomeMissingError):
        curator.tables()
    (done,) = curator.protect("visits.toml")
    assert (done.state, done.recorded, done.needs) == ("new", True, ())
    assert kinds(curator) == ["ledger", "budget", "allotment", "policy"]
    assert curator.home == folder / ".dalenius" and stat.S_IMODE(curator.home.stat().st_mode) == 0o700
    copy = curator.home / "tables" / "visits.toml"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and read_file(copy) == curator.policy("visits")
    (version,) = curator.tables()
    assert version.data_version == 1 and version.fingerprint.paths == (folder / "visits.parquet",)
    verify(curator.ledger)


def test_again_with_the_same_policy_is_nothing(folder):
    Curator().protect("visits.toml")
    curator = Curator()
    (done,) = curator.protect("visits.toml")
    assert done.state == "unchanged" and done.recorded and len(kinds(curator)) == 4
    (curator.home / "tables" / "visits.toml").unlink()
    curator.protect("visits.toml")
    assert (curator.home / "tables" / "visits.toml").is_file()


def test_a_dry_run_writes_nothing(folder):
    (done,) = Curator().protect("visits.toml", dry_run=True)
    assert done.state == "new" and not done.recorded and not (folder / ".dalenius").exists()
    curator = Curator()
    curator.protect("visits.toml")
    change(folder, "[18, 90]", "[18, 99]")
    assert curator.protect("visits.toml", dry_run=True)[0].state == "changed" and len(kinds(curator)) == 4


def test_a_change_is_returned_and_recorded_only_when_confirmed(folder):
    curator = Curator()
    curator.protect("visits.toml")
    change(folder, "[18, 90]", "[18, 99]")
    (done,) = curator.protect("visits.toml")
    assert done.needs == ("yes",) and not done.recorded and len(kinds(curator)) == 4
    assert [each.place for each in done.difference] == ["columns.age.bounds"]
    (done,) = curator.protect("visits.toml", yes=True, reason="older people came")
    assert done.recorded and kinds(curator)[4:] == ["policy"]
    assert [version.reason for version in curator.history("visits")] == ["", "older people came"]
    assert Curator().policy("VISITS").columns["age"].bounds == Bounds(18, 99)


def test_more_epsilon_needs_a_reason_and_less_does_not(folder):
    curator = Curator()
    curator.protect("visits.toml")
    change(folder, "epsilon = 3.0", "epsilon = 4.0")
    assert curator.protect("visits.toml")[0].needs == ("yes", "reason")
    with pytest.raises(NotAllowedError, match="reason"):
        curator.protect("visits.toml", yes=True)
    assert curator.ledger.budget("visits").epsilon == 3.0
    curator.protect("visits.toml", yes=True, reason="a second survey")
    assert curator.ledger.budget("visits").epsilon == 4.0
    change(folder, "epsilon = 4.0", "epsilon = 2.0")
    curator.protect("visits.toml", yes=True)
    assert curator.ledger.budget("visits").epsilon == 2.0
    verify(curator.ledger)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("delta = 1e-6", "delta = 1e-5"),
        ("delta = 1e-6", "delta = 1e-6\nselection = 0.6"),
        ("delta = 1e-6", 'accounting = "pure"'),
        ('unit = "user_id"', 'unit = "age"'),
        ('unit = "user_id"', 'unit = "user_id"\nneighbors = "substitute"'),
        ('unit = "user_id"', 'unit = "user_id"\ndataset = "fresh"'),
    ],
)
def test_what_was_promised_is_never_changed(folder, before, after):
    curator = Curator()
    curator.protect("visits.toml")
    change(folder, before, after)
    with pytest.raises(NotAllowedError, match=r"cannot be changed|is known"):
        curator.protect("visits.toml", yes=True, reason="because")
    assert len(kinds(curator)) == 4


def test_an_analyst_who_leaves_the_file_leaves_the_ledger(folder):
    curator = Curator()
    curator.protect("visits.toml")
    change(folder, "[analysts.ana]\nepsilon = 1.0", "[analysts.bob]\nepsilon = 0.5")
    curator.protect("visits.toml", yes=True)
    assert curator.ledger.allotments("visits") == {"bob": 0.5}
    verify(curator.ledger)


def test_what_the_file_does_not_change_stays_as_the_ledger_has_it(folder):
    curator = Curator()
    curator.protect("visits.toml")
    curator.ledger.set_allotment("visits", "ana", 0.25)
    change(folder, "[18, 90]", "[18, 99]")
    curator.protect("visits.toml", yes=True)
    assert curator.ledger.allotments("visits") == {"ana": 0.25}


def test_tables_of_one_data_set_share_one_budget(folder):
    curator = Curator()
    with pytest.raises(PolicyInvalidError, match="has none yet"):
        curator.protect("orders.toml")
    done = curator.protect("orders.toml", "visits.toml")  # whichever comes first
    assert [each.version.table for each in done] == ["visits", "orders"]
    assert curator.ledger.datasets() == ["visits"]
    change(folder, "[columns.age]", "[budget]\nepsilon = 9\ndelta = 1e-6\n[columns.age]", "orders")
    with pytest.raises(PolicyInvalidError, match="stands in table 'visits'"):
        curator.protect("orders.toml", yes=True, reason="more")


def test_a_data_set_has_one_relation_and_one_kind_of_unit(folder):
    change(folder, 'unit = "user_id"', 'unit = ["user_id", "age"]', "orders")
    with pytest.raises(PolicyInvalidError, match=r"table\.unit"):
        Curator().protect("visits.toml", "orders.toml")


def test_two_policies_for_one_table_are_refused(folder):
    with pytest.raises(InputError, match="same table"):
        Curator().protect("visits.toml", "visits.toml")
    curator = Curator()
    curator.protect("visits.toml")
    change(folder, 'name = "orders"', 'name = "VISITS"', "orders")
    with pytest.raises(PolicyInvalidError, match=r"table\.name"):
        curator.protect("orders.toml")


def test_sources_that_are_missing_changed_or_other_are_refused_and_nothing_is_written(folder):
    (folder / "visits.parquet").rename(folder / "away.parquet")
    with pytest.raises(SourceUnavailableError):
        Curator().protect("visits.toml")
    assert not (folder / ".dalenius").exists()
    (folder / "away.parquet").rename(folder / "visits.parquet")
    curator = Curator()
    curator.protect("visits.toml")
    pq.write_table(pa.table({"user_id": [1, 2], "age": [20, 31]}), folder / "visits.parquet")
    with pytest.raises(SourceChangedError):
        curator.protect("visits.toml")
    (folder / "visits.parquet").write_text("junk that is long enough to look at")
    change(folder, "visits.parquet", "visits.parquet ".strip())
    with pytest.raises((SourceChangedError, SourceUnavailableError)) as caught:
        curator.protect("visits.toml")
    assert "junk" not in str(caught.value)


def test_a_moved_file_is_the_same_data_and_another_file_is_not(folder):
    curator = Curator()
    curator.protect("visits.toml")
    (folder / "visits.parquet").rename(folder / "moved.parquet")
    change(folder, "visits.parquet", "moved.parquet")
    assert curator.protect("visits.toml", yes=True)[0].version.data_version == 1
    pq.write_table(pa.table({"user_id": [1, 2, 3], "age": [20, 30, 40]}), folder / "next.parquet")
    change(folder, "moved.parquet", "next.parquet")
    assert curator.protect("visits.toml", yes=True)[0].version.data_version == 2


def test_a_policy_made_in_python_is_checked_like_any_other(folder):
    curator = Curator(folder / "elsewhere")
    policy = read_file(folder / "visits.toml")
    with pytest.raises(PolicyInvalidError):
        curator.protect(replace(policy, name="no good"))
    curator.protect(policy)
    assert curator.home == folder / "elsewhere" and curator.policy("visits") == policy
    assert Curator(ledger=Ledger.open(curator.home)).tables()[0].table == "visits"


def test_a_crash_between_the_entries_is_completed_by_the_next_call(folder, monkeypatch):
    curator = Curator()
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record_all", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            curator.protect("visits.toml")
    assert kinds(Curator()) == ["ledger", "budget", "allotment"] and Curator().tables() == []
    curator = Curator()
    curator.protect("visits.toml")
    assert kinds(curator) == ["ledger", "budget", "allotment", "policy"]


def test_a_policy_that_was_changed_in_the_ledger_is_refused(folder):
    curator = Curator()
    curator.protect("visits.toml")
    with curator.ledger.database.writing() as connection:
        connection.execute("UPDATE entries SET body = replace(body, '[18, 90]', '[18, 99]') WHERE kind = 'policy'")
        connection.execute("INSERT INTO entries SELECT 5, kind, time, body, x'00' FROM entries WHERE number = 1")
        connection.execute("DELETE FROM entries WHERE number = 5")
    with pytest.raises(LedgerCorruptError):
        Curator().policy("visits")


def test_unknown_tables_list_near_ones(folder):
    curator = Curator()
    curator.protect("visits.toml")
    with pytest.raises(UnknownTableError) as caught:
        curator.policy("vists")
    assert "'visits'" in caught.value.fix


def test_check_needs_no_home(folder):
    assert Curator().check("visits.toml").name == "visits"
    change(folder, "[columns.age]", "[columns.agee]")
    with pytest.raises(PolicyInvalidError, match=r"columns\.agee"):
        Curator().check("visits.toml")
    assert not (folder / ".dalenius").exists()


@pytest.mark.parametrize("other", [["1", "2"], [1.0, 2.0]])
def test_units_of_one_data_set_are_of_one_type(folder, other):
    """Joins compare them as they lie in the files: a conversion could fail on somebody's row, or merge two people."""
    pq.write_table(pa.table({"user_id": other, "age": [40, 50]}), folder / "orders.parquet")
    with pytest.raises(PolicyInvalidError, match="different types"):
        Curator().protect("visits.toml", "orders.toml")
    pq.write_table(pa.table({"user_id": pa.array([1, 2], pa.int32()), "age": [40, 50]}), folder / "orders.parquet")
    Curator().protect("visits.toml", "orders.toml")  # which compares exactly

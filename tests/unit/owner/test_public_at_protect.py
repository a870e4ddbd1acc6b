"""Public tables at `protect`: readable, unique where declared, nobody else's names and files, recorded and watched."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius import Curator
from dalenius.errors import NotAllowedError, PolicyInvalidError, SourceChangedError, SourceUnavailableError
from dalenius.tables.registry import check_public_unchanged

POLICY = """
[table]
name = "NAME"
source = "NAME.parquet"
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
[public]
tables = { TABLES }
"""
REGIONS = "code,name\n1,north\n2,south\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    for name, ages in (("visits", [20, 30]), ("orders", [40, 50])):
        pq.write_table(pa.table({"user_id": [1, 2], "age": ages}), tmp_path / f"{name}.parquet")
        policy(tmp_path, name, 'regions = { source = "regions.csv", key = "code" }')
    (tmp_path / "regions.csv").write_text(REGIONS)
    return tmp_path


def policy(folder, name, tables):
    (folder / f"{name}.toml").write_text(POLICY.replace("NAME", name).replace("TABLES", tables))


def test_the_files_of_public_tables_are_recorded_with_the_version(folder):
    curator = Curator()
    curator.protect("visits.toml", yes=True)
    again = Curator().tables()[0]
    assert [file.path for file in again.public["regions"].files] == [str(folder / "regions.csv")]
    assert [each.state for each in Curator().protect("visits.toml", yes=True)] == ["unchanged"]
    check_public_unchanged(again, ["regions"])


def test_a_version_without_public_tables_is_recorded_as_before(folder):
    curator = Curator()
    (folder / "visits.toml").write_text((folder / "visits.toml").read_text().split("[public]")[0])
    curator.protect("visits.toml", yes=True)
    assert "public" not in next(curator.ledger.records(("policy",))).data


def test_a_public_table_that_changed_is_told_until_it_is_recorded_again(folder):
    curator = Curator()
    curator.protect("visits.toml", yes=True)
    (folder / "regions.csv").write_text(REGIONS + "3,east\n")
    before = curator.tables()[0]
    with pytest.raises(SourceChangedError, match="'regions'"):
        check_public_unchanged(before, ["regions"])
    (planned,) = curator.protect("visits.toml")
    assert (planned.state, planned.needs) == ("changed", ("yes",))
    assert [change.place for change in planned.difference] == ["public.tables.regions.content"]
    curator.protect("visits.toml", yes=True)
    after = curator.tables()[0]
    assert (after.version, after.data_version) == (before.version, before.data_version)
    assert after.public != before.public
    check_public_unchanged(after, ["regions"])


def test_a_file_that_was_only_touched_is_the_same(folder):
    curator = Curator()
    curator.protect("visits.toml", yes=True)
    (folder / "regions.csv").write_text(REGIONS)
    check_public_unchanged(curator.tables()[0], ["regions"])
    assert [each.state for each in curator.protect("visits.toml", yes=True)] == ["unchanged"]


def test_a_key_must_be_unique_and_there(folder):
    (folder / "regions.csv").write_text(REGIONS + "2,west\n")
    for act in (Curator().protect, Curator().check):
        with pytest.raises(PolicyInvalidError, match=r"^public\.tables\.regions\.key: this is not unique"):
            act("visits.toml")
    policy(folder, "visits", 'regions = { source = "regions.csv", key = ["code", "name"] }')
    assert Curator().check("visits.toml").public["regions"].key == ("code", "name")
    policy(folder, "visits", 'regions = { source = "regions.csv", key = "cod" }')
    with pytest.raises(PolicyInvalidError, match=r"regions\.key: the public table has no column 'cod'") as caught:
        Curator().check("visits.toml")
    assert "'code'" in caught.value.fix


def test_a_public_file_must_be_there_and_readable(folder):
    policy(folder, "visits", 'regions = "none.csv"')
    with pytest.raises(SourceUnavailableError):
        Curator().protect("visits.toml", yes=True)
    (folder / "broken.parquet").write_bytes(b"PAR1 no PAR1")
    policy(folder, "visits", 'regions = "broken.parquet"')
    with pytest.raises(SourceUnavailableError):
        Curator().protect("visits.toml", yes=True)


def test_names_are_those_of_no_protected_table(folder):
    policy(folder, "visits", 'Orders = "regions.csv"')
    with pytest.raises(PolicyInvalidError, match="there is a protected table 'orders'"):
        Curator().protect("visits.toml", "orders.toml", yes=True)
    Curator().protect("visits.toml", yes=True)
    with pytest.raises(PolicyInvalidError, match="there is a protected table 'orders'"):
        Curator().protect("orders.toml", yes=True)


def test_a_public_name_means_the_same_files_everywhere(folder):
    Curator().protect("visits.toml", yes=True)
    (folder / "other.csv").write_text(REGIONS + "3,west\n")
    policy(folder, "orders", 'Regions = "other.csv"')
    with pytest.raises(PolicyInvalidError, match=r"^public\.tables\.Regions: table 'visits' means other files"):
        Curator().protect("orders.toml", yes=True)
    (folder / "other.csv").write_text(REGIONS)
    assert [each.recorded for each in Curator().protect("orders.toml", yes=True)] == [True]


def test_a_shared_public_table_changes_in_all_policies_at_once(folder):
    Curator().protect("visits.toml", "orders.toml", yes=True)
    (folder / "regions.csv").write_text(REGIONS + "3,west\n")
    with pytest.raises(PolicyInvalidError, match="means other files"):
        Curator().protect("visits.toml", yes=True)
    done = Curator().protect("visits.toml", "orders.toml", yes=True)
    assert [each.state for each in done] == ["changed", "changed"]


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_protected_cannot_be_declared_public(folder, at_once):
    policy(folder, "orders", 'people = "visits.parquet"')
    if not at_once:
        Curator().protect("visits.toml", yes=True)
    with pytest.raises(NotAllowedError, match="'people' shares a file with the protected table 'visits'"):
        Curator().protect("orders.toml", *(["visits.toml"] if at_once else []), yes=True)


def test_a_table_cannot_be_public_to_itself(folder):
    policy(folder, "visits", 'people = "visits.parquet"')
    with pytest.raises(NotAllowedError, match="shares a file"):
        Curator().protect("visits.toml", yes=True)


def test_what_was_protected_cannot_be_declared_public_under_another_name(folder):
    Curator().protect("visits.toml", yes=True)
    (folder / "copy.parquet").write_bytes((folder / "visits.parquet").read_bytes())
    (folder / "visits.parquet").unlink()
    pq.write_table(pa.table({"user_id": [7], "age": [70]}), folder / "new.parquet")
    moved = (folder / "visits.toml").read_text().replace("visits.parquet", "new.parquet")
    (folder / "visits.toml").write_text(moved)
    Curator().protect("visits.toml", yes=True)
    policy(folder, "orders", 'people = "copy.parquet"')
    with pytest.raises(NotAllowedError, match="shares a file with the protected table 'visits'"):
        Curator().protect("orders.toml", yes=True)


def test_what_is_or_was_public_cannot_be_protected(folder):
    pq.write_table(pa.table({"user_id": [8], "age": [80]}), folder / "people.parquet")
    policy(folder, "visits", 'people_ = "people.parquet"')
    policy(folder, "people", "")
    Curator().protect("visits.toml", yes=True)
    with pytest.raises(NotAllowedError, match="is the public table 'people_'"):
        Curator().protect("people.toml", yes=True)
    policy(folder, "visits", "")
    Curator().protect("visits.toml", yes=True)
    with pytest.raises(NotAllowedError, match="was the public table 'people_'"):
        Curator().protect("people.toml", yes=True)

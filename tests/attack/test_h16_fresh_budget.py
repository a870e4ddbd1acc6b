"""H16: a new session, a copy, a rename or a link of a table never gets a fresh budget."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius import Curator
from dalenius.accounting.events import Zcdp
from dalenius.errors import DaleniusError, NotAllowedError
from dalenius.ledger import Request

POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "user_id"
{more}
[columns.age]
type = "integer"
"""
BUDGET = "[budget]\nepsilon = 1.0\ndelta = 1e-6\n[analysts.ana]\nepsilon = 1.0"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """One protected table, half of its budget gone."""
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"user_id": [1, 2], "age": [20, 30]}), tmp_path / "data" / "a.parquet")
    curator = protect(tmp_path, "visits", "data/a.parquet")
    rho = curator.ledger.budget("visits").filter().price(0.5).rho
    curator.ledger.ask(Request("visits", "ana", "count", 0.5, Zcdp(rho)), lambda _: b"1")
    return tmp_path


def protect(folder, name, source, more=BUDGET, yes=False):
    (folder / f"{name}.toml").write_text(POLICY.format(name=name, source=source, more=more))
    curator = Curator()
    curator.protect(folder / f"{name}.toml", yes=yes, reason="r" if yes else "")
    return curator


def left():
    return Curator().ledger.balance("visits", "ana").remaining_epsilon


def test_a_new_session_sees_the_old_balance(folder):
    before = left()
    assert 0 < before < 1
    protect(folder, "visits", "data/a.parquet")
    assert left() == before


def copied(folder):
    shutil.copy(folder / "data/a.parquet", folder / "b.parquet")
    return "b.parquet"


def renamed(folder):
    (folder / "data/a.parquet").rename(folder / "b.parquet")
    return "b.parquet"


def linked(folder):
    (folder / "b.parquet").symlink_to(folder / "data/a.parquet")
    return "b.parquet"


def hard_linked(folder):
    (folder / "b.parquet").hardlink_to(folder / "data/a.parquet")
    return "b.parquet"


def rewritten_in_place(folder):
    pq.write_table(pa.table({"user_id": [1, 2], "age": [21, 31]}), folder / "data" / "a.parquet")
    return "data/a.parquet"


def among_others(folder):
    (folder / "more").mkdir()
    shutil.copy(folder / "data/a.parquet", folder / "more/a.parquet")
    pq.write_table(pa.table({"user_id": [3], "age": [40]}), folder / "more/b.parquet")
    return "more/*.parquet"


def respelled(folder):
    return "data/../data/[a].parquet"


TRICKS = [copied, renamed, linked, hard_linked, rewritten_in_place, among_others, respelled]


@pytest.mark.parametrize("trick", TRICKS)
def test_the_same_data_under_another_name_gets_no_budget_of_its_own(folder, trick):
    source = trick(folder)
    with pytest.raises(NotAllowedError, match="is known as table 'visits'"):
        protect(folder, "copy", source)
    assert Curator().ledger.datasets() == ["visits"]


@pytest.mark.parametrize("trick", [copied, linked, among_others])
def test_it_may_join_the_data_set_and_then_sees_the_old_balance(folder, trick):
    before = left()
    protect(folder, "copy", trick(folder), more='dataset = "visits"')
    assert Curator().ledger.datasets() == ["visits"] and left() == before
    assert {version.dataset for version in Curator().tables()} == {"visits"}


def test_a_source_that_was_left_behind_is_remembered(folder):
    pq.write_table(pa.table({"user_id": [3], "age": [40]}), folder / "other.parquet")
    protect(folder, "visits", "other.parquet", yes=True)
    assert Curator().tables()[0].data_version == 2
    with pytest.raises(NotAllowedError, match="is known as table 'visits'"):
        protect(folder, "again", "data/a.parquet")


def test_two_names_at_once_are_seen_too(folder):
    shutil.copy(folder / "data/a.parquet", folder / "x.parquet")
    pq.write_table(pa.table({"user_id": [9], "age": [9]}), folder / "x.parquet")
    shutil.copy(folder / "x.parquet", folder / "y.parquet")
    for name in ("x", "y"):
        (folder / f"{name}.toml").write_text(POLICY.format(name=name, source=f"{name}.parquet", more=BUDGET))
    with pytest.raises(NotAllowedError, match="is known"):
        Curator().protect(folder / "x.toml", folder / "y.toml")


def test_a_table_cannot_move_to_a_data_set_with_a_fresh_budget(folder):
    with pytest.raises(DaleniusError, match=r"known as|cannot be changed"):
        protect(folder, "visits", "data/a.parquet", more=f'dataset = "fresh"\n{BUDGET}', yes=True)
    assert Curator().ledger.datasets() == ["visits"]


def test_an_allotment_that_ended_and_came_back_remembers_what_was_spent(folder):
    before = left()
    protect(folder, "visits", "data/a.parquet", more=BUDGET.replace(".ana", ".bob"), yes=True)
    assert "ana" not in Curator().ledger.allotments("visits")
    protect(folder, "visits", "data/a.parquet", yes=True)
    assert left() == before

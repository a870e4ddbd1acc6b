"""A source that is rewritten with its old size and time, under an index that is about the rows before.

The index then said of one person with 4,000 rows that nobody has more than one: nothing was clipped, and a limit of
two rows gave 3999 ± 10.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attack.served import QUICK
from tests.serving import serving

from dalenius.curator import Curator
from dalenius.errors import SourceChangedError
from dalenius.measuring.engines.duckdb.index import Index
from dalenius.releasing.opened import tables_of
from dalenius.tables.sources import fingerprint

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 50.0
delta = 1e-6
[analysts.eve]
epsilon = 50.0
[columns.amount]
type = "integer"
bounds = [0, 1000]
[columns.region]
type = "integer"
keys = [0, 1, 2, 3]
[columns.other]
type = "integer"
bounds = [0, 10]
[contribution]
rows = 2
totals = { amount = 10 }
[time]
answer = 1.0
"""
ROWS = 4000
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE other >= 0"
LIGHT: dict[str, list[int]] = {
    "person": list(range(ROWS)),
    "amount": [0, *([1] * (ROWS - 2)), 1000],
    "region": [at % 4 for at in range(ROWS)],
    "other": [at % 10 for at in range(ROWS)],
}


def write(file: Path, columns: dict[str, list[int]]) -> None:
    """Plain numbers in a file whose size follows from how many there are."""
    table = pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})
    pq.write_table(table, file, use_dictionary=False, compression="none", write_statistics=False)


def rewrite(file: Path, columns: dict[str, list[int]], how: str = "in place") -> None:
    """Other rows in a file of the same size, with the same modification time."""
    before, fresh = file.stat(), file.with_suffix(".new")
    write(fresh, columns)
    if how == "in place":
        file.write_bytes(fresh.read_bytes())
        fresh.unlink()
    else:
        fresh.replace(file)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


@pytest.fixture
def curator(tmp_path):
    write(tmp_path / "visits.parquet", LIGHT)
    (tmp_path / "visits.toml").write_text(POLICY)
    found = Curator(tmp_path / "home")
    (made,) = found.protect(tmp_path / "visits.toml")
    assert (made.index or {})["state"] == "built"
    return found


@pytest.fixture
def file(tmp_path):
    return tmp_path / "visits.parquet"


ONE_PERSON = {**LIGHT, "person": [7] * ROWS}


@pytest.mark.parametrize("how", ["in place", "by rename"])
@pytest.mark.parametrize("warm", [True, False], ids=["a process that has asked before", "a new one"])
def test_rows_exchanged_under_their_old_size_and_time_are_refused_for_nothing(curator, file, how, warm):
    if warm:
        curator.analyst("eve").ask(COUNT, epsilon=0.1)
    rewrite(file, ONE_PERSON, how)
    other = curator if warm else Curator(curator.home)
    with pytest.raises(SourceChangedError) as caught:
        other.analyst("eve").ask(COUNT, epsilon=5.0)
    assert caught.value.charge.epsilon == 0


def test_over_http_too(curator, file):
    curator.ledger.database.close()
    with serving(curator.home, config=QUICK) as server:
        eve = server.analyst("eve")
        first = eve.ask(COUNT, epsilon=0.1)
        assert first.status == 200
        rewrite(file, ONE_PERSON)
        again = eve.ask(COUNT, epsilon=5.0)
        assert (again.status, again.json["code"]) == (409, "source.changed")
        rewrite(file, LIGHT)
        assert eve.ask(COUNT, epsilon=5.0).status == 200  # put back: no refresh is needed


# --- the second line: should the check of the files not see it


HEAVY = {
    "one person": (ONE_PERSON, COUNT),
    "half of them one person": ({**LIGHT, "person": [*range(ROWS // 2), *([7] * (ROWS // 2))]}, COUNT),
    "totals": (
        {**LIGHT, "amount": [*([1000] * (ROWS // 2)), *([1] * (ROWS // 2))]},
        "SELECT SUM(amount) AS n FROM visits WHERE other >= 0",
    ),
    "keys": (
        {**LIGHT, "region": [0] * ROWS},
        "SELECT region, COUNT(*) AS n FROM visits WHERE other >= 0 GROUP BY region",
    ),
    "no person": ({**LIGHT, "person": [at + ROWS for at in range(ROWS)]}, COUNT),
}


@pytest.mark.parametrize("warm", [True, False], ids=["a process that has asked before", "a new one"])
@pytest.mark.parametrize("what", HEAVY)
def test_an_index_is_not_used_for_rows_that_it_does_not_know(curator, file, what, warm, monkeypatch):
    monkeypatch.setattr(fingerprint, "unchanged", lambda *_: True)
    columns, question = HEAVY[what]
    if warm:
        curator.analyst("eve").ask(question, epsilon=0.1)
    rewrite(file, columns)
    asked = curator if warm else Curator(curator.home)
    with pytest.raises(SourceChangedError) as caught:
        asked.analyst("eve").ask(question, epsilon=5.0)
    assert caught.value.charge.epsilon == 5.0
    alarms = [entry.data["alarm"] for entry in asked.ledger.records(("note",)) if "alarm" in entry.data]
    assert alarms == ["source changed"]


def test_an_index_of_other_rows_is_not_used_though_it_says_that_it_is_the_right_one(tmp_path, curator, monkeypatch):
    monkeypatch.setattr(Index, "matches", lambda self, found, expected: True)
    other = tmp_path / "other"
    other.mkdir()
    write(other / "visits.parquet", ONE_PERSON)
    (other / "visits.toml").write_text(POLICY)
    second = Curator(other / "home")
    second.protect(other / "visits.toml")
    (stale,), (own,) = ([*(each.home / "storage").glob("*.parquet")][:1] for each in (curator, second))
    for here, there in zip(
        sorted((curator.home / "storage").glob("*.parquet"), key=lambda path: path.name.rpartition("-")[2][:1]),
        sorted((second.home / "storage").glob("*.parquet"), key=lambda path: path.name.rpartition("-")[2][:1]),
        strict=True,
    ):
        shutil.copyfile(here, there)
    assert stale != own
    with pytest.raises(SourceChangedError):
        Curator(second.home).analyst("eve").ask(COUNT, epsilon=5.0)


@pytest.mark.parametrize("how", ["in place", "by rename"])
def test_rows_that_are_exchanged_while_they_are_read_and_put_back_are_refused(curator, file, how, monkeypatch):
    eve = curator.analyst("eve")
    eve.ask(COUNT, epsilon=0.1)
    tables = tables_of(eve._asker, eve._asker.registry.current())
    engine = curator.engines.of(curator.tables()[0].fingerprint, tables["visits"])
    run = engine.run

    def exchanged(sql, **more):
        rewrite(file, ONE_PERSON, how)
        try:
            return run(sql, **more)
        finally:
            rewrite(file, LIGHT, how)

    monkeypatch.setattr(engine, "run", exchanged)
    with pytest.raises(SourceChangedError):
        eve.ask(COUNT, epsilon=5.0)
    monkeypatch.setattr(engine, "run", run)
    eve.ask(COUNT, epsilon=6.0)  # put back


# --- what is no change


@pytest.mark.parametrize("how", ["cp -p", "mv", "touch", "chmod"])
def test_the_same_bytes_elsewhere_on_the_disk_are_no_change(curator, file, how):
    eve = curator.analyst("eve")
    eve.ask(COUNT, epsilon=0.1)
    if how == "cp -p":
        shutil.copy2(file, file.with_suffix(".backup"))
        file.unlink()
        file.with_suffix(".backup").replace(file)
    elif how == "mv":
        file.replace(file.with_suffix(".away"))
        file.with_suffix(".away").replace(file)
    elif how == "touch":
        os.utime(file)
    else:
        file.chmod(0o600)
    assert 3000 < eve.ask(COUNT, epsilon=5.0).rows[0][0] < 5000
    assert 3000 < Curator(curator.home).analyst("eve").ask(COUNT, epsilon=6.0).rows[0][0] < 5000
    assert not [entry for entry in curator.ledger.records(("note",)) if "alarm" in entry.data]

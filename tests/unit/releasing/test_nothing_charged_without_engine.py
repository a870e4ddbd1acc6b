"""When the engine cannot start, nothing is charged: for lack of memory, threads, handles, or a connection."""

import os
import threading
from pathlib import Path

import duckdb
import pytest
from tests.attack.hostile import people, protected

from dalenius.errors import EngineFailedError
from dalenius.measuring.engines.duckdb import opening

SQL = "SELECT COUNT(*) AS n FROM visits WHERE age < {}"


@pytest.fixture
def curator(tmp_path):
    found = protected(tmp_path, people(victim=False, units=50, rows=100), analysts={"eve": 1.0})
    assert found.analyst("eve").ask(SQL.format(30), epsilon=0.1).rows  # everything is warm
    yield found
    found.ledger.database.close()


def refused(curator, at):
    before = curator.ledger.balance("visits").charges
    with pytest.raises(EngineFailedError, match="cannot start") as caught:
        curator.analyst("eve").ask(SQL.format(at), epsilon=0.1)
    assert caught.value.charge.epsilon == 0
    assert curator.ledger.balance("visits").charges == before


def test_without_memory(curator, monkeypatch):
    monkeypatch.setattr(opening, "_machine", lambda: opening.LEAST - 1)
    refused(curator, 31)
    monkeypatch.setattr(opening, "_machine", lambda: opening.LEAST)
    assert curator.analyst("eve").ask(SQL.format(31), epsilon=0.1).charge["epsilon"] == 0.1


def test_without_threads(curator, monkeypatch):
    def none(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none)
    refused(curator, 32)


def test_without_handles(curator, monkeypatch):
    real, left = os.open, [5]

    def few(path, *args, **more):
        if str(path) == os.devnull:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(24, "Too many open files")
        return real(path, *args, **more)

    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(os, "open", few)
    refused(curator, 33)
    monkeypatch.undo()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1  # those that were taken are given back


@pytest.mark.parametrize("error", [MemoryError(), duckdb.OutOfMemoryException("no"), RuntimeError("thread")])
def test_without_a_connection(curator, monkeypatch, error):
    curator.engines.close()

    def none(*args, **more):
        raise error

    (pool,) = curator.engines._pools.values()
    assert not pool._engines
    curator.analyst("eve").ask(SQL.format(30), epsilon=0.1)  # opens it anew; it is free
    (engine,) = pool._engines.values()
    engine._connection = None  # as after an error that ended it
    monkeypatch.setattr("dalenius.measuring.engines.duckdb.connections.open_locked", none)
    refused(curator, 34)
    assert opening.open_locked is not none


def test_limits_of_the_process_and_the_container_count(monkeypatch, tmp_path):
    assert opening.available() > 0
    monkeypatch.setattr(opening, "_CGROUP", tmp_path)
    assert opening._container() == float("inf")
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 50\n")
    assert opening._container() == 150
    (tmp_path / "memory.max").write_text("max\n")
    assert opening._container() == float("inf")

"""The lab of the console: few runs at once, each with an end, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI

from dalenius.app.console import lab
from dalenius.app.console.charts import curves
from dalenius.app.http.application import _lifespan
from dalenius.errors import DaleniusError, EngineFailedError, EngineTimeoutError, InputError


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_one_run_of_a_token_and_few_in_all(monkeypatch):
    open_, started = threading.Event(), threading.Semaphore(0)

    def waiting(name):
        started.release()
        open_.wait(30)
        return [{"attack": name}]

    monkeypatch.setattr(lab, "_run", waiting)

    async def acted():
        runs = lab.Runs()
        going = [asyncio.create_task(runs.run("race", f"t{number}")) for number in range(lab.MOST)]
        await asyncio.to_thread(lambda: [started.acquire(timeout=30) for _ in going])
        for token in ("t0", "other"):
            with pytest.raises(DaleniusError) as error:
                await runs.run("race", token)
            assert error.value.status == 429
        going[0].cancel()  # who goes away meanwhile does not make room
        await asyncio.sleep(0)
        with pytest.raises(DaleniusError):
            await runs.run("race", "other")
        open_.set()
        assert await going[1] == [{"attack": "race"}]
        while runs._of:
            await asyncio.sleep(0.01)
        assert await runs.run("race", "t0") == [{"attack": "race"}]

    asyncio.run(acted())


def test_what_is_no_attack_never_becomes_an_argument(monkeypatch):
    monkeypatch.setattr(lab, "_run", lambda _: pytest.fail("It was run."))
    with pytest.raises(InputError):
        asyncio.run(lab.Runs().run("--help", "t"))


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (subprocess.TimeoutExpired("python", 1), EngineTimeoutError),
        (subprocess.CalledProcessError(1, "python"), EngineFailedError),
        (OSError(12, "no memory"), EngineFailedError),
    ],
)
def test_a_run_that_fails_says_so_and_leaves_nothing(monkeypatch, tmp_path, failure, expected):
    def failing(*_, **more):
        assert Path(more["cwd"]).is_dir() and more["timeout"] == lab.SECONDS
        (Path(more["cwd"]) / "left").touch()
        raise failure

    monkeypatch.setattr(subprocess, "run", failing)
    with pytest.raises(expected) as error:
        lab._run("race")
    assert "no memory" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_process_is_told_nothing_of_the_server(monkeypatch, tmp_path):
    monkeypatch.setenv("DALENIUS_TOKEN", "dalenius_secret")
    told: dict[str, Any] = {}

    def watched(words, **more):
        told.update(more["env"], words=words)
        return subprocess.CompletedProcess(words, 0, b'{"findings": []}')

    monkeypatch.setattr(subprocess, "run", watched)
    assert lab._run("race") == []
    assert told["words"][1:] == ["-m", "dalenius.audit.lab_process", "race", "leashed"]
    assert not any(name.startswith("DALENIUS") for name in told)


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_it_ends_with_the_server_and_leaves_nothing(tmp_path, ended):
    """Neither does a server wait for it, nor does it outlive one."""
    code = (
        "import subprocess, sys, threading, time\n"
        "from dalenius.app.console import lab\n"
        "class Told(subprocess.Popen):\n"
        "    def __init__(self, *given, **more):\n"
        "        super().__init__(*given, **more)\n"
        "        print('it runs', flush=True)\n"
        "subprocess.Popen = Told\n"
        "threading.Thread(target=lambda: lab._run('averaging'), daemon=True).start()\n"
        "sys.stdin.read(1)\n"
        "lab.RUNS.stop()\n"
        "time.sleep(100)\n"
    )
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], **pipes, env=env) as server:
        try:
            assert server.stdout is not None and server.stdout.readline() == b"it runs\n"
            assert list(tmp_path.iterdir())
            if ended == "killed":
                server.kill()
            else:
                assert server.stdin is not None
                server.stdin.write(b"x")
                server.stdin.flush()
            assert reached(lambda: not list(tmp_path.iterdir()))
        finally:
            server.kill()


def test_a_server_that_ends_stops_what_runs(monkeypatch):
    stopped = []
    monkeypatch.setattr(lab.Runs, "stop", lambda _: stopped.append(1))
    service = SimpleNamespace(busy=False, settings=SimpleNamespace(grace=0.0), close=lambda: None)

    async def lived(console):
        app: Any = SimpleNamespace(state=SimpleNamespace(console=console, service=service))
        async with _lifespan(app):
            assert not stopped

    asyncio.run(lived(None))
    assert not stopped
    asyncio.run(lived(FastAPI()))
    assert stopped


def reached(done):
    end = time.monotonic() + 60
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_curves_have_a_colour_of_their_target_and_few_points():
    def finding(target, *labels):
        drawn = [{"label": each, "x": list(range(5000)), "y": list(range(5000))} for each in labels]
        return {
            "target": target,
            "drawing": {"title": "t", "x": "x", "y": "y", "log_x": True, "log_y": False, "curves": drawn},
        }

    found = curves([finding("plain", "plain", "guessing"), finding("noisy", "noisy", "guessing")])
    assert [each["name"] for each in found["series"]] == ["plain", "guessing", "noisy"]
    assert max(len(each["data"]) for each in found["series"]) <= 500
    assert found["xAxis"]["type"] == "log" and found["yAxis"]["type"] == "value"
    both = curves([finding("noisy", "median", "mean"), finding("sticky", "median", "mean")])
    assert [each["name"] for each in both["series"]][:2] == ["noisy: median", "noisy: mean"]

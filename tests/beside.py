"""Tests that only compute, beside those that measure time: these mostly wait, and leave a core idle or two.

`make test` runs what is marked `alone` first. Meanwhile processes of Linux's idle policy take what the cores have left;
whatever else wants to run does so at once, as if they were not there. While a test marked `quiet` looks for a few
milliseconds they stand still, and they are ended with those that measure. The run of the rest then leaves out what
passed. What had not ended, or failed where it may have starved, runs there as ever: so whatever goes wrong here costs
time alone, and only what does not depend on chance belongs here.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

# One process each: no servers, no clocks, no chance.
PARTS = (
    (
        "tests/unit/measuring/engines/duckdb/statements",
        "tests/unit/measuring/engines/duckdb/test_index.py",
        "tests/unit/measuring/limits",
        "tests/unit/measuring/test_covariance.py",
        "tests/unit/measuring/test_domains.py",
        "tests/unit/measuring/test_functions.py",
    ),
    (
        "tests/attack/test_planted_bugs.py",
        "tests/unit/accounting",
        "tests/unit/mechanisms",
        "tests/unit/audit",
    ),
)

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def pytest_addoption(parser: pytest.Parser) -> None:
    for name in ("start", "write", "read"):
        parser.addoption(f"--beside-{name}", metavar="PATH")


def pytest_configure(config: pytest.Config) -> None:
    for name, role in (("start", Starting), ("write", Writing), ("read", Reading)):
        if (folder := config.getoption(f"--beside-{name}")) is not None:
            config.pluginmanager.register(role(config, Path(folder)))


class Starting:
    """Those that measure: starts the others with itself, and ends them."""

    def __init__(self, _: pytest.Config, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def pytest_sessionstart(self) -> None:
        for number, paths in enumerate(PARTS):
            given = ("-p", "tests.beside", "--beside-write", str(self.folder / f"{number}.ended"))
            own = ("-p", "no:cacheprovider", "--basetemp", str(self.folder / f"files{number}"))
            with (self.folder / f"{number}.log").open("wb") as log:
                command = [sys.executable, "-m", "pytest", "-m", "not alone and not statistical", *given, *own, *paths]
                self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        for each in self.processes:
            each.send_signal(signal.SIGSTOP if item.get_closest_marker("quiet") else signal.SIGCONT)
        return (yield)

    def pytest_sessionfinish(self) -> None:
        for each in self.processes:
            each.kill()
            each.wait()


class Writing:
    """One of the others: writes down how each test ended."""

    def __init__(self, _: pytest.Config, file: Path) -> None:
        self.file = file.open("w")
        if sys.platform == "linux":
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        else:
            os.nice(19)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        print(json.dumps([report.outcome, report.nodeid]), file=self.file, flush=True)


class Reading:
    """The rest: leaves out what passed beside, and says so."""

    def __init__(self, _: pytest.Config, folder: Path) -> None:
        ended: dict[str, list[str]] = defaultdict(list)
        for file in folder.glob("*.ended"):
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # else it was ended while it wrote
                    outcome, name = json.loads(line)
                    ended[name].append(outcome)
        self.passed = {name for name, outcomes in ended.items() if outcomes == ["passed"] * 3}  # setup, call, teardown
        self.failed = sorted(name for name, outcomes in ended.items() if "failed" in outcomes)

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid in self.passed])
        items[:] = [each for each in items if each.nodeid not in self.passed]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"{len(self.passed)} more passed beside those that measure time.")
        for name in self.failed:
            terminalreporter.write_line(f"{name} failed beside them, and ran again.")

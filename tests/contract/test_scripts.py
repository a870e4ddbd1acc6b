"""The one-command start: what `make` says when something is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests import beside

ROOT = Path(__file__).parents[2]


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """A PATH without uv, which would make environments by itself."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if not (Path(folder) / "uv").exists())


def fake_python(folder: Path, fails_on: str) -> str:
    path = folder / "python"
    path.write_text(
        f"""#!/bin/sh
case "$2" in *{fails_on}*) exit 1;; esac
[ "$1" = --version ] && echo Python 3.9.1
exit 0
"""
    )
    path.chmod(0o755)
    return str(path)


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path, bare_path: str):
    python = fake_python(tmp_path, fails_on="ensurepip")
    done = run("scripts/environment", str(tmp_path / "venv"), "dev", PYTHON=python, PATH=bare_path)
    assert done.returncode != 0
    assert "apt install python3-venv" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_an_old_python_is_named(tmp_path: Path):
    python = fake_python(tmp_path, fails_on="version_info")
    done = run("scripts/environment", str(tmp_path / "venv"), "dev", PYTHON=python)
    assert done.returncode != 0
    assert "needs Python 3.11" in done.stderr
    assert "3.9.1" in done.stderr


def test_a_missing_python_is_answered(tmp_path: Path):
    done = run("scripts/environment", str(tmp_path / "venv"), "dev", PYTHON="no-such-python")
    assert done.returncode != 0
    assert "no-such-python" in done.stderr


def test_system_packages_that_are_here_are_left_alone():
    assert run("scripts/system-packages").stderr == ""
    done = run("scripts/system-packages", DALENIUS_SYSTEM_PACKAGES="bash no-such-package\nls another-one")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_help_lists_the_targets():
    done = run("make", "--no-print-directory", "help")
    for target in ("demo", "test", "test-long", "lint", "docs", "bench", "clean"):
        assert f"make {target} " in done.stdout


def test_what_runs_beside_those_that_measure_time_is_there():
    """A path that is gone would end its part, and nobody would notice more than the time."""
    assert all((ROOT / path).exists() for part in beside.PARTS for path in part)

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Annotated

import pytest
import typer

from dalenius.app.cli import COMMANDS, build, frame, run
from dalenius.app.cli.frame import Frame, framed, group
from dalenius.errors import BudgetError, Charge, Fits


@framed
def greet(frame: Frame, name: str, times: Annotated[int, typer.Option()] = 1) -> None:
    """Greets."""
    print("a library that prints")
    frame.note("on the side")
    answer = {"name": name, "times": times, "home": frame.home, "odd": float("nan")}
    frame.emit(answer, lambda console: console.print(f"Hello {name}"))


@framed
def refuse(frame: Frame) -> None:
    """Refuses after it has answered."""
    frame.emit({"half": "an answer"}, lambda console: console.print("half an answer"))
    raise BudgetError("Too [red]dear[/red]", why="w", fix="f", charge=Charge(), fits=Fits(0.12))


@framed
def crash(frame: Frame) -> None:
    """Hits a bug."""
    raise ValueError("row 17: Tore, born 1917")


@framed
def fail_check(frame: Frame) -> None:
    """Runs well and finds something wrong."""
    frame.emit({"ok": False}, lambda console: console.print("not ok"), exit_code=6)


@framed
def interrupt(frame: Frame) -> None:
    """Is stopped by Ctrl-C."""
    raise KeyboardInterrupt


@framed
def answer_twice(frame: Frame) -> None:
    """Breaks the rule of one answer."""
    frame.emit({}, lambda _: None)
    frame.emit({}, lambda _: None)


def app() -> typer.Typer:
    app = group("Things to try.")
    inner = group("More things.")
    inner.command("greet")(greet)
    app.add_typer(inner, name="inner")
    for command in (greet, refuse, crash, fail_check, interrupt, answer_twice):
        app.command(command.__name__.replace("_", "-"))(command)
    return app


Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "line",
    [
        "--json greet Tore",
        "greet --json Tore",
        "greet Tore --json",
        "inner --json greet Tore",
        "inner greet Tore --json",
    ],
)
def test_global_options_count_wherever_they_stand(line: str, capsys: Captured):
    assert run(app(), line.split()) == 0
    assert json.loads(capsys.readouterr().out) == {"name": "Tore", "times": 1, "home": None, "odd": None}


def test_the_inner_home_wins(capsys: Captured):
    assert run(app(), ["--home", "outer", "greet", "Tore", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["home"] == "outer"
    assert run(app(), ["--home", "outer", "greet", "Tore", "--json", "--home", "inner"]) == 0
    assert json.loads(capsys.readouterr().out)["home"] == "inner"


def test_after_two_dashes_nothing_is_an_option(capsys: Captured):
    assert run(app(), ["greet", "--", "--json"]) == 0
    assert "Hello --json" in capsys.readouterr().out


def test_quiet_leaves_the_answer_only(capsys: Captured):
    run(app(), ["greet", "Tore"])
    assert "on the side" in capsys.readouterr().err
    run(app(), ["greet", "Tore", "--quiet"])
    captured = capsys.readouterr()
    assert "on the side" not in captured.err
    assert "Hello Tore" in captured.out


def test_a_late_failure_leaves_no_half_answer(capsys: Captured):
    assert run(app(), ["refuse", "--json"]) == 4
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "budget.exhausted"
    assert error["fits"] == {"epsilon": 0.12}


def test_people_read_what_why_fix_and_cost_on_stderr(capsys: Captured):
    assert run(app(), ["refuse"]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    for part in (
        "budget.exhausted",
        "Too [red]dear[/red]",
        "why",
        "what to do",
        "0.12",
        "No budget was spent.",
    ):
        assert part in captured.err


@pytest.mark.parametrize("line", ["greet", "greet Tore --times x", "greet Tore --nope", "nope", "", "inner"])
def test_usage_errors_have_the_error_shape(line: str, capsys: Captured):
    assert run(app(), [*line.split(), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert set(error) == {"code", "message", "why", "fix", "charge", "fits", "at"}
    assert error["code"] == "input.invalid"
    assert "--help" in error["fix"]


@pytest.mark.parametrize("line", ["greet", "greet Tore --times x", "nope"])
def test_usage_errors_for_people_leave_stdout_empty(line: str, capsys: Captured):
    assert run(app(), line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "--help" in captured.err


@pytest.mark.parametrize("json_option", [[], ["--json"]])
def test_a_bug_shows_no_data(json_option: list[str], capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DALENIUS_DEBUG", raising=False)
    assert run(app(), ["crash", *json_option]) == 1
    captured = capsys.readouterr()
    assert "Tore" not in captured.out + captured.err
    assert "Traceback" not in captured.err
    assert "internal" in captured.out + captured.err


def test_a_bug_shows_its_traceback_on_request(capsys: Captured, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DALENIUS_DEBUG", "1")
    assert run(app(), ["crash", "--json"]) == 1
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert json.loads(captured.out)["error"]["code"] == "internal"


def test_a_failed_check_answers_and_exits_6(capsys: Captured):
    assert run(app(), ["fail-check", "--json"]) == 6
    assert json.loads(capsys.readouterr().out) == {"ok": False}


def test_a_command_answers_once(capsys: Captured):
    assert run(app(), ["answer-twice"]) == 1


def test_ctrl_c_ends_quietly(capsys: Captured):
    assert run(app(), ["interrupt"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("line", ["--version", "greet --version"])
def test_version_needs_no_other_argument(line: str, capsys: Captured):
    from dalenius import __version__

    assert run(app(), line.split()) == 0
    assert capsys.readouterr().out == f"dalenius {__version__}\n"
    assert run(app(), [*line.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"version": __version__}


@pytest.mark.parametrize("line", ["--help", "greet --help", "inner --help"])
def test_help_lists_the_global_options(line: str, capsys: Captured):
    assert run(app(), line.split()) == 0
    text = capsys.readouterr().out
    assert all(option in text for option in ("--home", "--json", "--quiet", "--version", "--help"))


def test_a_closed_pipe_is_no_error():
    program = "import sys; from dalenius.app.cli import main; main(['--help'])"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_command_loads_its_own_module_and_no_other():
    program = (
        "import contextlib, io, sys; from dalenius.app.cli import COMMANDS, main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['ask', '--help'])\n"
        "print(*(each for each in set(COMMANDS.values()) if f'dalenius.app.cli.{each}' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ask"]


def test_every_command_is_where_it_is_said_to_be():
    for name in COMMANDS:
        assert run(build(), [name, "--help"]) == 0


def test_json_knows_what_commands_hold():
    import numpy as np

    data = {
        "a": np.float64("inf"),
        "b": np.int64(3),
        "c": np.array([1.5, np.nan]),
        "d": Path("x"),
        "e": {2, 1},
    }
    assert frame.plain(data) == {"a": None, "b": 3, "c": [1.5, None], "d": "x", "e": [1, 2]}
    assert frame.plain([date(2024, 5, 1), None, True]) == ["2024-05-01", None, True]
    with pytest.raises(TypeError):
        frame.plain(object())

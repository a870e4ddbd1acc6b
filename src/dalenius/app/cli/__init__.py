"""The command line: its commands, and what becomes of one that goes wrong.

A command is a module of this package with a function `register(app)`; `frame.py` shows how one is
written. Adding a command means adding its name and its module to `COMMANDS`. Only the module of the command that runs
is loaded, and all of them for `dalenius --help`: they import light things alone at the top.
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from dalenius.app.cli.frame import Frame, group, print_error, print_json
from dalenius.errors import DaleniusError, InputError, InternalError, OtherHomeError

if TYPE_CHECKING:
    from collections.abc import Sequence

# As shells count them: 128 + the signal that would have ended the process.
INTERRUPTED = 130
BROKEN_PIPE = 141
_GARBAGE = 50_000  # objects that are new, before any is looked at again
# In the order of `dalenius --help`, each with its module.
COMMANDS = {
    "demo": "demo",
    "protect": "protect",
    "refresh": "protect",
    "tables": "tables",
    "explain": "explain",
    "preview": "ask",
    "ask": "ask",
    "workload": "workload",
    "synthesize": "synthesize",
    "train": "train",
    "anonymize": "anonymize",
    "collect": "collect",
    "joint": "joint",
    "party": "party",
    "budget": "budget",
    "account": "account",
    "serve": "serve",
    "policy": "policy",
    "analyst": "analyst",
    "token": "token",
    "ledger": "ledger",
    "audit": "audit",
    "attack": "attack",
}


class _Commands(Mapping[str, Any]):
    """The commands by name, each loaded when it is looked at."""

    def __getitem__(self, name: str) -> Any:
        return _load(COMMANDS[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    """All commands, of which nothing is loaded yet."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.commands = cast("Any", _Commands())  # which is only ever read


@cache
def _load(module: str) -> Mapping[str, Any]:
    """The commands of a module."""
    holder = group("")
    import_module(f"{__name__}.{module}").register(holder)
    return typer.main.get_group(holder).commands


def build() -> typer.Typer:
    """Puts the whole command line together."""
    return group("Stands between sensitive tables and the people who ask about them.", cls=_Group)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The command `dalenius`."""
    # Nearly all that a command makes at first are modules, which stay: looking for garbage among them takes 5% of it.
    gc.set_threshold(_GARBAGE)
    # Matrices are small here: several threads on one would wait for one another, ten times as long on a busy machine.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(run(build(), sys.argv[1:] if arguments is None else arguments))


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Runs one command; returns its exit code and never raises for an ordinary failure."""
    as_json = asks_for_json(arguments)
    try:
        code = _invoke(app, arguments, as_json)
        sys.stdout.flush()  # a closed pipe shows here, not in the interpreter's last breath
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        return _leave_pipe()
    except SystemExit as exit_:
        # Typer prints help on a Rich console of its own, which ends the process when the pipe is closed.
        if isinstance(exit_.__context__, BrokenPipeError):
            return _leave_pipe()
        raise
    except DaleniusError as error:
        return _fail(error, as_json)
    except typer.TyperException as error:
        return _fail(_usage_error(error), as_json)
    except Exception as error:  # noqa: BLE001 (the last line of defence: no traceback may show data)
        if os.environ.get("DALENIUS_DEBUG") == "1":
            traceback.print_exc()
        return _fail(_internal_error(error), as_json)
    return code


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options; read ahead, since an error in them must already obey it."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _invoke(app: typer.Typer, arguments: Sequence[str], as_json: bool) -> int:
    # Not `app()`: that prints errors its own way and ends the process by itself.
    command = typer.main.get_command(app)
    try:
        with command.make_context("dalenius", list(arguments), obj=Frame(json=as_json)) as context:
            command.invoke(context)
    except typer.Exit as exit_:
        return exit_.exit_code
    return 0


def _fail(error: DaleniusError, as_json: bool) -> int:
    if isinstance(error, OtherHomeError) and error.home is not None:  # found here, by who could look there
        error.fix = f"{error.fix} That home is {error.home}"
    try:
        if as_json:
            print_json(error.to_dict())
        else:
            print_error(error)
    except BrokenPipeError:
        _leave_pipe()
    return error.exit_code


def _usage_error(error: typer.TyperException) -> InputError:
    context: typer.Context | None = getattr(error, "ctx", None)
    command = "dalenius" if context is None else context.command_path
    usage = "" if context is None else " ".join(context.get_usage().split())
    return InputError(
        error.format_message(),
        why=usage or "The arguments do not fit together.",
        fix=f"Run '{command} --help' for the arguments and an example.",
    )


def _internal_error(error: Exception) -> InternalError:
    # Only the kind of the exception: its text may quote a row.
    return InternalError(
        f"dalenius stopped on an unexpected {type(error).__name__}.",
        why="This is a bug of ours. Its details are held back because they could show data.",
        fix="Run it again with DALENIUS_DEBUG=1 to see the traceback, and report it without any data in it.",
    )


def _leave_pipe() -> int:
    # The reader is gone; without this the interpreter would complain when it closes stdout.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE

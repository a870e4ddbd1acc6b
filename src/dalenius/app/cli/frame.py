"""What every command shares: global options, one way to answer, nothing on stdout that does not belong there.

A command module looks like this:

```python
from typing import Annotated

import typer

from dalenius.app.cli.frame import Frame, framed


def register(app: typer.Typer) -> None:
    app.command("greet")(greet)


@framed
def greet(frame: Frame, name: Annotated[str, typer.Argument(help="Whom.")]) -> None:
    \"\"\"Greets somebody.

    Example: dalenius greet Tore
    \"\"\"
    from dalenius.heavy import greeting  # heavy imports stand in here

    words = greeting(name)  # raises a DaleniusError when it cannot
    frame.emit({"words": words}, lambda console: console.print(words))
```

`framed` gives it `--home`, `--json`, `--quiet` and `--version`, which may stand before or after the
command's name.
"""

from __future__ import annotations

import functools
import inspect
import json
import math
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from datetime import date, time
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, NoReturn, ParamSpec, TextIO, get_type_hints

import typer
from rich.console import Console

from dalenius._version import __version__
from dalenius.errors import InputError, SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.core import TyperGroup

    from dalenius.errors import DaleniusError
    from dalenius.ledger.ledger import Ledger

P = ParamSpec("P")


@dataclass(frozen=True)
class _Answer:
    data: Mapping[str, object]
    human: Callable[[Console], None]
    exit_code: int


@dataclass
class Frame:
    """The global options of this call, and the only door to stdout."""

    home: Path | None = None
    json: bool = False
    quiet: bool = False
    _answer: _Answer | None = field(default=None, repr=False)
    _stdout: TextIO | None = field(default=None, repr=False)  # where a library's own prints do not go

    def emit(self, data: Mapping[str, object], human: Callable[[Console], None], exit_code: int = 0) -> None:
        """Answers; printed when the command has returned, so a late failure leaves no half answer.

        Args:
            data: What `--json` prints. Floats that JSON lacks become null, dates ISO 8601.
            human: Prints the same for people.
            exit_code: Other than 0 for a check that ran well and failed (6) and the like.
        """
        if self._answer is not None:
            raise RuntimeError("A command answers once.")
        self._answer = _Answer(data, human, exit_code)

    def emit_now(self, data: Mapping[str, object], text: str | Callable[[Console], None]) -> None:
        """The whole answer of a command that goes on running, such as `serve`: printed at once."""
        with redirect_stdout(self._stdout or sys.stdout):
            if self.json:
                print_json(data)
            elif isinstance(text, str):
                stdout().print(text, markup=False, highlight=False, soft_wrap=True)
            else:
                text(stdout())
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Says something beside the answer (progress, a warning) on stderr; silent with `--quiet`."""
        if not self.quiet:
            stderr().print(text, style="dim", markup=False, highlight=False)

    def require_home(self) -> Path:
        """The home folder of this call, which must exist."""
        from dalenius.ledger.home import find_home

        return find_home(self.home)

    def open_ledger(self) -> Ledger:
        """The ledger of that home."""
        from dalenius.ledger.ledger import Ledger

        return Ledger.open(self.require_home())

    def deliver(self) -> int:
        """Prints the answer; returns the exit code."""
        if self._answer is None:
            return 0
        if self.json:
            print_json(self._answer.data)
        else:
            self._answer.human(stdout())
        return self._answer.exit_code


def _print_version(context: typer.Context, asked: bool) -> None:
    if not asked:
        return
    if _frame_of(context).json:
        print_json({"version": __version__})
    else:
        stdout().print(f"dalenius {__version__}", highlight=False)
    raise typer.Exit


_PANEL = "Everywhere"
Home = Annotated[
    Path | None,
    typer.Option("--home", metavar="DIR", help="Folder of ledger and policies.", rich_help_panel=_PANEL),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=_PANEL)]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print the answer only.", rich_help_panel=_PANEL)]
Version = Annotated[
    bool,
    typer.Option(
        "--version", help="Print the version.", rich_help_panel=_PANEL, is_eager=True, callback=_print_version
    ),
]
_GLOBAL = {"home": (Home, None), "json": (Json, False), "quiet": (Quiet, False), "version": (Version, False)}


def group(
    summary: str, default: Callable[Concatenate[Frame, P], None] | None = None, *, cls: type[TyperGroup] | None = None
) -> typer.Typer:
    """An app, or a group of commands such as `policy`, that knows the global options.

    Args:
        summary: What it is for.
        default: What to do when no command is named, with options of its own; without it, the help is printed.
        cls: Where its commands come from, if not from what is registered.
    """
    app = typer.Typer(
        help=summary, cls=cls, pretty_exceptions_enable=False, invoke_without_command=True, add_completion=False
    )

    def options(context: typer.Context, **values: Any) -> None:
        frame = _merge_options(context, values)
        if context.invoked_subcommand is not None:
            _refuse_strays(context, values)
        elif default is not None:
            raise typer.Exit(_run(frame, lambda own: default(own, **values)))  # type: ignore[call-arg]
        elif frame.json:
            raise InputError(
                "No command was given.",
                why=f"'{context.command_path}' needs to know what to do.",
                fix=f"Run '{context.command_path} --help' for the list of commands.",
            )
        else:
            typer.echo(context.get_help())
            raise typer.Exit(InputError.exit_code)

    app.callback()(_with_options(options, default))
    return app


def framed(function: Callable[Concatenate[Frame, P], None]) -> Callable[..., None]:
    """Turns `function(frame, ...)` into a command with the global options added to its own."""

    @functools.wraps(function)
    def command(context: typer.Context, **values: Any) -> None:
        frame = _merge_options(context, values)
        raise typer.Exit(_run(frame, lambda own: function(own, **values)))  # type: ignore[call-arg]

    return _with_options(command, function)


def _with_options(command: Callable[..., None], function: Callable[..., None] | None) -> Callable[..., None]:
    """Tells Typer that ``command`` takes what ``function`` takes after its frame, and the global options."""
    _, *own = inspect.signature(function).parameters.values() if function is not None else (None,)
    # Resolved here, where the function's own module is at hand: Typer sees only the wrapper.
    hints = get_type_hints(function, include_extras=True) if function is not None else {}

    def parameter(name: str, hint: object, default: object = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)

    parameters = [
        parameter("context", typer.Context),
        *(parameter(each.name, hints[each.name], each.default) for each in own),
        *(parameter(name, hint, default) for name, (hint, default) in _GLOBAL.items()),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    return command


def _refuse_strays(context: typer.Context, values: Mapping[str, object]) -> None:
    """An option of the default command that stands before another command would be swallowed unseen."""
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if each.name in values and source is not None and source.name == "COMMANDLINE":
            raise InputError(
                f"{each.opts[0]} stands before '{context.invoked_subcommand}'.",
                why=f"There it would be an option of '{context.command_path}' alone.",
                fix=f"Write it after '{context.invoked_subcommand}', if that takes it.",
            )


def _run(frame: Frame, function: Callable[[Frame], None]) -> int:
    # A library that prints would break the promise of one object on stdout.
    frame._stdout = sys.stdout  # noqa: SLF001 (of this module)
    with redirect_stdout(sys.stderr) if frame.json else nullcontext():
        function(frame)
    return frame.deliver()


def _frame_of(context: typer.Context) -> Frame:
    return context.obj if isinstance(context.obj, Frame) else Frame()


def _merge_options(context: typer.Context, values: dict[str, Any]) -> Frame:
    """Takes the global options out of ``values``; they count wherever they stand."""
    given = {name: values.pop(name) for name in _GLOBAL}
    # Of two homes the one nearer to the command's own arguments counts.
    outer = _frame_of(context)
    frame = Frame(
        home=given["home"] or outer.home, json=given["json"] or outer.json, quiet=given["quiet"] or outer.quiet
    )
    context.obj = frame
    return frame


def read_input(file: str | None, what: str, fix: str) -> str:
    """The text in a file, or on stdin for None.

    Args:
        file: Its path.
        what: What it should be, as in "The question".
        fix: What to do where it cannot be read.
    """
    try:
        # with stdin closed, Python has none
        data = (sys.stdin.buffer.read() if sys.stdin else b"") if file is None else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise SourceUnavailableError(
            f"{file or what} cannot be read.", why=f"{reason or type(error).__name__}.", fix=fix
        ) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{what} is not text.", why="It must be UTF-8.", fix="Save it as UTF-8.") from None


def check_free(output: Path, *, yes: bool) -> None:
    """Refuses to overwrite a file without a word."""
    if output.exists() and not yes:
        raise InputError(f"{output.name} is there already.", why="It may be yours.", fix="Name another, or give --yes.")


# --- how things are printed: one JSON object, or Rich for people


class _PipeConsole(Console):
    """Leaves a closed pipe to the caller instead of ending the process with 1, our code for a bug."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def stdout() -> Console:
    """The console for answers."""
    return _PipeConsole()


def stderr() -> Console:
    """The console for everything else."""
    return _PipeConsole(stderr=True)


def print_json(data: Mapping[str, object]) -> None:
    """Prints the one object that `--json` promises."""
    # The real stdout, not a redirected one; allow_nan=False because `plain` has replaced them all.
    print(json.dumps(plain(data), allow_nan=False, ensure_ascii=False), file=sys.stdout, flush=True)


def print_error(error: DaleniusError) -> None:
    """Prints an error for people: what, why, what to do, what it cost."""
    from rich.table import Table
    from rich.text import Text

    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    rows.add_row("why", Text(error.why))
    if error.at is not None:
        rows.add_row("where", f"line {error.at.line}, column {error.at.column}")
    rows.add_row("what to do", Text(error.fix, style="bold"))
    if error.fits is not None:
        rows.add_row("would fit", f"epsilon = {error.fits.epsilon:g}")
    rows.add_row("cost", error.cost)

    console = stderr()
    console.print(Text.assemble(("Error ", "bold red"), (error.code, "red")), Text(error.message))
    console.print(rows)


def plain(value: object) -> object:
    """The value in JSON's terms: NaN and infinity become null, dates ISO 8601, numpy scalars plain numbers.

    >>> plain({"epsilon": float("inf"), "when": date(2024, 5, 1), "bounds": (0, 1.5)})
    {'epsilon': None, 'when': '2024-05-01', 'bounds': [0, 1.5]}
    """
    if isinstance(value, Enum):
        return plain(value.value)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, AbstractSet):
        return [plain(each) for each in sorted(value, key=repr)]  # sorted, so that equal answers print equal
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    # numpy's scalars and arrays, recognised without importing numpy
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no form in JSON.")

"""The command line.

A command is a module of this package with a function `register(app)`; `frame.py` shows how one is
written. Adding a command means adding its name and its module to `COMMANDS`. Only the module of the command that runs
is loaded, and all of them for `dalenius --help`: they import light things alone at the top.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

import typer
from typer.core import TyperGroup

from dalenius.app.cli.frame import group
from dalenius.app.cli.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

# In the order of `dalenius --help`, each with its module.
COMMANDS = {
    "demo": "demo",
    "protect": "protect",
    "refresh": "protect",
    "tables": "tables",
    "preview": "ask",
    "ask": "ask",
    "budget": "budget",
    "account": "account",
    "serve": "serve",
    "policy": "policy",
    "analyst": "analyst",
    "token": "token",
    "ledger": "ledger",
    "audit": "audit",
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
    sys.exit(run(build(), sys.argv[1:] if arguments is None else arguments))

"""The command line.

A command is a module of this package with a function `register(app)`; `frame.py` shows how one is
written. Adding a command means adding its module to `COMMANDS`. Command modules import only light things
at the top: all of them are loaded for `dalenius --help`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from dalenius.app.cli.frame import group
from dalenius.app.cli.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

# In the order of `dalenius --help`.
COMMANDS: tuple[str, ...] = (
    "demo",
    "policy",
    "protect",
    "refresh",
    "tables",
    "preview",
    "ask",
    "budget",
    "analyst",
    "token",
    "ledger",
    "account",
    "audit",
    "serve",
)


def build() -> typer.Typer:
    """Puts the whole command line together."""
    app = group("Stands between sensitive tables and the people who ask about them.")
    for name in COMMANDS:
        import_module(f"{__name__}.{name}").register(app)
    return app


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The command `dalenius`."""
    sys.exit(run(build(), sys.argv[1:] if arguments is None else arguments))

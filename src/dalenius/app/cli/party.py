"""`dalenius party`: a party of joint computations, as a process of its own."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.frame import Frame, framed
from dalenius.app.cli.rows_option import stoppable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalenius.joint.tasks import Call

Patience = Annotated[
    float, typer.Option("--patience", metavar="SECONDS", help="So long others may be silent.", min=1, max=3600)
]


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("party")(party)


@framed
def party(frame: Frame, patience: Patience = 30.0) -> None:
    """Waits for calls from partners and takes part in what they ask for, until Ctrl-C.

    Example: dalenius --home clinic party
    """
    import asyncio

    from dalenius.app.joint_statistics import offered
    from dalenius.errors import DaleniusError
    from dalenius.joint.config import Party
    from dalenius.joint.rehearsal import READY
    from dalenius.joint.serving import serve

    own = Party.load(frame.require_home())
    card = own.card

    def ready() -> None:
        partners = ", ".join(each.name for each in own.partners) or "nobody yet: dalenius joint add FILE"
        frame.emit_now(
            {
                "party": card.name,
                "address": f"{card.host}:{card.port}",
                "partners": [each.name for each in own.partners],
            },
            f"'{card.name}' {READY} at {card.host}:{card.port}, from {partners}. Stop it with Ctrl-C.",
        )

    def told(what: str, call: Call, outcome: Mapping[str, Any] | DaleniusError | None) -> None:
        subject = f"{call.task['name']} with {', '.join(name for name in call.names if name != card.name)}"
        if what == "called":
            frame.note(f"{call.beginner} calls for {subject}.")
        elif isinstance(outcome, DaleniusError):
            frame.note(f"{subject} failed: {outcome}")
        else:
            frame.note(f"{subject} is done.")

    with suppress(KeyboardInterrupt), stoppable():
        asyncio.run(serve(own, told, tasks=offered(frame.note), patience=patience, ready=ready))

"""What `anonymize run` and `check` are both told: models, populations, drawings; and how shares are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius.errors import InputError

MODELS, MAKING = "What is asked of the rows", "How they are made"

K = Annotated[
    int | None, typer.Option("--k", metavar="K", help="So many rows look alike, at least.", rich_help_panel=MODELS)
]
L = Annotated[
    float | None,
    typer.Option("--l", metavar="L", help="So many sensitive values in each class.", rich_help_panel=MODELS),
]
LKind = Annotated[
    str | None,
    typer.Option(
        "--l-kind", metavar="KIND", help="distinct, probabilistic, entropy or recursive.", rich_help_panel=MODELS
    ),
]
C = Annotated[
    float | None, typer.Option("--c", metavar="C", help="Of recursive (c,l)-diversity.", rich_help_panel=MODELS)
]
T = Annotated[
    float | None,
    typer.Option("--t", metavar="T", help="A class is at most so far from the table.", rich_help_panel=MODELS),
]
TDistance = Annotated[
    str | None,
    typer.Option("--t-distance", metavar="D", help="ordered, equal or hierarchy.", rich_help_panel=MODELS),
]
Beta = Annotated[
    float | None,
    typer.Option("--beta", metavar="B", help="No value is 1+B times likelier in a class.", rich_help_panel=MODELS),
]
Presence = Annotated[
    str | None,
    typer.Option("--presence", metavar="MIN,MAX", help="How sure one is in the table.", rich_help_panel=MODELS),
]
Population = Annotated[
    Path | None,
    typer.Option("--population", metavar="FILE", help="Everybody who could be in it.", rich_help_panel=MODELS),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw class sizes, and loss by k (png or svg).")
]


def plot_endings() -> tuple[str, ...]:
    """How drawings end."""
    from dalenius.releasing.targets import PLOT

    return PLOT


def share_of(text: str, option: str) -> float:
    """A share, as 5% or 0.05."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(
            f"{option} cannot be read.", why="It is a share from 0% to 100%.", fix=f"Write {option} 5%, or 0.05."
        )
    return value


def presence_of(text: str | None) -> tuple[float, float] | None:
    """MIN,MAX as it is typed."""
    if text is None:
        return None
    try:
        low, high = (float(each) for each in text.split(","))
    except ValueError:
        raise InputError(
            "--presence cannot be read.", why="It is MIN,MAX: two probabilities.", fix="Write --presence 0,0.5."
        ) from None
    return low, high

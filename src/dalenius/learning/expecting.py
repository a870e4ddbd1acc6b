"""How much accuracy the noise is expected to take, from public facts alone: before anything is charged.

What decides is how long the noise is that all steps together add to the mean gradient. With s the inverse of that
length, in lengths of the clip, and D how many weights there are, the part of what a model without noise has over
guessing, lost to noise, was about x/(1 + x) with x = 5.5·D^0.34/s^1.45, on made-up tables of 5 to 64 features, 2 to 10
classes and 300 to 16,000 people (`bench/expected_loss.py`, which fits the three numbers: off by 2 points of accuracy on
average). How much a model has over guessing nobody knows before; 0.7 of all there is to have is supposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalenius.learning.recipe import Recipe

FACTOR, BY_WEIGHTS, BY_SIGNAL = 5.5, 0.34, 1.45
SUPPOSED = 0.7


def expected_loss(recipe: Recipe) -> float | None:
    """The share of rows that noise is expected to cost; None where the target is a number."""
    classes = len(recipe.task.classes)
    if not classes:
        return None
    return lost_share(recipe) * SUPPOSED * (1 - 1 / classes)


def lost_share(recipe: Recipe) -> float:
    """The expected part of what is over guessing, lost to noise."""
    growth = FACTOR * recipe.dimension**BY_WEIGHTS * noise_length(recipe) ** BY_SIGNAL
    return float(growth / (1 + growth))


def noise_length(recipe: Recipe) -> float:
    """How long the noise is that all steps add to the mean gradient, in lengths of the clip: 1/s.

    Each step adds D numbers of σ over the batch, and T steps average that out by √T.
    """
    each = recipe.multiplier / max(1.0, recipe.batch)
    return float(each * (recipe.dimension / max(1, recipe.steps)) ** 0.5)

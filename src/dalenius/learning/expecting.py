"""How much accuracy the noise is expected to take, from public facts alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dalenius.learning.recipe import Recipe


def expected_loss(recipe: Recipe) -> float | None:
    """The share of rows that noise is expected to cost; None where the target is a number."""
    if not recipe.task.classes:
        return None
    return min(1.0, noise_share(recipe))


def noise_share(recipe: Recipe) -> float:
    """How long the noise is that all steps add to the mean gradient, in lengths of the clip.

    Each step adds d numbers of σ over the batch; T steps average it out by √T.
    """
    each = recipe.multiplier / max(1.0, recipe.batch)
    return float(each * (recipe.dimension / max(1, recipe.steps)) ** 0.5)

"""Models given evidence: what each value of each column counts, by which the model's distribution is multiplied.

Everything here is post-processing of a model, and depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dalenius.synthesis.generators.adaptive import PoolModel
from dalenius.synthesis.generators.histogram import IndependentModel
from dalenius.synthesis.generators.tree import TreeModel
from dalenius.synthesis.model import Model
from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.sampling import Step, normalised

Evidence = Sequence[NDArray[np.float64] | None]  # of each column, what its codes count; None: all 1
TRIED = 500_000  # rows that are drawn of a network, so that those are among them that are wanted


def settled(model: Model) -> TreeModel | PoolModel:
    """A model that can be conditioned: a tree or a pool as it is; of a network so many rows, which are a pool then."""
    if isinstance(model, TreeModel | PoolModel):
        return model
    if isinstance(model, IndependentModel):
        return model.as_tree
    return PoolModel(model.rows, Pool(model.sample(TRIED, np.random.default_rng(1)), model.rows))


def conditioned(model: TreeModel | PoolModel, evidence: Evidence) -> tuple[Model, float]:
    """The model given the evidence, and the evidence's mean under the model: of a condition, its chance.

    Exact for trees, by messages from the leaves to the root (Pearl, 1982), and for pools, whose rows are weighed by it.
    """
    if isinstance(model, TreeModel):
        steps, mass = _given(model.steps, evidence)
        return TreeModel(model.rows, steps), mass
    pool = model.pool
    weights = pool.weights.copy()
    for codes, counts in zip(pool.columns, evidence, strict=True):
        if counts is not None:
            weights *= counts[codes]
    mass = float(weights.sum() / pool.weights.sum())
    return PoolModel(model.rows, pool.weighed(weights)), mass


def _given(steps: Sequence[Step], evidence: Evidence) -> tuple[list[Step], float]:
    """Steps with at most one parent each, in an order in which parents come first.

    With λ of a column what its values count times the messages of its children, the message to its parent is
    μ(x) = Σ_y P(y|x)·λ(y), and given the evidence the column is drawn by P(y|x)·λ(y).
    """
    counts = [np.ones(step.table.shape[-1]) for step in sorted(steps, key=lambda each: each.column)]
    counts = [one if given is None else one * given for one, given in zip(counts, evidence, strict=True)]
    found, mass = list[Step](), 1.0
    for step in reversed(steps):
        table = normalised(step.table.reshape(-1, step.table.shape[-1])) * counts[step.column]
        message = table.sum(axis=1)
        if step.parents:
            counts[step.parents[0]] = counts[step.parents[0]] * message
        else:
            mass *= float(message[0])
        found.append(Step(step.column, step.parents, table.reshape(step.table.shape)))
    return found[::-1], mass

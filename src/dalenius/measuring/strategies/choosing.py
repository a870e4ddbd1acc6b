"""Which strategy: the one with the least expected error of all that apply, from public sizes alone."""

from __future__ import annotations

import math
from collections.abc import Callable

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.strategies.cells import disjoint_cells
from dalenius.measuring.strategies.joint import optimised_cells
from dalenius.measuring.strategies.marginals import weighted_marginals
from dalenius.measuring.strategies.product_search import best_product
from dalenius.measuring.strategies.questions import Questions
from dalenius.measuring.strategies.residual import residual_parts
from dalenius.measuring.strategies.strategy import Strategy
from dalenius.measuring.strategies.union import best_union
from dalenius.measuring.strategies.workload import Workload

_TABLES = 8  # times the limit of one: what all tables may have together

Candidate = Callable[[Workload, str, int], Strategy | None]


def _cells(workload: Workload, norm: str, cells_limit: int) -> Strategy | None:  # noqa: ARG001
    return disjoint_cells(workload) if workload.cells <= cells_limit else None


def _questions(workload: Workload, norm: str, cells_limit: int) -> Strategy | None:  # noqa: ARG001
    return Questions.of(workload, norm)


def _products(workload: Workload, norm: str, cells_limit: int) -> Strategy | None:
    return best_product(workload, norm) if workload.cells <= cells_limit and workload.attributes else None


def _joint(workload: Workload, norm: str, cells_limit: int) -> Strategy | None:  # noqa: ARG001
    return optimised_cells(workload, norm)


def _residual(workload: Workload, norm: str, cells_limit: int) -> Strategy | None:  # noqa: ARG001
    return residual_parts(workload, norm)


# Of equal ones the first is taken.
CANDIDATES: tuple[Candidate, ...] = (_cells, _questions, _products, _joint, _residual, weighted_marginals, best_union)


def choose(
    workload: Workload, norm: str, *, cells_limit: int = 10**6, spread: float = 1.0, signed: float = 1.0
) -> Strategy:
    """The strategy with the least expected error.

    Args:
        workload: The questions of one measure.
        norm: In which noise is calibrated: "l1" or "l2".
        cells_limit: At most so many joint cells are counted.
        spread: How many times longer a unit's rows may be in L1 than in the norm in which disjoint groups are clipped.
            Strategies that are not disjoint pay for that (`strategy`).
        signed: How many times a strategy with entries below zero pays in squared error: 2 where a unit is exchanged for
            another and the norm is L2 (`mechanisms.vector`).
    """
    found = candidates(workload, norm, cells_limit=cells_limit, spread=spread, signed=signed)
    return min(found, key=lambda each: each[0])[1]


def _readable(strategy: Strategy, cells_limit: int) -> bool:
    """Whether the tables that it reads are not too large."""
    cells = [math.prod(strategy.sizes[at] for at in own) for own in strategy.tables]
    return max(cells) <= cells_limit and sum(cells) <= _TABLES * cells_limit


def candidates(
    workload: Workload, norm: str, *, cells_limit: int = 10**6, spread: float = 1.0, signed: float = 1.0
) -> list[tuple[float, Strategy]]:
    """All that apply, each with its expected error.

    Raises:
        QuestionRefusedError: There is none: each reads tables of too many cells.
    """
    found = list[tuple[float, Strategy]]()
    for candidate in CANDIDATES:
        strategy = candidate(workload, norm, cells_limit)
        if strategy is not None and _readable(strategy, cells_limit):
            error = strategy.expected(workload, norm)
            if not 0 < error < math.inf and found:
                continue  # numbers too far apart to be solved, or nothing is asked: the first is as good as any
            factor = (1.0 if strategy.disjoint else spread**2) * (signed if strategy.signed else 1.0)
            found.append((factor * error, strategy))
    if not found:
        raise QuestionRefusedError(
            "The questions tell too many cells apart.",
            why=f"Each way to answer them counts more than {cells_limit:,} cells.",
            fix="Ask fewer different conditions and keys in one question.",
        )
    return found

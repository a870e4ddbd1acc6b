"""How the price of a workload is shared among its parts and the questions beside. Never touches the data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dalenius.queries.workloads.blocks import WorkloadPlan

if TYPE_CHECKING:
    from dalenius.queries.planning import Planned
    from dalenius.queries.workloads.blocks import Block

_WHOLE = 10**6  # shares are whole parts of that


def share_price(
    plans: Sequence[Planned],
    keys: Sequence[str],
    weights: Sequence[float],
    drafts: Sequence[Block],
    aside: Mapping[int, str],
) -> WorkloadPlan:
    """Each question beside has the share that its weight is of all weights; the rest is for the parts.

    An error of a part counts in what one unit may add to it at most, so that rows and money compare. With ρᵢ for part i
    the total of squared errors is Σ Eᵢ/ρᵢ, which is least for ρᵢ ∝ √Eᵢ; with εᵢ it is Σ Eᵢ/εᵢ², least for εᵢ ∝ Eᵢ^⅓.
    """
    total = sum(weights)
    claims = [(weights[number] / total, number) for number in sorted(aside)]
    left = 1 - sum(each for each, _ in claims)
    errors = [
        (part.strategy.expected(part.workload, _noise_norm(block)), _noise_norm(block))
        for block in drafts
        for part in block.parts
    ]
    roots = [math.sqrt(error) if norm == "l2" else error ** (1 / 3) for error, norm in errors]
    raw = [left * each / sum(roots) for each in roots]
    shares = exact_shares([*(each for each, _ in claims), *raw])
    beside = {number: (share, aside[number]) for (_, number), share in zip(claims, shares, strict=False)}
    rest = iter(shares[len(claims) :])
    blocks = tuple(
        replace(block, parts=tuple(replace(each, share=next(rest)) for each in block.parts)) for block in drafts
    )
    return WorkloadPlan(tuple(plans), tuple(keys), tuple(weights), blocks, beside)


def _noise_norm(block: Block) -> str:
    return block.planned.plan.norm


def exact_shares(parts: Sequence[float]) -> list[Fraction]:
    """Fractions in proportion to some parts, which sum to 1 exactly.

    >>> [str(each) for each in exact_shares([1, 2, 3])]
    ['83333/500000', '333333/1000000', '500001/1000000']
    """
    whole = [max(1, math.floor(_WHOLE * each / sum(parts))) for each in parts]
    whole[whole.index(max(whole))] += _WHOLE - sum(whole)
    return [Fraction(each, _WHOLE) for each in whole]

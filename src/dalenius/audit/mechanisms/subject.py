"""One thing to audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.audit.lower_bounds.claims import Claim

if TYPE_CHECKING:
    from dalenius.audit.lower_bounds.features import Outputs


@dataclass(frozen=True)
class Subject:
    """A mechanism, two neighbouring inputs and what it claims.

    Attributes:
        name: As `audit mechanism` calls it.
        about: In a line.
        claim: What it promises.
        draw: ``draw(side, n)``: n independent outputs on one of the inputs, as an array; NaN is "no answer".
        single: One output by the mechanism's own `release`, of the same law; None where that is what `draw` calls.
        broken: Whether it is known to break its claim.
        wrong: What is wrong with it.
    """

    name: str
    about: str
    claim: Claim
    draw: Callable[[int, int], Outputs]
    single: Callable[[int], Any] | None = None
    broken: bool = False
    wrong: str = ""

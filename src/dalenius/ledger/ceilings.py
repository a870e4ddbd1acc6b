"""The most that may be paid where nobody typed the price, because it follows from an accuracy.

Either the asker names it; or it is a quarter of what the asker has left, so that no single question takes most of an
allotment by surprise. It is checked in the transaction that charges, after what was paid for before is looked up: an
answer that is known stays free, and a request that is sent again finds what became of the first one, though less is
left by then.

Privacy: whether a price is refused depends on the price, on what was typed and on the balance that its asker is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.errors import InputError
from dalenius.ledger.budgets import rounded_down, rounded_up

PART = 0.25  # of what is left, where nobody named the most
_PART = "a quarter"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What may be paid at most.

    Attributes:
        epsilon: As its asker named it; None: a quarter of what is left.
    """

    epsilon: float | None = None

    def allows(self, price: float, left: float) -> bool:
        """Whether this price may be paid, by who has so much left."""
        return price <= (PART * left if self.epsilon is None else self.epsilon)

    def note(self, price: float, left: float) -> str:
        """What a preview says of a price that asking would refuse; empty where less is left, which it says anyway."""
        if self.allows(price, left) or (self.epsilon is None and price > left):
            return ""
        shown = f"{rounded_up(price):g}"
        if self.epsilon is not None:
            return f"ε = {shown} is more than the ε = {self.epsilon:g} that you would pay."
        return (
            f"ε = {shown} is more than {_PART} of what you have left. "
            f"To ask at that price, name it as the most beside the error: --epsilon {shown}."
        )

    def refusal(self, price: float, left: float) -> InputError:
        """The error about a price that is too high."""
        shown = f"{rounded_up(price):g}"
        if self.epsilon is None:
            most = f"{_PART} of what you have left"
            why = f"ε ≤ {rounded_down(left):g} is left, and nobody said how much of it one answer may cost."
        else:
            most = f"the ε = {self.epsilon:g} that you would pay"
            why = "Beside an error, ε is the most that is charged."
        return InputError(
            f"So small an error costs ε = {shown}, more than {most}.",
            why=why,
            fix=f"Ask for a larger error. Or pay that price: add --epsilon {shown} (in Python, epsilon={shown}).",
        )

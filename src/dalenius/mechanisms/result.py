"""What a mechanism gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from dalenius.accounting.events import Event
    from dalenius.mechanisms.laws import Law

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Released(Generic[T]):
    """A value that may leave, with the event that pays for it."""

    value: T
    event: Event


@dataclass(frozen=True, slots=True)
class Noisy(Released[T]):
    """An exact integer, or an array of them, plus noise of a public law, the same for each coordinate."""

    noise: Law

    def noise_error(self, confidence: float = 0.95) -> int:
        """Half-width from the noise alone: a coordinate is off by more with probability ≤ 1 − confidence."""
        return self.noise.noise_error(confidence)

"""Noisy counts of units by the class of their size, with the law of their noise: what limits are chosen from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace


@dataclass(frozen=True, slots=True)
class LengthCounts:
    """Noisy counts of units by class, and the law of their noise: Laplace's scale where there is no variance.

    They are paid for where a limit is; to keep and show them is post-processing.
    """

    noisy: tuple[int, ...]
    gaussian: Fraction | None = None
    laplace: Fraction = Fraction(0)

    @classmethod
    def of(cls, noisy: Sequence[int], mechanism: DiscreteGaussian | Laplace) -> LengthCounts:
        """As the mechanism released them."""
        from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian

        if isinstance(mechanism, DiscreteGaussian):
            return cls(tuple(noisy), gaussian=Fraction(mechanism.variance))
        return cls(tuple(noisy), laplace=Fraction(mechanism.scale))

    @property
    def law(self) -> DiscreteGaussian | Laplace:
        """A mechanism with that noise, for what the counts can tell."""
        from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
        from dalenius.mechanisms.laplace import Laplace

        if self.gaussian is not None:
            return DiscreteGaussian(self.gaussian, dimension=len(self.noisy))
        return Laplace(1 / self.laplace, dimension=len(self.noisy))

    def to_json(self) -> dict[str, Any]:
        """As it is stored; the classes at the end are noise around 0 and stay, for they say that nobody is there."""
        law = {"gaussian": str(self.gaussian)} if self.gaussian is not None else {"laplace": str(self.laplace)}
        return law | {"noisy": list(self.noisy)}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> LengthCounts:
        """As `to_json` wrote it."""
        noisy = tuple(map(int, data["noisy"]))
        if data.get("gaussian") is not None:
            return cls(noisy, gaussian=Fraction(data["gaussian"]))
        return cls(noisy, laplace=Fraction(data["laplace"]))

"""Mechanisms, one file each: the sampling, the guarantee and the utility bound of one theorem.

The interface is four things.

1. A mechanism is a frozen dataclass whose parameters are checked when it is built. Data comes later.
2. ``mechanism.event`` says what a run will have done, for accounting. It needs no data: charge it, then look.
3. ``mechanism.release(value)`` runs it once and returns a `Released` (``.value``, ``.event``) or, where
   noise of a public scale was added, a `Noisy`, which also has ``.noise_error(confidence)``. The event is
   the same object.
4. ``mechanism.utility(...)`` is the theorem about its error, as a function.

Values are exact integers or vectors of them; sensitivities are integers (Δ1 for the Laplace family, Δ2² for
the Gaussian one); ε is the exact rational that was given. A real number was rounded to a declared step
before it came here: floats are refused as values, and no mechanism adds noise to one. A mechanism never
touches a ledger.

Classes load on first use, so that importing this package costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.exponential import Exponential
    from dalenius.mechanisms.finite_response import FiniteResponse
    from dalenius.mechanisms.gaussian import Gaussian
    from dalenius.mechanisms.geometric import Geometric
    from dalenius.mechanisms.interface import Noisy, Released
    from dalenius.mechanisms.key_selection import KeySelection
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.mechanisms.noisy_max import NoisyMax, TopK
    from dalenius.mechanisms.propose_test_release import ProposeTestRelease
    from dalenius.mechanisms.quantile import Quantile
    from dalenius.mechanisms.randomized_response import RandomizedResponse
    from dalenius.mechanisms.sample_and_aggregate import SampleAndAggregate
    from dalenius.mechanisms.smooth_sensitivity import SmoothMedian, SmoothSensitivity
    from dalenius.mechanisms.sparse_vector import SparseVector

# The registry: name → (module, class). A new mechanism is its module, its test, its page and a line here.
MECHANISMS = {
    "laplace": ("laplace", "Laplace"),
    "geometric": ("geometric", "Geometric"),
    "gaussian": ("gaussian", "Gaussian"),
    "discrete-gaussian": ("discrete_gaussian", "DiscreteGaussian"),
    "exponential": ("exponential", "Exponential"),
    "noisy-max": ("noisy_max", "NoisyMax"),
    "top-k": ("noisy_max", "TopK"),
    "key-selection": ("key_selection", "KeySelection"),
    "quantile": ("quantile", "Quantile"),
    "sparse-vector": ("sparse_vector", "SparseVector"),
    "sample-and-aggregate": ("sample_and_aggregate", "SampleAndAggregate"),
    "propose-test-release": ("propose_test_release", "ProposeTestRelease"),
    "smooth-sensitivity": ("smooth_sensitivity", "SmoothSensitivity"),
    "smooth-median": ("smooth_sensitivity", "SmoothMedian"),
    "randomized-response": ("randomized_response", "RandomizedResponse"),
    "finite-response": ("finite_response", "FiniteResponse"),
}

_EXPORTS = {name: module for module, name in MECHANISMS.values()} | {"Noisy": "interface", "Released": "interface"}

__all__ = [
    "MECHANISMS",
    "DiscreteGaussian",
    "Exponential",
    "FiniteResponse",
    "Gaussian",
    "Geometric",
    "KeySelection",
    "Laplace",
    "Noisy",
    "NoisyMax",
    "ProposeTestRelease",
    "Quantile",
    "RandomizedResponse",
    "Released",
    "SampleAndAggregate",
    "SmoothMedian",
    "SmoothSensitivity",
    "SparseVector",
    "TopK",
]


__getattr__, _ = lazy(__name__, _EXPORTS)


def __dir__() -> list[str]:
    return sorted(__all__)

"""Exact samplers on secure bits: the only place where noise is made.

Every function here follows its mathematical law exactly, for the rational parameter it was given. Floating
point is used to be fast, never to decide: a proved bound goes with every float, and whatever falls within the
bound is settled by rational arithmetic (`docs/explanation/exact-noise.md` has the proofs). Random bits come
from AES-256 in counter mode, keyed by the operating system; nothing here takes a seed.

Names load on first use: hardly any question needs all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.mechanisms.noise.bernoulli import bernoulli_exp, bernoulli_logistic
    from dalenius.mechanisms.noise.bits import fresh_key
    from dalenius.mechanisms.noise.gaussian import discrete_gaussian
    from dalenius.mechanisms.noise.laplace import discrete_laplace
    from dalenius.mechanisms.noise.selection import exponential_choice, exponential_top_k, permute_and_flip
    from dalenius.mechanisms.noise.uniform import uniform_int

_EXPORTS = {
    "bernoulli_exp": "bernoulli",
    "bernoulli_logistic": "bernoulli",
    "discrete_gaussian": "gaussian",
    "discrete_laplace": "laplace",
    "exponential_choice": "selection",
    "exponential_top_k": "selection",
    "fresh_key": "bits",
    "permute_and_flip": "selection",
    "uniform_int": "uniform",
}

__all__ = [
    "bernoulli_exp",
    "bernoulli_logistic",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "exponential_top_k",
    "fresh_key",
    "permute_and_flip",
    "uniform_int",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)

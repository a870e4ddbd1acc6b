"""Randomisers, one file each: what runs on the device of the person who reports.

`randomiser` says what each can do and how one is added.
"""

from __future__ import annotations

from dalenius.local.randomisers.bit_vector import BitVector
from dalenius.local.randomisers.count_mean_sketch import CountMeanSketch
from dalenius.local.randomisers.duchi import Duchi
from dalenius.local.randomisers.hadamard import Hadamard
from dalenius.local.randomisers.hadamard_sketch import HadamardSketch
from dalenius.local.randomisers.hybrid import Hybrid
from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.local_hashing import LocalHashing
from dalenius.local.randomisers.optimised_unary import OptimisedUnary
from dalenius.local.randomisers.piecewise import Piecewise
from dalenius.local.randomisers.randomiser import Randomiser
from dalenius.local.randomisers.randomized_response import RandomizedResponse
from dalenius.local.randomisers.rappor import Rappor
from dalenius.local.randomisers.subset_selection import SubsetSelection
from dalenius.local.randomisers.symmetric_unary import SymmetricUnary

RANDOMISERS: tuple[type[Randomiser], ...] = (
    RandomizedResponse,
    KAry,
    SymmetricUnary,
    OptimisedUnary,
    LocalHashing,
    Hadamard,
    SubsetSelection,
    CountMeanSketch,
    HadamardSketch,
    Rappor,
    Duchi,
    Piecewise,
    Hybrid,
    BitVector,
)
"""All of them; `name` is what the command line and a file's header call each."""

"""Statistics from people who do not trust the collector (local privacy).

    chances, coins, hashing     chances a/2³² with a proved ratio, secure coins of them, keyed hashes
    domain                      the public list of values
    randomisers/                one file each: value → report, on the device of the person who reports
    reports                     the file of reports
    tallies                     counts of reports; merging is addition
    estimators/                 one file each: tally → numbers with intervals

Nothing here touches a protected table or a ledger: each report has its guarantee before it leaves its owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.local.domain import Domain
    from dalenius.local.estimators.frequencies import Frequencies, estimate
    from dalenius.local.estimators.tidying import non_negative, to_simplex
    from dalenius.local.randomisers import RANDOMISERS
    from dalenius.local.randomisers.count_mean_sketch import CountMeanSketch
    from dalenius.local.randomisers.hadamard import Hadamard
    from dalenius.local.randomisers.hadamard_sketch import HadamardSketch
    from dalenius.local.randomisers.k_ary import KAry
    from dalenius.local.randomisers.local_hashing import LocalHashing
    from dalenius.local.randomisers.optimised_unary import OptimisedUnary
    from dalenius.local.randomisers.randomiser import FrequencyOracle, PureOracle, Randomiser
    from dalenius.local.randomisers.randomized_response import RandomizedResponse
    from dalenius.local.randomisers.subset_selection import SubsetSelection
    from dalenius.local.randomisers.symmetric_unary import SymmetricUnary
    from dalenius.local.reports import ReportFile
    from dalenius.local.tallies import Tally

_EXPORTS = {
    "CountMeanSketch": "randomisers.count_mean_sketch",
    "Domain": "domain",
    "Frequencies": "estimators.frequencies",
    "FrequencyOracle": "randomisers.randomiser",
    "Hadamard": "randomisers.hadamard",
    "HadamardSketch": "randomisers.hadamard_sketch",
    "KAry": "randomisers.k_ary",
    "LocalHashing": "randomisers.local_hashing",
    "OptimisedUnary": "randomisers.optimised_unary",
    "PureOracle": "randomisers.randomiser",
    "RANDOMISERS": "randomisers",
    "Randomiser": "randomisers.randomiser",
    "RandomizedResponse": "randomisers.randomized_response",
    "ReportFile": "reports",
    "SubsetSelection": "randomisers.subset_selection",
    "SymmetricUnary": "randomisers.symmetric_unary",
    "Tally": "tallies",
    "estimate": "estimators.frequencies",
    "non_negative": "estimators.tidying",
    "to_simplex": "estimators.tidying",
}

__all__ = [
    "RANDOMISERS",
    "CountMeanSketch",
    "Domain",
    "Frequencies",
    "FrequencyOracle",
    "Hadamard",
    "HadamardSketch",
    "KAry",
    "LocalHashing",
    "OptimisedUnary",
    "PureOracle",
    "Randomiser",
    "RandomizedResponse",
    "ReportFile",
    "SubsetSelection",
    "SymmetricUnary",
    "Tally",
    "estimate",
    "non_negative",
    "to_simplex",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)

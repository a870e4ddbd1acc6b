"""Statistics from people who do not trust the collector (local privacy).

    chances, coins, hashing     chances a/2³² with a proved ratio, secure coins of them, keyed hashes
    domain                      the public list of values
    randomisers/                one file each: value → report, on the device of the person who reports
    headers, reports            how files begin; the file of reports
    memory, memory_files        answers that are kept from day to day, and the file of them
    tallies                     counts of reports; merging is addition
    estimators/                 one file each: tally → numbers with intervals
    planner                     which randomiser tells most
    values, collecting          files of values → files of reports → a tally

Nothing here touches a protected table or a ledger: each report has its guarantee before it leaves its owner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.local.collecting import encode_file, fold_files
    from dalenius.local.domain import Domain
    from dalenius.local.estimators.frequencies import Frequencies, estimate
    from dalenius.local.estimators.means import bit_shares, mean
    from dalenius.local.estimators.rappor_decoding import decode
    from dalenius.local.estimators.tidying import non_negative, to_simplex
    from dalenius.local.memory import Memory
    from dalenius.local.memory_files import read_memory, write_memory
    from dalenius.local.planner import Plan, plan
    from dalenius.local.randomisers import RANDOMISERS
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
    from dalenius.local.randomisers.randomiser import FrequencyOracle, PureOracle, Randomiser
    from dalenius.local.randomisers.randomized_response import RandomizedResponse
    from dalenius.local.randomisers.rappor import Rappor
    from dalenius.local.randomisers.subset_selection import SubsetSelection
    from dalenius.local.randomisers.symmetric_unary import SymmetricUnary
    from dalenius.local.reports import ReportFile
    from dalenius.local.tallies import Tally

_EXPORTS = {
    "RANDOMISERS": "randomisers",
    "BitVector": "randomisers.bit_vector",
    "CountMeanSketch": "randomisers.count_mean_sketch",
    "Domain": "domain",
    "Duchi": "randomisers.duchi",
    "Frequencies": "estimators.frequencies",
    "FrequencyOracle": "randomisers.randomiser",
    "Hadamard": "randomisers.hadamard",
    "HadamardSketch": "randomisers.hadamard_sketch",
    "Hybrid": "randomisers.hybrid",
    "KAry": "randomisers.k_ary",
    "LocalHashing": "randomisers.local_hashing",
    "Memory": "memory",
    "OptimisedUnary": "randomisers.optimised_unary",
    "Piecewise": "randomisers.piecewise",
    "Plan": "planner",
    "PureOracle": "randomisers.randomiser",
    "Randomiser": "randomisers.randomiser",
    "RandomizedResponse": "randomisers.randomized_response",
    "Rappor": "randomisers.rappor",
    "ReportFile": "reports",
    "SubsetSelection": "randomisers.subset_selection",
    "SymmetricUnary": "randomisers.symmetric_unary",
    "Tally": "tallies",
    "bit_shares": "estimators.means",
    "decode": "estimators.rappor_decoding",
    "encode_file": "collecting",
    "estimate": "estimators.frequencies",
    "fold_files": "collecting",
    "mean": "estimators.means",
    "non_negative": "estimators.tidying",
    "plan": "planner",
    "read_memory": "memory_files",
    "to_simplex": "estimators.tidying",
    "write_memory": "memory_files",
}

__all__ = [
    "RANDOMISERS",
    "BitVector",
    "CountMeanSketch",
    "Domain",
    "Duchi",
    "Frequencies",
    "FrequencyOracle",
    "Hadamard",
    "HadamardSketch",
    "Hybrid",
    "KAry",
    "LocalHashing",
    "Memory",
    "OptimisedUnary",
    "Piecewise",
    "Plan",
    "PureOracle",
    "Randomiser",
    "RandomizedResponse",
    "Rappor",
    "ReportFile",
    "SubsetSelection",
    "SymmetricUnary",
    "Tally",
    "bit_shares",
    "decode",
    "encode_file",
    "estimate",
    "fold_files",
    "mean",
    "non_negative",
    "plan",
    "read_memory",
    "to_simplex",
    "write_memory",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)

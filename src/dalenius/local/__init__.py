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
    from dalenius.local.randomisers import RANDOMISERS
    from dalenius.local.randomisers.k_ary import KAry
    from dalenius.local.randomisers.randomiser import FrequencyOracle, PureOracle, Randomiser
    from dalenius.local.reports import ReportFile
    from dalenius.local.tallies import Tally

_EXPORTS = {
    "RANDOMISERS": "randomisers",
    "Domain": "domain",
    "Frequencies": "estimators.frequencies",
    "FrequencyOracle": "randomisers.randomiser",
    "KAry": "randomisers.k_ary",
    "PureOracle": "randomisers.randomiser",
    "Randomiser": "randomisers.randomiser",
    "ReportFile": "reports",
    "Tally": "tallies",
    "estimate": "estimators.frequencies",
}

__all__ = [
    "RANDOMISERS",
    "Domain",
    "Frequencies",
    "FrequencyOracle",
    "KAry",
    "PureOracle",
    "Randomiser",
    "ReportFile",
    "Tally",
    "estimate",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)

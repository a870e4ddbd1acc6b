"""What a guarantee is and how guarantees add up. No data, no noise, no I/O.

    neighbors, parameters   the relation, and numbers checked at the edge
    guarantees, pld         PureDP, ApproxDP, ZCDP, RDP, PLD
    conversions             from one kind to another
    events, event_json      what a mechanism did, and how it is written down (descriptions: as others have it)
    costs, renyi, losses    what one event costs, in each currency (sampled_gaussian: a Rényi curve of its own)
    sampled_discrete        the curve of sampled discrete noise, and how much of it a price needs
    orders                  the one order at which a filter adds up sampled noise
    rounded_noise           ε of a trained model, for its card
    composition             basic, advanced, optimal
    accountant              `account`: the best valid bound
    filters, units          may this next charge happen, when prices are adaptive; how much is gone
    calibration             least noise for a target, most repetitions for a budget

Names load on first use: scipy costs half a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.accounting.accountant import Account, account
    from dalenius.accounting.filters import PureFilter, ZCDPFilter, ZCDPOdometer
    from dalenius.accounting.guarantees import RDP, ZCDP, ApproxDP, PureDP
    from dalenius.accounting.neighbors import Neighbors
    from dalenius.accounting.pld import PLD

_EXPORTS = {
    "Account": "accountant",
    "ApproxDP": "guarantees",
    "Neighbors": "neighbors",
    "PLD": "pld",
    "PureDP": "guarantees",
    "PureFilter": "filters",
    "RDP": "guarantees",
    "ZCDP": "guarantees",
    "ZCDPFilter": "filters",
    "ZCDPOdometer": "filters",
    "account": "accountant",
}

__all__ = [
    "PLD",
    "RDP",
    "ZCDP",
    "Account",
    "ApproxDP",
    "Neighbors",
    "PureDP",
    "PureFilter",
    "ZCDPFilter",
    "ZCDPOdometer",
    "account",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)

"""Synthetic tables: rows that anybody may have.

    domain, views       which values there are, from declarations; which tables of counts may be asked for
    measurer, scores    the one door to the data: noisy tables, noisy scores, noisy choices, each at a stated ρ
    start               what generators do first: one-way tables, groups of rare values, distances of pairs
    models/             what noisy tables are fitted to
    generators/         one per file: tree (fast), adaptive (best), mst, privbayes, marginals, histogram
    sampling, rounding  rows from models
    scoring             how far two tables are from each other: for the owner alone

A generator never sees a row. Whatever comes after a measurer's answers is post-processing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dalenius._lazy import lazy

if TYPE_CHECKING:
    from dalenius.synthesis.domain import Column, Domain
    from dalenius.synthesis.generators import GENERATORS
    from dalenius.synthesis.measurer import Measured, Measurer, Scored
    from dalenius.synthesis.model import Model
    from dalenius.synthesis.scoring import Errors, errors
    from dalenius.synthesis.views import View

_EXPORTS = {
    "Column": "domain",
    "Domain": "domain",
    "Errors": "scoring",
    "GENERATORS": "generators",
    "Measured": "measurer",
    "Measurer": "measurer",
    "Model": "model",
    "Scored": "measurer",
    "View": "views",
    "errors": "scoring",
}

__all__ = [
    "GENERATORS",
    "Column",
    "Domain",
    "Errors",
    "Measured",
    "Measurer",
    "Model",
    "Scored",
    "View",
    "errors",
]

__getattr__, __dir__ = lazy(__name__, _EXPORTS)

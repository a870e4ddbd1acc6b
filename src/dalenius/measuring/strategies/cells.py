"""Disjoint cells: a row is in exactly one, so they cost what one count costs, and all answers are sums of them."""

from __future__ import annotations

from dalenius.measuring.strategies.lines import EachClass
from dalenius.measuring.strategies.products import Products
from dalenius.measuring.strategies.workload import Workload


def disjoint_cells(workload: Workload) -> Products:
    """The cells that all questions of the workload can be answered from."""
    return Products(workload.sizes, {at: EachClass(workload.sizes[at]) for at in workload.attributes})

"""Strategies as stored: which one it was, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dalenius.measuring.strategies.contrasts import ContrastMatrix, Contrasts
from dalenius.measuring.strategies.hierarchy import Hierarchy
from dalenius.measuring.strategies.joint import Joint
from dalenius.measuring.strategies.lines import EachClass, Line, MatrixLine
from dalenius.measuring.strategies.marginals import Marginals
from dalenius.measuring.strategies.products import Products
from dalenius.measuring.strategies.questions import Questions
from dalenius.measuring.strategies.residual import Residual
from dalenius.measuring.strategies.strategy import Strategy
from dalenius.measuring.strategies.union import Union
from dalenius.measuring.strategies.wavelet import Wavelet

LINES: tuple[type[Line], ...] = (EachClass, Hierarchy, Wavelet, MatrixLine, Contrasts, ContrastMatrix)
STRATEGIES: tuple[type[Strategy], ...] = (Questions, Products, Joint, Residual, Marginals, Union)


def strategy_of_json(stored: Mapping[str, Any]) -> Strategy:
    """The strategy that `Strategy.to_json` wrote."""
    kind = {each.kind: each for each in STRATEGIES}[stored["kind"]]
    return kind.of_body(tuple(map(int, stored["sizes"])), stored)


def line_of_json(stored: Mapping[str, Any]) -> Line:
    """The line that `Line.to_json` wrote."""
    return {each.kind: each for each in LINES}[stored["kind"]].of_json(stored)

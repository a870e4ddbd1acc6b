"""Generators, one per file: each spends what a `Measurer` has left, and hands back a model that rows are drawn from."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dalenius.synthesis.generators.adaptive import adaptive
from dalenius.synthesis.generators.histogram import histogram
from dalenius.synthesis.generators.marginals import marginals
from dalenius.synthesis.generators.mst import mst
from dalenius.synthesis.generators.privbayes import privbayes
from dalenius.synthesis.generators.tree import tree
from dalenius.synthesis.model import Model

GENERATORS: Mapping[str, Callable[..., Model]] = {
    "tree": tree,
    "histogram": histogram,
    "marginals": marginals,
    "privbayes": privbayes,
    "mst": mst,
    "adaptive": adaptive,
}

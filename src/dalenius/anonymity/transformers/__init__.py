"""Ways to make a table anonymous, one per file; `TRANSFORMERS` lists them by the name of their method."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from dalenius.anonymity.transformers.full_domain import full_domain
from dalenius.anonymity.transformers.greedy import greedy
from dalenius.anonymity.transformers.local import local
from dalenius.anonymity.transformers.mondrian import mondrian, relaxed_mondrian
from dalenius.anonymity.transformers.problem import Problem, Recoding, problem, published

TRANSFORMERS: Mapping[str, Callable[[Problem], Recoding]] = MappingProxyType(
    {
        "optimal": full_domain,
        "mondrian": mondrian,
        "mondrian-relaxed": relaxed_mondrian,
        "local": local,
        "greedy": greedy,
    }
)

__all__ = [
    "TRANSFORMERS",
    "Problem",
    "Recoding",
    "full_domain",
    "greedy",
    "local",
    "mondrian",
    "problem",
    "published",
    "relaxed_mondrian",
]

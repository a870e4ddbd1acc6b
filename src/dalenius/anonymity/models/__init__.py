"""Models of anonymity, one promise per file; `MODELS` lists them, `asked` reads them from options."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dalenius.anonymity.models.closeness import DISTANCES, Closeness
from dalenius.anonymity.models.distinct_diversity import DistinctDiversity
from dalenius.anonymity.models.diversity import Diversity
from dalenius.anonymity.models.entropy_diversity import EntropyDiversity
from dalenius.anonymity.models.k_anonymity import KAnonymity
from dalenius.anonymity.models.likeness import Likeness
from dalenius.anonymity.models.model import BoundModel, Model
from dalenius.anonymity.models.presence import Presence
from dalenius.anonymity.models.probabilistic_diversity import ProbabilisticDiversity
from dalenius.anonymity.models.recursive_diversity import RecursiveDiversity
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

# m-invariance is about several releases, not about the classes of one.
MODELS: Mapping[str, type] = MappingProxyType(
    {
        each.name: each
        for each in (
            KAnonymity,
            DistinctDiversity,
            ProbabilisticDiversity,
            EntropyDiversity,
            RecursiveDiversity,
            Closeness,
            Likeness,
            Presence,
        )
    }
)

KINDS: Mapping[str, type[Diversity]] = MappingProxyType(
    {
        "distinct": DistinctDiversity,
        "probabilistic": ProbabilisticDiversity,
        "entropy": EntropyDiversity,
        "recursive": RecursiveDiversity,
    }
)


def asked(
    *,
    k: int | None = None,
    l: float | None = None,  # noqa: E741
    l_kind: str = "distinct",
    c: float | None = None,
    t: float | None = None,
    t_distance: str | None = None,
    beta: float | None = None,
    presence: tuple[float, float] | None = None,
    population: Table | None = None,
) -> tuple[Model, ...]:
    """The models that options ask for, all to hold together.

    Raises:
        InputError: An option lacks another, or makes no sense.

    >>> [model.name for model in asked(k=5, l=3, l_kind="entropy", t=0.2)]
    ['k-anonymity', 'entropy l-diversity', 't-closeness']
    """
    found = list[Model]()
    if k is not None:
        found.append(KAnonymity(k))
    if l is not None:
        if l_kind not in KINDS:
            raise _missing("There is no such kind of l-diversity.", f"Write one of {', '.join(KINDS)}.")
        if l_kind == "recursive":
            if c is None:
                raise _missing("Recursive diversity lacks c.", "Add --c 3.")
            found.append(RecursiveDiversity(l, c=c))
        else:
            found.append(KINDS[l_kind](l))
    if c is not None and (l is None or l_kind != "recursive"):
        raise _missing("c is for recursive diversity alone.", "Add --l 3 --l-kind recursive, or leave c out.")
    if t_distance is not None and (t is None or t_distance not in DISTANCES):
        raise _missing("This distance has no use.", f"Write --t with --t-distance {'|'.join(DISTANCES)}.")
    if t is not None:
        distance: Any = t_distance
        found.append(Closeness(t, distance))
    if beta is not None:
        found.append(Likeness(beta))
    if (presence is None) != (population is None):
        raise _missing("δ-presence needs bounds and a population.", "Write --presence 0.1,0.5 --population FILE.")
    if presence is not None and population is not None:
        found.append(Presence(*presence, population))
    return tuple(found)


def _missing(what: str, fix: str) -> InputError:
    return InputError(what, why="Each model has its own parameters.", fix=fix)


__all__ = [
    "KINDS",
    "MODELS",
    "BoundModel",
    "Closeness",
    "DistinctDiversity",
    "EntropyDiversity",
    "KAnonymity",
    "Likeness",
    "Model",
    "Presence",
    "ProbabilisticDiversity",
    "RecursiveDiversity",
    "asked",
]

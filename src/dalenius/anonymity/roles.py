"""Who is who in a table: `[anonymity]` of a policy, as plain data.

identifiers = ["name"]                    names somebody: never published
quasi = ["age", "zip", "sex"]             may be known from elsewhere: generalised
sensitive = ["diagnosis"]                 what must not be learned about somebody: published as it is
hierarchies = { zip = "zip.csv", age = { width = 5, levels = 4 }, sex = "suppress" }
weights = { age = 2 }                     what is lost there counts twice
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dalenius.anonymity.hierarchies import Hierarchy, Spec, SuppressSpec, build, spec_of
from dalenius.anonymity.table import Table
from dalenius.tables.mistakes import invalid, join_names, nearest

_KEYS = ("identifiers", "quasi", "sensitive", "hierarchies", "weights")


@dataclass(frozen=True)
class Roles:
    """Roles of columns; whatever is not named is published as it is.

    Attributes:
        quasi: What may be known from elsewhere.
        identifiers: What names somebody; every cell is replaced by `*`.
        sensitive: What models of diversity speak of.
        hierarchies: By column; a quasi-identifier without one is kept or suppressed. A sensitive column may have one,
            for distances between its values.
        weights: How much a loss in a column counts; 1 where nothing is said.
    """

    quasi: tuple[str, ...]
    identifiers: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    hierarchies: Mapping[str, Spec] = field(default_factory=lambda: MappingProxyType({}))
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def from_dict(written: Mapping[str, object], folder: Path, place: str = "anonymity") -> Roles:
        """Roles as TOML gives them; hierarchy files are looked for in `folder`, that of the policy.

        >>> Roles.from_dict({"quasi": ["age"], "sensitive": ["age"]}, Path())
        Traceback (most recent call last):
        dalenius.errors.PolicyInvalidError: anonymity.sensitive: 'age' stands in quasi, too. ...
        """
        for key in written:
            if key not in _KEYS:
                meant = nearest(key, _KEYS)
                raise invalid(
                    f"{place}.{key}",
                    "there is no such key.",
                    why=f"Known are {join_names(_KEYS)}.",
                    fix=f"Write {meant}." if meant else "Remove it.",
                )
        names = {key: _names(written.get(key, []), f"{place}.{key}") for key in _KEYS[:3]}
        if not names["quasi"]:
            raise invalid(
                f"{place}.quasi",
                "no quasi-identifier is named.",
                why="They are what rows are made alike in.",
                fix='Name what others may know, such as quasi = ["age", "zip"].',
            )
        seen = dict[str, str]()
        for key in ("identifiers", "quasi", "sensitive"):
            for name in names[key]:
                if name in seen:
                    raise invalid(
                        f"{place}.{key}",
                        f"{name!r} stands in {seen[name]}, too." if seen[name] != key else f"{name!r} stands twice.",
                        why="A quasi-identifier is generalised, a sensitive column is published as it is.",
                        fix="Keep it in one of them.",
                    )
                seen[name] = key
        hierarchies = _mapping(written.get("hierarchies", {}), f"{place}.hierarchies")
        weights = _mapping(written.get("weights", {}), f"{place}.weights")
        for key, found, allowed in (
            ("hierarchies", hierarchies, names["quasi"] + names["sensitive"]),
            ("weights", weights, names["quasi"]),
        ):
            for name in found:
                if name not in allowed:
                    raise invalid(
                        f"{place}.{key}.{name}",
                        "this is none of the quasi-identifiers.",
                        why="Only they are generalised.",
                        fix="Add it to quasi, or remove it here.",
                    )
        for name, weight in weights.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < math.inf:
                raise invalid(
                    f"{place}.weights.{name}",
                    "this is no weight.",
                    why="Losses add up.",
                    fix="Write a number from 0 up.",
                )
        if names["quasi"] and all(weights.get(name, 1) == 0 for name in names["quasi"]):
            raise invalid(
                f"{place}.weights", "all weights are 0.", why="Then nothing counts as a loss.", fix="Raise one of them."
            )
        return Roles(
            names["quasi"],
            names["identifiers"],
            names["sensitive"],
            MappingProxyType({name: spec_of(name, each, folder) for name, each in hierarchies.items()}),
            MappingProxyType({name: float(str(weight)) for name, weight in weights.items()}),
        )

    def check(self, table: Table) -> None:
        """Refuses a table that lacks a column.

        Raises:
            PolicyInvalidError: One is named here that the table has not.
        """
        for key in ("identifiers", "quasi", "sensitive"):
            for name in getattr(self, key):
                if name not in table.columns:
                    meant = nearest(name, table.names)
                    raise invalid(
                        f"anonymity.{key}",
                        f"the table has no column {name!r}.",
                        why=f"Names must be as in its header: {', '.join(table.names)}.",
                        fix=f"Write {meant!r}." if meant else "Correct the name or remove it.",
                    )

    def hierarchy(self, table: Table, column: str) -> Hierarchy:
        """The hierarchy of a column, for the values that the table has.

        Raises:
            PolicyInvalidError: It cannot be read, or misses a value.
        """
        return build(self.spec(column), column, table[column].values)

    def spec(self, column: str) -> Spec:
        """How a column is generalised; kept or suppressed where nothing is said."""
        return self.hierarchies.get(column, SuppressSpec())

    def weight(self, column: str) -> float:
        """How much a loss in a column counts."""
        return self.weights.get(column, 1.0)


def _names(written: object, place: str) -> tuple[str, ...]:
    if not isinstance(written, list | tuple) or not all(isinstance(each, str) and each for each in written):
        raise invalid(
            place, "these are no names.", why="Columns are told by name.", fix='Write a list, such as ["age"].'
        )
    return tuple(written)


def _mapping(written: object, place: str) -> Mapping[str, object]:
    if not isinstance(written, Mapping):
        raise invalid(place, "this is no table.", why="It is told by column.", fix="Write { column = … }.")
    return written

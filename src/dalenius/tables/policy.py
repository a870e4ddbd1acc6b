"""A policy as plain data: who is protected, what may be asked, how much one unit may contribute.

`reading` checks; what it returns is consistent and stays so, since everything here is frozen. Numbers that decide
sensitivities (bounds, steps, totals) are exact: the decimal that stands in the file, never its nearest double.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.parameters import SELECTION

Value: TypeAlias = "bool | int | Fraction | str | date | datetime"


class Kind(Enum):
    """The type of a column, as a policy spells it."""

    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    CATEGORY = "category"
    TEXT = "text"
    DATE = "date"
    DATETIME = "datetime"


NUMERIC = frozenset({Kind.INTEGER, Kind.NUMBER})
BOUNDED = NUMERIC | {Kind.DATE, Kind.DATETIME}
KEYED = frozenset({Kind.INTEGER, Kind.CATEGORY, Kind.TEXT, Kind.DATE})
TIMES = frozenset({Kind.DATE, Kind.DATETIME})


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a value, both included: ints, exact fractions, dates or local datetimes, by the column's kind."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Column:
    """What may be asked about one column.

    Attributes:
        name: As in the source.
        kind: Its type.
        bounds: Limits that values are clipped to; without them a number cannot be summed.
        step: What numbers are rounded to before they are added; 1 for integers. None without bounds.
        keys: All values that exist as far as answers are concerned; None when they are not public.
        default: What NULL, NaN, infinities and failed casts become; None: they count as absent.
        zone: The time zone in which a datetime is meant.
    """

    name: str
    kind: Kind
    bounds: Bounds | None = None
    step: Fraction | None = None
    keys: tuple[Value, ...] | None = None
    default: Value | None = None
    zone: str | None = None

    @property
    def summable(self) -> bool:
        """Whether it can be added up."""
        return self.kind in NUMERIC and self.bounds is not None

    @property
    def public_keys(self) -> tuple[Value, ...] | None:
        """The declared keys; a boolean's are known anyway."""
        return (False, True) if self.kind is Kind.BOOLEAN else self.keys


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one unit adds at most. A limit of None was not declared.

    ``units`` is about groups instead: one whose key had to be found is released only where so many units are in it.
    """

    rows: int | None = None
    groups: int | None = None
    totals: Mapping[str, Fraction] = field(default_factory=dict)
    units: int | None = None


@dataclass(frozen=True, slots=True)
class Period:
    """Each stretch of time has its own budget: the column that tells the time, and how long a stretch is."""

    column: str
    every: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One step of the way from a row to its unit: the row of ``table`` whose unique ``key`` is what ``column`` holds.

    Attributes:
        column: Of the table before.
        table: The next one, of the same data set.
        key: Its column that no two rows share.
    """

    column: str
    table: str
    key: str


def path_text(hops: tuple[Hop, ...], unit: tuple[str, ...]) -> str:
    """A path as it is written.

    >>> path_text((Hop("l_orderkey", "orders", "o_orderkey"),), ("o_custkey",))
    'l_orderkey -> orders.o_orderkey -> orders.o_custkey'
    """
    onward = [*(hop.column for hop in hops[1:]), unit[0]]
    return " -> ".join(
        [hops[0].column, *(f"{h.table}.{h.key} -> {h.table}.{o}" for h, o in zip(hops, onward, strict=True))]
    )


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """The budget that a policy asks for; the ledger's is the one that counts.

    ``share_answers``: whether analysts may be served from one another's answers (`ledger.sharing`).
    ``selection``: the part of δ that finding keys may use.
    """

    epsilon: float
    delta: float = 0.0
    accounting: str = "zcdp"
    period: Period | None = None
    share_answers: bool = True
    selection: float = SELECTION


@dataclass(frozen=True, slots=True)
class Time:
    """When answers leave, in seconds, and how many may be late; None leaves it to the server."""

    answer: float | None = None
    cap: float | None = None
    late: int | None = None


@dataclass(frozen=True, slots=True)
class PublicSpec:
    """A table that holds nobody's secrets: its name, its files, and the columns that are declared unique together."""

    name: str
    source: tuple[str, ...]
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """One table's policy.

    Attributes:
        name: The table's name in questions.
        source: Absolute paths or globs.
        unit: The columns that together say whose a row is; of the last table of the path, where there is one.
        path: How a row leads to its unit through other tables of the data set; empty where it names the unit itself.
        neighbors: Which two tables a guarantee compares.
        dataset: Tables with the same people share it, and with it one budget.
        budget: None in the tables of a data set that do not carry it.
        analysts: What each may spend (ε).
        columns: What may be asked about, by name.
        contribution: Limits of one unit.
        time: When answers leave.
        anonymity: Roles and hierarchies, kept for `anonymize`.
        public: Tables that questions may join with, by name; everything about them may be known.
        key_files: Where keys were read from, by column. Not a part of what the policy says: the keys are.
    """

    name: str
    source: tuple[str, ...]
    unit: tuple[str, ...]
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    dataset: str = ""
    budget: BudgetSpec | None = None
    analysts: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    contribution: Contribution = field(default_factory=Contribution)
    time: Time = field(default_factory=Time)
    anonymity: Mapping[str, Any] = field(default_factory=dict)
    path: tuple[Hop, ...] = ()
    public: Mapping[str, PublicSpec] = field(default_factory=dict)
    key_files: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dataset", self.dataset or self.name)

    @property
    def owner(self) -> tuple[str, ...]:
        """The columns of its own file that say whose a row is: the unit's, or the one where the path begins."""
        return (self.path[0].column,) if self.path else self.unit

    @property
    def whose(self) -> str:
        """How a row leads to its unit, in words: the unit's columns, or the path."""
        return path_text(self.path, self.unit) if self.path else ", ".join(self.unit)

    @property
    def text(self) -> str:
        """The policy as TOML with everything spelled out; `reading.read_text` takes it back."""
        from dalenius.tables.writing import to_toml

        return to_toml(self)

    @property
    def version(self) -> str:
        """The hash of everything in it, whatever the order of its sections."""
        from dalenius.tables.writing import digest_policy

        return digest_policy(self)

    @property
    def meaning(self) -> str:
        """The hash of what decides what a question means: stored answers stay good while it does.

        More budget, another analyst or a file that moved must not make anyone pay again for the same answer. What the
        file holds is the data version's business; public tables count where a question reads them.
        """
        from dalenius.tables.writing import digest_policy

        spec = BudgetSpec(1.0, period=self.budget.period if self.budget else None)
        return digest_policy(replace(self, source=(), budget=spec, analysts={}, time=Time(), anonymity={}, public={}))

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts of plain values, for `--json`."""
        from dalenius.tables.writing import to_plain, to_tree

        found: dict[str, Any] = to_plain(to_tree(self))
        return found

"""A policy as plain data: who is protected, what may be asked, how much one unit may contribute.

`reading` checks; what it returns is consistent and stays so, since everything here is frozen. Numbers that decide
sensitivities (bounds, steps, totals) are exact: the decimal that stands in the file, never its nearest double. Written
down, a policy is a tree of such values, TOML, or a hash of the tree.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import Enum
from fractions import Fraction
from typing import Any, TypeAlias

from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.parameters import SELECTION
from dalenius.tables.mistakes import invalid

Value: TypeAlias = "bool | int | Fraction | str | date | datetime"

JOINT = "joint"
"""Whom joint questions are charged to: what all partners of a data set may spend together."""
WIDEST = 2**63  # integers are 64 bits wide in every engine


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
class JointSpec:
    """Who may compute with this data set together with others, and what that may spend.

    ``overlap``: in how many parties one person may be; None: in all of them.
    """

    partners: tuple[str, ...]
    epsilon: float
    overlap: int | None = None


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
class Facts:
    """What everybody may know of all rows; synthetic rows keep to it (`[synthetic]`). Never read off the data.

    Attributes:
        rules: Conditions (`conditions`) that are false for no row.
        follows: Of a column the one that it follows from: one value of that, one value of this.
        values: Of such a column which value goes with which, by their labels, as far as that is known.
        totals: Of a column how many rows have each of some values, by their labels.
    """

    rules: tuple[str, ...] = ()
    follows: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    totals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.rules or self.follows or self.totals)

    def to_json(self) -> dict[str, Any]:
        """As a policy has it; what it leaves out is left out."""
        follows = {
            name: {"column": of, "values": dict(self.values[name])} if name in self.values else of
            for name, of in self.follows.items()
        }
        found: dict[str, Any] = {"rules": list(self.rules), "follows": follows}
        found |= {"totals": {name: dict(each) for name, each in self.totals.items()}}
        return {name: each for name, each in found.items() if each}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Facts:
        """As `to_json` wrote it."""
        follows: Mapping[str, Any] = data.get("follows", {})
        values = {name: each["values"] for name, each in follows.items() if isinstance(each, Mapping)}
        of = {name: each["column"] if name in values else each for name, each in follows.items()}
        return cls(tuple(data.get("rules", ())), of, values, dict(data.get("totals", {})))


def label_of(key: Value) -> str:
    """A key as the name of an entry in TOML and JSON.

    >>> label_of(True), label_of(3), label_of(date.fromisoformat("2025-01-31"))
    ('true', '3', '2025-01-31')
    """
    if isinstance(key, bool):
        return str(key).lower()
    return key.isoformat() if isinstance(key, date) else str(key)


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
        joint: With whom its data set may be asked about jointly; None: with nobody.
        columns: What may be asked about, by name.
        contribution: Limits of one unit.
        time: When answers leave.
        anonymity: Roles and hierarchies, kept for `anonymize`.
        public: Tables that questions may join with, by name; everything about them may be known.
        facts: What everybody may know of all rows.
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
    facts: Facts = field(default_factory=Facts)
    joint: JointSpec | None = None
    key_files: Mapping[str, str] = field(default_factory=dict, compare=False)
    _meaning: str = field(default="", init=False, repr=False, compare=False)

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
        return to_toml(self)

    @property
    def version(self) -> str:
        """The hash of everything in it, whatever the order of its sections."""
        return digest_policy(self)

    @property
    def meaning(self) -> str:
        """The hash of what decides what a question means: stored answers stay good while it does.

        More budget, another analyst or a file that moved must not make anyone pay again for the same answer. What the
        file holds is the data version's business; public tables count where a question reads them. Facts are for
        rows that are drawn from a model, whatever it was made from.
        """
        if not self._meaning:  # worked out once: every question needs it
            spec = BudgetSpec(1.0, period=self.budget.period if self.budget else None)
            same = replace(
                self,
                source=(),
                budget=spec,
                analysts={},
                joint=None,
                time=Time(),
                anonymity={},
                public={},
                facts=Facts(),
            )
            object.__setattr__(self, "_meaning", digest_policy(same))
        return self._meaning

    def to_dict(self) -> dict[str, Any]:
        """Nested dicts of plain values, for `--json`."""
        found: dict[str, Any] = to_plain(to_tree(self))
        return found


# --- written down

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_tree(policy: Policy) -> dict[str, Any]:
    """Everything that the policy says, defaults included; what it leaves out is left out."""
    table = {
        "name": policy.name,
        "source": list(policy.source),
        "unit": {"path": path_text(policy.path, policy.unit)} if policy.path else list(policy.unit),
        "neighbors": policy.neighbors.value,
        "dataset": policy.dataset,
    }
    tree: dict[str, Any] = {"table": table}
    if policy.budget is not None:
        spec = policy.budget
        period = {"column": spec.period.column, "every": spec.period.every} if spec.period else None
        tree["budget"] = _drop_none(
            {
                "epsilon": spec.epsilon,
                "delta": spec.delta,
                "accounting": spec.accounting,
                "period": period,
                # as old policies have them: not said
                "share_answers": None if spec.share_answers else False,
                "selection": None if spec.selection == SELECTION else spec.selection,
            }
        )
    tree["analysts"] = {name: {"epsilon": epsilon} for name, epsilon in policy.analysts.items()}
    tree["columns"] = {name: _column(each) for name, each in policy.columns.items()}
    limits = policy.contribution
    tree["contribution"] = _drop_none(
        {"rows": limits.rows, "groups": limits.groups, "totals": dict(limits.totals) or None, "units": limits.units}
    )
    tree["time"] = _drop_none({"answer": policy.time.answer, "cap": policy.time.cap, "late": policy.time.late})
    tree["anonymity"] = dict(policy.anonymity)
    if policy.public:
        tree["public"] = {
            "tables": {
                name: _drop_none({"source": list(each.source), "key": list(each.key) or None})
                for name, each in policy.public.items()
            }
        }
    tree["synthetic"] = policy.facts.to_json()
    if policy.joint is not None:
        joint = policy.joint
        tree["joint"] = _drop_none(
            {"partners": list(joint.partners), "epsilon": joint.epsilon, "overlap": joint.overlap}
        )
    return {name: each for name, each in tree.items() if each}


def digest_policy(policy: Policy) -> str:
    """The hash of the tree."""
    text = json.dumps(to_tree(policy), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def to_plain(value: Any) -> Any:
    """The tree in JSON's terms; decimals become the nearest double."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    return value


def to_toml(policy: Policy) -> str:
    """The tree as TOML. Reading it gives an equal policy, without any other file."""
    tree, parts = to_tree(policy), []
    for name, section in tree.items():
        if name in {"analysts", "columns"}:
            parts += [_section(f"{name}.{toml_key(each)}", values) for each, values in section.items()]
        elif name == "public":
            parts += [_section(f"public.tables.{toml_key(each)}", values) for each, values in section["tables"].items()]
        else:
            parts.append(_section(name, section))
    return "\n".join(parts)


def literal(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case Fraction():
            text = decimal_text(value)
            return text if "." in text or abs(value) < WIDEST else f"{text}.0"
        case int() | float():
            return repr(value)
        case str():
            return _quote(value)
        case date():
            return f'"{value.isoformat()}"'
        case Mapping():
            return "{ " + ", ".join(f"{toml_key(key)} = {literal(each)}" for key, each in value.items()) + " }"
        case _:
            return "[" + ", ".join(literal(each) for each in value) + "]"


def decimal_text(value: Fraction) -> str:
    """The exact decimal of a fraction.

    >>> decimal_text(Fraction(-1, 80)), decimal_text(Fraction(5000))
    ('-0.0125', '5000')
    """
    rest, places = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        raise invalid("", f"{value} is not a decimal.", why="Policies are written in decimals.", fix="Round it.")
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def _section(name: str, values: Mapping[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{toml_key(key)} = {literal(each)}\n" for key, each in values.items())


def _column(column: Column) -> dict[str, Any]:
    return _drop_none(
        {
            "type": column.kind.value,
            "zone": column.zone,
            "bounds": [column.bounds.low, column.bounds.high] if column.bounds else None,
            "step": column.step,
            "keys": list(column.keys) if column.keys is not None else None,
            "default": column.default,
        }
    )


def _drop_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def toml_key(name: str) -> str:
    """A name as a key of TOML."""
    return name if _BARE.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    # Not json.dumps: TOML wants DEL escaped, and knows no surrogate pairs.
    def escape(letter: str) -> str:
        if letter in '"\\':
            return f"\\{letter}"
        return f"\\u{ord(letter):04x}" if letter < " " or letter == "\x7f" else letter

    return '"' + "".join(map(escape, text)) + '"'

"""BigQuery's differential privacy clause, cut out of a question before it is parsed, and read as options.

    SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, privacy_unit_column = id)
        item, SUM(quantity, contribution_bounds_per_group => (0, 100))
    FROM …

sqlglot does not know it. It is found by tokens, so that a text, a name or a remark with the same words is left alone;
blanks of the same length take its place, so that every mistake in the rest is still pointed at where it stands. What an
option means here is said where it is used: limits can only tighten the policy's (`bound`), contribution bounds belong
to one aggregate (`clamp`), and ε and δ are what the caller would have typed (`settle_price`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dalenius.accounting import parameters
from dalenius.errors import InputError, NotAllowedError, Place, QuestionRefusedError
from dalenius.queries.rules.clamp import GROUP, REPORT, ROW, Arguments, Clamp
from dalenius.queries.rules.tokens import QuestionTokens
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.measuring.plan import Limits

CLAUSE, OLD = "differential_privacy", "anonymization"
STRATEGIES = ("laplace_threshold", "public_groups")
_LIKELY = re.compile("|".join((CLAUSE, OLD, GROUP, ROW, REPORT)), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Options:
    """What a question says of itself; None where it says nothing.

    Attributes:
        epsilon: Its price.
        delta: For finding keys.
        groups: max_groups_contributed.
        rows: max_rows_contributed.
        units: min_privacy_units_per_group.
        unit: privacy_unit_column, as a path of names.
        public: Whether it insists on groups that are public.
        places: Where each option stands.
        clamps: Contribution bounds, by where the name of their aggregate begins in the text.
    """

    epsilon: float | None = None
    delta: float | None = None
    groups: int | None = None
    rows: int | None = None
    units: int | None = None
    unit: tuple[str, ...] = ()
    public: bool = False
    places: Mapping[str, Place] = field(default_factory=dict)
    clamps: Mapping[int, tuple[Clamp, ...]] = field(default_factory=dict)

    def tightened(self, limits: Limits) -> Limits:
        """The caller's limits with the question's own: of two, the tighter one."""
        return replace(
            limits,
            rows=min((each for each in (self.rows, limits.rows) if each is not None), default=None),
            groups=min((each for each in (self.groups, limits.groups) if each is not None), default=None),
            units=max((each for each in (self.units, limits.units) if each is not None), default=None),
        )


def cut_clause(text: str) -> tuple[str, Options]:
    """The text with blanks in place of the clause and of contribution bounds, and what they said."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    from dalenius.queries.rules.parse import DIALECT

    if not _LIKELY.search(text):
        return text, Options()
    try:
        tokens = tokenize(text, dialect=DIALECT)
    except SqlglotError:
        return text, Options()  # the parser says what is wrong with it
    clause = _Clause(text, tokens)
    options, after = clause.options()
    arguments = Arguments(text, tokens, old=clause.old)
    arguments.spans = clause.spans
    clamps = arguments.clamps(after)
    return arguments.blanked(), replace(options, clamps=clamps)


def settle_price(question: str, epsilon: float | None, delta: float | None) -> tuple[float | None, float | None]:
    """ε and δ as the caller gave them, or as the question says; it is a mistake when they differ."""
    from dalenius.queries.rules.parse import check_text

    check_text(question)
    _, options = cut_clause(question)
    return (
        _one("epsilon", epsilon, options.epsilon, parameters.epsilon, options),
        _one("delta", delta, options.delta, parameters.delta, options),
    )


def not_the_unit(options: Options, unit: Sequence[str]) -> NotAllowedError:
    """The error about a privacy_unit_column that is not the unit."""
    return NotAllowedError(
        f"The privacy unit is not {'.'.join(options.unit)[:60]!r}.",
        why=f"The policy protects each {' + '.join(unit)}, and no question can change that.",
        fix=f"Write privacy_unit_column = {unit[0]}, or leave it out."
        if len(unit) == 1
        else "Leave it out: the unit is known.",
        at=options.places.get("privacy_unit_column"),
    )


def check_options(options: Options, *, found: bool) -> tuple[str, ...]:
    """Refuses options that do not fit, and tells of those that change nothing.

    Args:
        options: What the question says.
        found: Whether the keys of its groups have to be found.
    """
    if options.public and found:
        raise QuestionRefusedError(
            "The groups are not public.",
            why="The policy does not list the keys of GROUP BY, so that they have to be found privately.",
            fix="Leave group_selection_strategy out, or ask the owner to declare the keys.",
            at=options.places.get("group_selection_strategy"),
        )
    if options.units is not None and not found:
        return ("min_privacy_units_per_group changes nothing here: the groups are public, and each has its answer.",)
    return ()


def _one(
    name: str, given: float | None, said: float | None, checked: Callable[[object], float], options: Options
) -> float | None:
    if given is None or said is None:
        return said if given is None else given
    if checked(given) != said:
        raise InputError(
            f"There are two values of {name}.",
            why=f"One was given, another stands in the question's OPTIONS ({said:g}).",
            fix="Give one of them.",
            at=options.places.get(name),
        )
    return given


class _Clause(QuestionTokens):
    """Reads WITH DIFFERENTIAL_PRIVACY OPTIONS(…)."""

    old = False

    def options(self) -> tuple[Options, int]:
        """What the clause says, and the number of the token behind it; nothing and 0 where there is none."""
        start = self._start()
        if start is None:
            return Options(), 0
        self.old = self.word(start + 2) == OLD
        options, after = self._listed(start + 3)
        self.blank(start + 1, after - 1)
        return options, after

    def _start(self) -> int | None:
        """Where the SELECT of the clause stands."""
        found = [
            at
            for at in range(len(self.tokens) - 2)
            if self.kind(at) is self.types.SELECT
            and self.kind(at + 1) is self.types.WITH
            and self.word(at + 2) in {CLAUSE, OLD}
        ]
        if len(found) > 1:
            raise self.refused(found[1] + 1, "There are two clauses.", "A question has one price.", "Write one.")
        if found and self.depths()[found[0]]:
            raise self.refused(
                found[0] + 1,
                "The clause stands in a subquery.",
                "A question has one price, and that is for the whole.",
                "Write it after the outer SELECT.",
            )
        return found[0] if found else None

    def _listed(self, at: int) -> tuple[Options, int]:
        if self.word(at) != "options" or self.kind(at + 1) is not self.types.L_PAREN:
            return Options(), at
        found: dict[str, Any] = {}
        places: dict[str, Place] = {}
        at += 2
        if self.kind(at) is self.types.R_PAREN:
            return Options(), at + 1
        while True:
            name = self.word(at)
            if name is None or self.kind(at + 1) is not self.types.EQ:
                raise self.syntax(at if name is None else at + 1, "An option is written as name = value.")
            end, known = self.end(at + 2), self._known(at, name)
            if known in places:
                raise self.invalid(at, f"The option {known} is there twice.", "Which holds?", "Write it once.")
            places[known] = self.place(at)
            found.update(_READ[known](self, known, range(at + 2, end)))
            at = end + 1
            if self.kind(end) is self.types.R_PAREN:
                return Options(**found, places=places), at

    def _known(self, at: int, name: str) -> str:
        """The option's name today, or a refusal."""
        if name == "kappa" and self.old:
            return "max_groups_contributed"
        if name not in _READ:
            meant = nearest(name, _READ)
            raise self.refused(
                at,
                f"There is no option {name[:60]!r}.",
                f"Known: {', '.join(_READ)}.",
                f"Did you mean {meant!r}?" if meant else "Remove it.",
            )
        return name

    # --- values, as fields of `Options`

    def price(self, name: str, value: range) -> dict[str, Any]:
        number = self.number(value, f"{name} takes a number.")
        return {name: self.checked(value[0], lambda: getattr(parameters, name)(number))}

    def count(self, name: str, value: range) -> dict[str, Any]:
        shown = self.slice(value[0], value[-1])
        if shown.lower() == "null":  # as if it were not there
            return {}
        if not re.fullmatch(r"\d{1,18}", shown):
            why = "It counts, and is written out."
            raise self.invalid(value[0], f"{name} takes a whole number.", why, "Write for example 3.")
        return {_COUNTS[name]: self.checked(value[0], lambda: parameters.count(int(shown), name))}

    def path(self, name: str, value: range) -> dict[str, Any]:
        named = [self.word(each) or self.kind(each) is self.types.IDENTIFIER for each in value[::2]]
        if len(value) % 2 == 0 or not all(named) or any(self.kind(each) is not self.types.DOT for each in value[1::2]):
            raise self.invalid(value[0], f"{name} takes a column.", "It names the unit.", "Write for example user_id.")
        return {"unit": tuple(str(self.tokens[each].text) for each in value[::2])}

    def strategy(self, name: str, value: range) -> dict[str, Any]:
        word = self.slice(value[0], value[-1]).lower()
        if word not in STRATEGIES:
            known = " or ".join(each.upper() for each in STRATEGIES)
            raise self.invalid(value[0], f"{name} is {known}.", "There are no others.", "Write one of them.")
        return {"public": word == STRATEGIES[1]}


_COUNTS = {"max_groups_contributed": "groups", "max_rows_contributed": "rows", "min_privacy_units_per_group": "units"}
_READ: Mapping[str, Callable[[_Clause, str, range], dict[str, Any]]] = {
    "epsilon": _Clause.price,
    "delta": _Clause.price,
    **dict.fromkeys(_COUNTS, _Clause.count),
    "privacy_unit_column": _Clause.path,
    "group_selection_strategy": _Clause.strategy,
}

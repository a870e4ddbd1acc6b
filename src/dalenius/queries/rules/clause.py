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

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

from dalenius.accounting import parameters
from dalenius.errors import InputError, NotAllowedError, Place, QuestionRefusedError, SqlSyntaxError
from dalenius.queries.rules.clamp import GROUP, LARGEST, REPORT, ROW, Clamp
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.measuring.plan import Limits

CLAUSE, OLD = "differential_privacy", "anonymization"
STRATEGIES = ("laplace_threshold", "public_groups")
_CLAMPED = re.compile(r"\banon_\w+\s*\([^;]*\bclamped\b", re.IGNORECASE)  # of the old clause, also without it
_LIKELY = re.compile("|".join((CLAUSE, OLD, GROUP, ROW, REPORT, "clamped", r"with\s+report")), re.IGNORECASE)
REPORTED = "A report was asked for: columns hold the numbers themselves, and the release tells their errors besides."
# The old clause has functions of its own, and CLAMPED BETWEEN; what that clamps depends on the function.
_OLD = {
    **dict.fromkeys(("count", "sum", "avg"), GROUP),
    **dict.fromkeys(("var_pop", "stddev_pop", "percentile_cont", "quantiles"), ROW),
}
_PREFIX = "anon_"
_NUMBER = re.compile(r"(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")
_WORD = re.compile(r"[A-Za-z_]\w*")
T = TypeVar("T")


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
        report: Whether an aggregate asks for a report (WITH REPORT), which a release is anyway.
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
    report: bool = False

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
    from dalenius.queries.rules.spelling.quoting import requote

    text = requote(text)
    if not _LIKELY.search(text):
        return text, Options()
    try:
        tokens = tokenize(text, dialect=DIALECT)
    except SqlglotError:
        return text, Options()  # the parser says what is wrong with it
    clause = _Clause(text, tokens)
    options, after = clause.options()
    arguments = _Arguments(text, tokens, old=clause.old or bool(_CLAMPED.search(text)))
    arguments.spans = clause.spans
    clamps = arguments.clamps(after)
    return arguments.blanked(), replace(options, clamps=clamps, report=arguments.report)


def settle_price(
    question: str, epsilon: float | None, delta: float | None, *, at_most: bool = False
) -> tuple[float | None, float | None]:
    """ε and δ as the caller gave them, or as the question says; it is a mistake when they differ.

    ``at_most``: ε is the most to pay, beside an accuracy; of two, the lower one is.
    """
    from dalenius.queries.rules.parse import check_text

    check_text(question)
    _, options = cut_clause(question)
    both = at_most and epsilon is not None and options.epsilon is not None
    priced = min(parameters.epsilon(epsilon), options.epsilon or math.inf) if both else None
    return (
        _one("epsilon", epsilon, options.epsilon, parameters.epsilon, options) if priced is None else priced,
        _one("delta", delta, options.delta, parameters.delta, options),
    )


def not_the_unit(options: Options, unit: Sequence[str], known: Iterable[str]) -> NotAllowedError:
    """The error about a privacy_unit_column that is not the unit.

    Args:
        options: What the question says.
        unit: The columns that name the unit.
        known: All columns that the question could name.
    """
    said, name, protects = ".".join(options.unit)[:60], options.unit[-1], " + ".join(unit)
    columns = {each.lower(): each for each in (*known, *unit)}
    why = f"The policy protects each {protects}, and no question can change that."
    if name.lower() not in columns:
        meant = nearest(name, columns.values())
        why = f"There is no column {name[:60]!r}{f'; the nearest is {meant!r}' if meant else ''}. {why}"
    return NotAllowedError(
        f"The privacy unit is not {said!r}.",
        why=why,
        fix=f"Write privacy_unit_column = {unit[0]}, or leave it out."
        if len(unit) == 1
        else "Leave it out: the unit is known.",
        at=options.places.get("privacy_unit_column"),
    )


def check_nobody_named(text: str) -> None:
    """Refuses a privacy_unit_column where only public tables are read: whatever it names protects nobody there."""
    _, options = cut_clause(text)
    if options.unit:
        raise NotAllowedError(
            f"There is no privacy unit {'.'.join(options.unit)[:60]!r} here.",
            why="The question reads public tables only: nobody is protected in them, and the answer is exact.",
            fix="Leave privacy_unit_column out.",
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


# --- by tokens


class _Tokens:
    """The tokens of one text, by number, and the parts of it that were read and are no longer needed."""

    def __init__(self, text: str, tokens: Sequence[Any]) -> None:
        from sqlglot import TokenType

        self.types = TokenType
        self.text, self.tokens = text, tokens
        self.spans: list[tuple[int, int]] = []

    # --- looking

    def kind(self, at: int) -> Any:
        """What sqlglot takes it for; None past the end."""
        return self.tokens[at].token_type if 0 <= at < len(self.tokens) else None

    def word(self, at: int) -> str | None:
        """An unquoted word in small letters; None for anything else."""
        shown = self.slice(at, at) if 0 <= at < len(self.tokens) else ""
        return shown.lower() if _WORD.fullmatch(shown) else None

    def slice(self, first: int, last: int) -> str:
        """The text from one token to another, both included."""
        return self.text[self.tokens[first].start : self.tokens[last].end + 1]

    def depths(self) -> list[int]:
        """How many parentheses are open before each token."""
        depth, found = 0, []
        for at in range(len(self.tokens)):
            found.append(depth)
            depth += self._opens(at)
        return found

    def end(self, at: int) -> int:
        """The comma or parenthesis that ends the value that begins at ``at``."""
        depth = 0
        for number in range(at, len(self.tokens)):
            if not depth and self.kind(number) in {self.types.COMMA, self.types.R_PAREN}:
                if number == at:
                    raise self.syntax(at, "A value is missing.")
                return number
            depth += self._opens(number)
        raise self.syntax(len(self.tokens) - 1, "A parenthesis is not closed.")

    def number(self, value: range, message: str, *, signed: bool = False) -> Fraction:
        """A number that is written out; exact, as decimals are in policies."""
        sign = 1
        if signed and len(value) > 1 and self.kind(value[0]) in {self.types.DASH, self.types.PLUS}:
            sign, value = (-1 if self.kind(value[0]) is self.types.DASH else 1), value[1:]
        shown = self.slice(value[0], value[-1])
        if not _NUMBER.fullmatch(shown):
            why = "It is written out: no expression, no parameter."
            raise self.invalid(value[0], message, why, "Write for example 0.5.")
        return sign * Fraction(shown)

    def checked(self, at: int, read: Callable[[], T]) -> T:
        """What ``read`` gives; its mistake is told with its place."""
        try:
            return read()
        except InputError as error:
            error.at = self.place(at)
            raise

    def _opens(self, at: int) -> int:
        return {self.types.L_PAREN: 1, self.types.R_PAREN: -1}.get(self.kind(at), 0)

    # --- cutting

    def blank(self, first: int, last: int) -> None:
        """Tokens that `blanked` leaves out."""
        self.spans.append((self.tokens[first].start, self.tokens[last].end + 1))

    def blanked(self) -> str:
        """The text with blanks in place of what was read: lines and columns stay what they are."""
        text = self.text
        for low, high in self.spans:
            text = text[:low] + re.sub(r"[^\r\n\t]", " ", text[low:high]) + text[high:]
        return text

    # --- mistakes

    def place(self, at: int) -> Place:
        """Where a token begins; the last one for those past the end."""
        start = self.tokens[min(at, len(self.tokens) - 1)].start
        return Place(self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start))

    def refused(self, at: int, message: str, why: str, fix: str) -> QuestionRefusedError:
        """The error about something that cannot be asked."""
        return QuestionRefusedError(message, why=why, fix=fix, at=self.place(at))

    def invalid(self, at: int, message: str, why: str, fix: str) -> InputError:
        """The error about a value."""
        return InputError(message, why=why, fix=fix, at=self.place(at))

    def syntax(self, at: int, why: str) -> SqlSyntaxError:
        """The error about what cannot be read."""
        fix = "Write SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) …; see docs/how-to/bigquery.md."
        return SqlSyntaxError("The differential privacy clause cannot be read.", why=why, fix=fix, at=self.place(at))


class _Clause(_Tokens):
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
        sets = (self.types.UNION, self.types.EXCEPT, self.types.INTERSECT)
        if found and any(self.kind(at) in sets and not depth for at, depth in enumerate(self.depths()[: found[0]])):
            raise self.refused(
                found[0] + 1,
                "The clause stands in a later part of UNION.",
                "A question has one price, and that is for all of its parts.",
                "Write it after the first SELECT.",
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


class _Arguments(_Tokens):
    """Takes contribution bounds out of the aggregates that they belong to."""

    def __init__(self, text: str, tokens: Sequence[Any], *, old: bool) -> None:
        super().__init__(text, tokens)
        self.old, self.report = old, False
        self.found: dict[int, tuple[Clamp, ...]] = {}

    def clamps(self, after: int) -> dict[int, tuple[Clamp, ...]]:
        """All bounds from a token on, by where the name of their aggregate begins."""
        opened: list[int] = []
        for at in range(after, len(self.tokens)):
            if self.kind(at) is self.types.L_PAREN:
                opened.append(at)
            elif self.kind(at) is self.types.R_PAREN and opened:
                opened.pop()
            elif self.kind(at + 1) is self.types.FARROW and self.word(at) in {GROUP, ROW, REPORT}:
                self._named(at, opened)
            elif self.old and self.word(at) == "clamped" and self.kind(at + 1) is self.types.BETWEEN:
                self._clamped(at, opened)
            elif self.kind(at) is self.types.WITH and self.word(at + 1) == "report" and opened:
                self._reported(at)
            elif self._function(at) is not None:  # ANON_SUM is SUM
                self.spans.append((self.tokens[at].start, self.tokens[at].start + len(_PREFIX)))
        return self.found

    def _named(self, at: int, opened: list[int]) -> None:
        name = self.word(at)
        if self.kind(at - 1) is not self.types.COMMA or not opened or self.word(opened[-1] - 1) is None:
            raise self.syntax(at, f"{name} stands behind the other arguments of an aggregate.")
        if name == REPORT:
            self.report = True
            self.blank(at - 1, self.end(at + 2) - 1)
            return
        if self.kind(at + 2) is not self.types.L_PAREN:
            raise self.syntax(at + 2, f"{name} takes two numbers: (low, high).")
        comma = self.end(at + 3)
        close = self.end(comma + 1) if self.kind(comma) is self.types.COMMA else comma
        if self.kind(comma) is not self.types.COMMA or self.kind(close) is not self.types.R_PAREN:
            raise self.syntax(at + 2, f"{name} takes two numbers: (low, high).")
        if self.kind(close + 1) not in {self.types.COMMA, self.types.R_PAREN}:
            raise self.syntax(close + 1, f"Behind {name} comes another argument, or the parenthesis closes.")
        self._bounds(opened[-1] - 1, str(name), at, range(at + 3, comma), range(comma + 1, close))
        self.blank(at - 1, close)

    def _reported(self, at: int) -> None:
        """WITH REPORT, or WITH REPORT(FORMAT = JSON), at the end of an aggregate; a query of WITH goes on with AS."""
        last = self.end(at + 3) if self.kind(at + 2) is self.types.L_PAREN else at + 1
        if self.kind(last + 1) is self.types.R_PAREN:
            self.report = True
            self.blank(at, last)

    def _clamped(self, at: int, opened: list[int]) -> None:
        """CLAMPED BETWEEN low AND high, of the old clause."""
        function = self._function(opened[-1] - 1) if opened else None
        if function is None:
            raise self.syntax(at, "CLAMPED BETWEEN belongs to an aggregate such as ANON_SUM.")
        close = self.end(at + 2)
        close = next((each for each in range(at + 2, close) if self.kind(each) is self.types.WITH), close)
        middle = [each for each in range(at + 2, close) if self.kind(each) is self.types.AND]
        if len(middle) != 1 or not at + 2 < middle[0] < close - 1:
            raise self.syntax(at, "CLAMPED BETWEEN takes two numbers: low AND high.")
        self._bounds(opened[-1] - 1, _OLD[function], at, range(at + 2, middle[0]), range(middle[0] + 1, close))
        self.blank(at, close - 1)

    def _function(self, at: int) -> str | None:
        """The aggregate that an old name such as ANON_SUM stands for, where it is called."""
        name = self.word(at) or ""
        called = self.old and self.kind(at + 1) is self.types.L_PAREN and name.startswith(_PREFIX)
        return name.removeprefix(_PREFIX) if called and name.removeprefix(_PREFIX) in _OLD else None

    def _bounds(self, function: int, name: str, at: int, *ends: range) -> None:
        low, high = (self.number(each, f"{name} takes two numbers.", signed=True) for each in ends)
        if low > high:
            raise self.invalid(at, "The lower bound is above the upper one.", "Both hold.", "Write the smaller first.")
        if max(abs(low), abs(high)) > LARGEST:
            raise self.invalid(at, "The bounds are too large.", "Nothing lies beyond 1e100.", "Write smaller ones.")
        start = self.tokens[function].start + (len(_PREFIX) if self._function(function) else 0)
        there = self.found.get(start, ())
        if any(each.per == name for each in there):
            raise self.invalid(at, f"{name} is there twice.", "Which holds?", "Write it once.")
        self.found[start] = (*there, Clamp(name, low, high, self.place(at)))

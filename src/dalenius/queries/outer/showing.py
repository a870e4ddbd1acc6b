"""What is shown of a question with an outer part: its answer with errors, and its preview."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dalenius.queries.outer.computing import Given, Outcome, compute_outer
from dalenius.queries.outer.noise_copies import copy_count, draw_copies
from dalenius.queries.postprocess import ReleasedTable
from dalenius.queries.total_intervals import INCLUDED, NOT_INCLUDED

if TYPE_CHECKING:
    from dalenius.queries.answering import Answer
    from dalenius.queries.outer.asking import OuterPlanned
    from dalenius.queries.outer.sources import OuterColumn
    from dalenius.queries.preview import Choice, Preview

COMPUTED = "Computed from the release, which is free: {}."
NO_ERRORS = "Of cells without a margin in {} it cannot be told how far the noise moves them: {}."
NO_NUMBERS = "With other noise {} could be other values; not being numbers, they have no margin."
RANGES = "The range in all (`total_interval`) of {} includes this; ± does not, and {} {} no such range."
ALONE = "Quantiles and scaled groups are taken to move by themselves, so errors of what combines them are rough."
_MOST_LOOPED = 200  # copies, where each takes a statement of its own
_ONE_ROW = re.compile(r"\W*(\d+)\W*")
_APART = "rows are merged by noisy values"
_LONG = "rows cannot be told apart, there are too many, or it takes too long"


@dataclass(frozen=True)
class OuterTable:
    """The answer of an outer part, with what to know besides."""

    table: ReleasedTable
    notes: tuple[str, ...]
    own_notes: tuple[str, ...]  # of the releases


def show_outer(
    found: OuterPlanned, answers: Sequence[Answer], stored: Sequence[bytes], question: str, confidence: float
) -> OuterTable:
    """The answer, computed from stored releases.

    Args:
        found: What was asked.
        answers: The releases, in the order in which the outer part names them.
        stored: Their bytes.
        question: As it was asked.
        confidence: Of the errors.
    """
    outer, tables = found.split.outer, [each.table() for each in answers]
    cells = sum(len(each.rows) * each.keys.count(False) for each in tables)
    number = 0 if outer.base is None else copy_count(cells, None if outer.at_once is not None else _MOST_LOOPED)
    given, alone = [], False
    for inner, answer, content, table in zip(found.split.inners, answers, stored, tables, strict=True):
        copies = draw_copies(answer, table, content, number)
        alone |= copies.alone
        given.append(Given(inner.name, answer.plan, table.rows, copies if copies.number else None))
    outcome = compute_outer(outer, given, found.publics, question, confidence)
    shown = _Cells(found, tables, outcome)
    table = shown.table()
    notes = [COMPUTED.format(_listed([each.name for each in outer.columns if each.origin is None and not each.exact]))]
    if not any(each.origin is None and not each.exact for each in outer.columns):
        notes = []
    missing, words = shown.missing()
    if words:
        notes.append(NO_NUMBERS.format(_listed(words)))
    if missing:
        notes.append(NO_ERRORS.format(_listed(missing), _APART if outer.base is None else _LONG))
    if outcome.cut:
        notes.append(f"Only the first {len(outcome.rows):,} rows are here.")
    notes += [ALONE] if alone and outcome.errors is not None else []
    return OuterTable(table, tuple(notes), notes_of(found, answers))


@dataclass(frozen=True)
class _Cells:
    """The cells of an answer, with their errors."""

    found: OuterPlanned
    tables: Sequence[ReleasedTable]
    outcome: Outcome

    @property
    def columns(self) -> tuple[OuterColumn, ...]:
        return self.found.split.outer.columns

    def table(self) -> ReleasedTable:
        """The answer as any release has it."""
        rows = [
            [self.shown(at, place, row[place]) for place in range(len(self.columns))]
            for at, row in enumerate(self.outcome.rows)
        ]
        cells = [
            [self.cell(at, place, row[place]) for place in range(len(self.columns))] for at, row in enumerate(rows)
        ]
        return ReleasedTable(
            tuple(each.name for each in self.columns),
            tuple(each.exact for each in self.columns),
            tuple(map(tuple, rows)),
            tuple(tuple(each[0] for each in row) for row in cells),
            tuple(tuple(each[1] for each in row) for row in cells),
            tuple(tuple(each[2] for each in row) for row in cells),
            tuple(self.clipping(each) for each in self.columns),
        )

    def shown(self, at: int, place: int, value: Any) -> Any:
        """A cell: one that is a release's as it stands there; decimals, which `n * 1.5` gives, as floats."""
        own = None if value is None else self.own(at, self.columns[place])
        if own is not None and own[0].rows[own[1]][own[2]] == value:
            return own[0].rows[own[1]][own[2]]
        return float(value) if isinstance(value, Decimal) else value

    def missing(self) -> tuple[list[str], list[str]]:
        """The columns with noise in them of which a cell does not say how much; and those that are no numbers."""
        found, words = list[str](), list[str]()
        for place, column in enumerate(self.columns):
            values = [row[place] for row in self.outcome.rows if row[place] is not None]
            if column.exact or not values:
                continue
            if not any(isinstance(each, int | float | Decimal) and not isinstance(each, bool) for each in values):
                words.append(column.name)
            elif any(
                row[place] is not None and self.cell(at, place, row[place])[0] is None
                for at, row in enumerate(self.outcome.rows)
            ):
                found.append(column.name)
        return found, words

    def cell(self, at: int, place: int, value: Any) -> tuple[Any, Any, Any]:
        """Noise error, interval and total interval of a cell."""
        column = self.columns[place]
        if column.exact or value is None:
            return None, None, None
        own = self.own(at, column)
        if own is not None:
            table, row, output = own
            return table.noise_error[row][output], table.interval[row][output], table.total_interval[row][output]
        errors = self.outcome.errors
        told = None if errors is None else errors[at][place]
        if told is None:
            return None, None, None
        half, low, high = told
        if column.rank:
            return max(value - low, high - value), (low, high), None
        return half, (float(value) - half, float(value) + half), None

    def own(self, at: int, column: OuterColumn) -> tuple[ReleasedTable, int, int] | None:
        """The cell of a release that a cell is, unchanged."""
        outer = self.found.split.outer
        if column.origin is None or outer.rows_of != column.origin[0] or not outer.identified:
            return None
        match = _ONE_ROW.fullmatch(str(self.outcome.rows[at][-1]))
        return None if match is None else (self.tables[column.origin[0]], int(match[1]), column.origin[1])

    def clipping(self, column: OuterColumn) -> float | None:
        """What clipping took of the one column that a column is."""
        if column.exact or column.origin is None:
            return None
        return self.tables[column.origin[0]].clipping[column.origin[1]]


def notes_of(found: OuterPlanned, answers: Sequence[Answer]) -> tuple[str, ...]:
    """What releases say of themselves; of ranges in all only where such are shown: what is computed has none."""
    columns, notes = found.split.outer.columns, list[str]()
    computed = [each.name for each in columns if not each.exact and each.origin is None]
    for number, answer in enumerate(answers):
        own = [each for each in columns if not each.exact and each.origin and each.origin[0] == number]
        totals = answer.table().total_interval if own else ()
        shown = [each.name for each in own if each.origin and any(row[each.origin[1]] for row in totals)]
        told = INCLUDED
        if not shown:
            told = NOT_INCLUDED
        elif computed:
            told = RANGES.format(_listed(shown), _listed(computed), "has" if len(computed) == 1 else "have")
        notes += [each.replace(INCLUDED, told) for each in answer.notes]
    return tuple(dict.fromkeys(notes))


def preview_outer(found: OuterPlanned, previews: Sequence[Preview], prices: Sequence[tuple[bool, float]]) -> Preview:
    """The preview of a question with an outer part, from those of what it asks. No process runs for it.

    ``prices``: of each price whether it was paid before, and the δ that it takes.
    """
    outer, first = found.split.outer, previews[0]
    choices = tuple(
        _choice([each.choices[at] for each in previews], found, prices[at]) for at in range(len(first.choices))
    )
    computed = [each.name for each in outer.columns if each.origin is None and not each.exact]
    notes = list(dict.fromkeys(note for each in previews for note in each.notes))
    if computed:
        notes.append(f"{COMPUTED.format(_listed(computed))[:-1]}. The answer says how exact that is.")
    return replace(
        first,
        columns=tuple(each.name for each in outer.columns),
        choices=choices,
        groups=_groups(found, [each.groups for each in previews]),
        plan="\n".join([*(each.plan for each in previews), _then(computed)]),
        notes=tuple(notes),
        delta=choices[0].delta if choices else 0.0,
    )


def _groups(found: OuterPlanned, groups: Sequence[int | None]) -> int | None:
    """How many rows there are before any is left out: of UNION those of all parts, else of the largest."""
    known = [each for each in groups if each is not None]
    if len(known) < len(groups):
        return None
    return sum(known) if found.split.outer.tree.key == "union" else max(known)


def _then(computed: Sequence[str]) -> str:
    return f"then, computed from the release: {_listed(computed) or 'which rows are shown'}"


def _choice(inner: Sequence[Choice], found: OuterPlanned, price: tuple[bool, float]) -> Choice:
    """One price: what is expected of columns that are shown as they are released."""
    columns = found.split.outer.columns
    places = [None if each.exact or each.origin is None else each.origin for each in columns]
    choices = [None if each is None else (inner[each[0]], each[1]) for each in places]
    return replace(
        inner[0],
        noise_error=tuple(None if each is None else each[0].noise_error[each[1]] for each in choices),
        total_error=tuple(None if each is None else each[0].total_error[each[1]] for each in choices),
        at_most=tuple(False if each is None else each[0].at_most[each[1]] for each in choices),
        known=price[0],
        delta=price[1],
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)

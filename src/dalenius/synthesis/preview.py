"""What a synthetic table would be, before paying: from the policy, and from what `protect` has released."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius._fields import Fields
from dalenius.releasing.leaving import is_paid
from dalenius.releasing.whole_table import best_release
from dalenius.synthesis.kind import leaving_of
from dalenius.synthesis.measurer import by_cells
from dalenius.synthesis.start import MARGIN
from dalenius.synthesis.views import whole

if TYPE_CHECKING:
    from dalenius.releasing.leaving import Asker
    from dalenius.synthesis.kind import Planned
    from dalenius.synthesis.request import SynthesisAsk


@dataclass(frozen=True)
class ExpectedColumn:
    """One column.

    Attributes:
        name: As in the policy.
        values: How many codes it has; at most, where its keys or classes are found.
        margin: 95% margin for the added noise in the number of rows of each value, before all tables are made to fit.
        kind: Its type.
    """

    name: str
    values: int
    margin: float
    kind: str = ""


@dataclass(frozen=True)
class SyntheticPreview:
    """Price and expected noise of a synthetic table.

    Attributes:
        epsilon: The price.
        table: Whose rows.
        method: The generator.
        words: What it does.
        columns: Those that would be modelled.
        left_out: Those that cannot be, each with what must be declared.
        rows: How many rows there are, by the noisy number that `protect` released; None: it released none.
        rows_per_unit: So many rows of one unit count in full.
        work: Seconds that it takes on the machine of bench/RESULTS.md, as far as public sizes tell.
        memory: Bytes that it takes at most, as far as public sizes tell.
        seconds: After which it leaves, on that machine, where times are fixed.
        remaining: What is left to spend.
        known: This analyst has paid for it already: it is free.
        release: The number of this analyst's best release of the same, at whatever price; None: there is none.
        notes: What the reader should know besides.
    """

    epsilon: float
    table: str
    method: str
    words: str
    columns: tuple[ExpectedColumn, ...]
    left_out: Mapping[str, str]
    rows: int | None
    rows_per_unit: int
    work: float
    memory: int
    seconds: float
    remaining: Mapping[str, Any]
    known: bool
    release: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """For `--json` and HTTP."""
        found = asdict(self)
        return found | {"columns": [asdict(each) for each in self.columns], "notes": list(self.notes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SyntheticPreview:
        """As `to_dict` wrote it."""
        found = Fields(data, "synthetic")
        columns = (Fields(each, "synthetic") for each in found.each("columns", dict))
        return cls(
            found.number("epsilon"),
            found.text("table"),
            found.text("method"),
            found.text("words"),
            tuple(map(_column_of, columns)),
            found.mapping("left_out"),
            found.whole("rows") if found.any("rows") is not None else None,
            found.whole("rows_per_unit"),
            found.number("work"),
            found.whole("memory"),
            found.number("seconds"),
            found.mapping("remaining"),
            found.flag("known"),
            found.text("release") if "release" in found else None,
            found.texts("notes"),
        )


def _column_of(each: Fields) -> ExpectedColumn:
    kind = each.text("kind") if "kind" in each else ""
    return ExpectedColumn(each.text("name"), each.whole("values"), each.number("margin"), kind)


def preview(asker: Asker, ask: SynthesisAsk) -> SyntheticPreview:
    """Price and expected noise, for nothing. Never touches the data."""
    with asker.own_work():
        leaving = leaving_of(asker, ask)
        planned: Planned = leaving.plan
        found, dataset = planned.table.found, leaving.snapshot.dataset
        return SyntheticPreview(
            leaving.epsilon,
            planned.table.policy.name,
            planned.method.name,
            planned.method.words,
            expected_columns(planned, leaving.epsilon),
            planned.left_out,
            found.row_count if found is not None and found.row_count > 0 else None,
            planned.limit.rows,
            round(planned.seconds, 1),
            planned.memory,
            planned.times(1.0).answer,
            asker.remaining(dataset, leaving.periods),
            is_paid(leaving, asker),
            best_release(leaving, asker),
            (*planned.notes, *asker.warnings(dataset)),
        )


def expected_columns(planned: Planned, epsilon: float) -> tuple[ExpectedColumn, ...]:
    """The noise in the counts of single values: its law is known before anything is measured."""
    rho = Fraction(planned.cost(epsilon).rho) * Fraction(planned.method.first)
    sizes = planned.domain.domain.sizes
    parts = by_cells(rho, [whole([at], sizes) for at in range(len(sizes))])
    deviations = [math.sqrt(planned.limit.of_table / (2 * part)) / planned.limit.whole for part in parts]
    return tuple(
        ExpectedColumn(each.name, each.column.size, round(MARGIN * deviation, 3), each.kind.value)
        for each, deviation in zip(planned.domain.columns, deviations, strict=True)
    )

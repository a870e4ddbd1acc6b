"""The report on published rows: what was lost, what is at risk, which attacks work on them, and what noise costs.

It is for the owner, before or after publishing: it is computed from the rows themselves, and is not to be published
with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._version import __version__
from dalenius.app.views.publications import binned, class_sizes
from dalenius.errors import DaleniusError, NotAllowedError

if TYPE_CHECKING:
    from dalenius.anonymity.options import Made, Options
    from dalenius.anonymity.roles import Roles
    from dalenius.anonymity.sources import Rows
    from dalenius.anonymity.table import Table
    from dalenius.curator import Curator

EPSILONS = (0.1, 0.5, 1.0)
USEFUL = 0.1  # of an average count: what is called a useful error here
CONFIDENCE = 0.95


@dataclass(frozen=True)
class NoiseCost:
    """What a differentially private release of the same counts would cost.

    Attributes:
        what: The statistic.
        cells: How many counts.
        average: How large one is, on average.
        errors: At each ε, how far 95% of the counts are off at most.
        useful: The ε at which that is a tenth of an average count.
        basis: Where the figures come from.
    """

    what: str
    cells: int
    average: float
    errors: Sequence[tuple[float, float]]
    useful: float | None
    basis: str


@dataclass(frozen=True)
class RowsReport:
    """All facts of the report."""

    made: str
    program: str
    table: str
    asked: str
    facts: Mapping[str, Any]
    losses: Mapping[str, Mapping[str, float] | None]  # before and after
    sizes: Mapping[str, Sequence[tuple[int, int, int]]]  # from, to, rows
    risks: Mapping[str, Mapping[str, Any]]
    attacks: Sequence[Mapping[str, Any]]
    noise: NoiseCost
    protected: bool

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        from dalenius.anonymity.publishing import plain

        found: dict[str, Any] = plain({**asdict(self), "guarantee": None})
        return found


def write_report(
    target: Path, original: Table, made: Made, rows: Rows, options: Options, curator: Curator | None
) -> RowsReport:
    """Writes it, as HTML or JSON by the file's ending; whole or not at all."""
    from dalenius.anonymity.table import whole_file
    from dalenius.app.report.rows_html import document

    found = gather(original, made, rows, options, curator)
    text = document(found) if target.suffix.lower() == ".html" else json.dumps(found.to_dict(), indent=1) + "\n"
    with whole_file(target) as part:
        part.write_text(text, encoding="utf-8")
    return found


def gather(original: Table, made: Made, rows: Rows, options: Options, curator: Curator | None) -> RowsReport:
    """All facts about a table and what is published of it."""
    from dalenius.anonymity.losses import losses
    from dalenius.anonymity.publishing import plain
    from dalenius.anonymity.risk import risk
    from dalenius.audit.attacks.published.trying import tried_on

    roles, published = rows.roles, made.table
    same = published.rows == original.rows
    attacks = tried_on(published, roles, original=original if same else None)
    return RowsReport(
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        program=f"dalenius {__version__}",
        table=rows.name,
        asked=options.words,
        facts=plain(made.facts),
        losses={
            "before": losses(original, original, roles).to_dict(),
            "after": made.facts.get("loss"),
        },
        sizes={
            "before": binned(class_sizes(original, roles.quasi)),
            "after": binned(class_sizes(published, roles.quasi)),
        },
        risks={
            "before": risk(original, roles.quasi).to_dict(),
            "after": risk(published, roles.quasi).to_dict(),
        },
        attacks=[plain(each.to_dict()) for each in attacks],
        noise=noise_cost(published, roles, rows, curator),
        protected=rows.version is not None,
    )


def noise_cost(published: Table, roles: Roles, rows: Rows, curator: Curator | None) -> NoiseCost:
    """What the counts of the published table, by quasi-identifiers and sensitive values, would cost with noise.

    One person is in one cell, so all cells together are one release. With Laplace noise of scale 1/ε a count is off by
    more than x with probability e^(−εx); so 95% are off by at most ln(20)/ε. Where the table is protected, the price
    is that of its own policy, as `preview` tells it, if the policy lets the same columns be asked about.
    """
    from dalenius.anonymity.classes import classes

    names = [*roles.quasi, *roles.sensitive]
    cells = len(classes(published, names).sizes)
    average = published.rows / cells if cells else 0.0
    what = f"counts by {', '.join(names)}"
    spread = math.log(1 / (1 - CONFIDENCE))
    errors, basis = [(each, spread / each) for each in EPSILONS], f"Laplace noise: ln(20)/ε = {spread:.3g}/ε"
    basis += ", of people who have one row each"
    if rows.version is not None and curator is not None:
        try:
            told = _previewed(rows, names, curator)
        except DaleniusError as error:
            basis += f". The policy of {rows.version.table} does not price these columns together: {error.message}"
        else:
            errors, basis = told, f"the preview of the policy of {rows.version.table}: its unit, limits and accounting"
    useful = errors[-1][0] * errors[-1][1] / (USEFUL * average) if average and errors else None
    return NoiseCost(what, cells, average, errors, useful, basis)


def _previewed(rows: Rows, names: Sequence[str], curator: Curator) -> list[tuple[float, float]]:
    from dalenius.tables.registry import Version

    if not isinstance(rows.version, Version):
        raise TypeError("No protected table.")
    columns = ", ".join('"' + each.replace('"', '""') + '"' for each in names)
    sql = f'SELECT {columns}, COUNT(*) AS n FROM "{rows.version.table}" GROUP BY {columns}'  # noqa: S608 (priced only)
    # A preview is some analyst's; the price of a question is the same for all of them.
    whose = next(iter(curator.ledger.allotments(rows.version.dataset)), None)
    if whose is None:
        raise NotAllowedError("No analyst has an allotment.", why="A preview is an analyst's.", fix="Allot some ε.")
    asker = curator.analyst(whose)
    found = [(each, asker.preview(sql, epsilon=each).choices[0].noise_error[-1]) for each in EPSILONS]
    return [(epsilon, error) for epsilon, error in found if error is not None]

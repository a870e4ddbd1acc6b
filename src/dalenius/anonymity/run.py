"""Makes a table that keeps the models asked for, checks it, and says what it lost."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dalenius.anonymity.checking import Finding, check
from dalenius.anonymity.hierarchies import SUPPRESSED
from dalenius.anonymity.losses import LOSSES, Losses, losses
from dalenius.anonymity.models import KAnonymity, Model, Presence
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.anonymity.transformers import TRANSFORMERS, problem, published
from dalenius.anonymity.transformers.problem import Progress
from dalenius.errors import InputError, InternalError

METHODS = tuple(TRANSFORMERS)


@dataclass(frozen=True, eq=False)
class Publication:
    """A table that may be published, and what it is worth.

    Attributes:
        table: Same header and number of rows as the original. Identifiers are `*`, and so is every quasi-identifier of
            a suppressed row. Rows stand in the order of their published cells, unless the original's was to be kept.
        rows: Of both.
        classes: Of rows that look alike; the suppressed rows are one.
        suppressed: Rows with `*` in every quasi-identifier in place of labels: at most what the limit allows.
        generalised: Rows that were not suppressed, and whose labels all are `*` nevertheless, while others' are not:
            their class reaches over all values. "mondrian" and "local" make such classes, whatever the limit.
        models: What was asked and what is reached.
        loss: What was lost.
        method: How it was made.
        optimised: Which loss was to be small.
        seconds: How long it took.
        optimal: Whether it is proved that no full-domain table under the same limit loses less: one level for each
            column, every class published or suppressed as a whole.
        bound: No such table loses less than that; None where nothing is known.
        gap: How far the loss may be from the optimum; None where nothing is known.
        levels: The level of each column, where it is one for all rows.
    """

    table: Table
    rows: int
    classes: int
    suppressed: int
    generalised: int
    models: tuple[Finding, ...]
    loss: Losses
    method: str
    optimised: str
    seconds: float
    optimal: bool
    bound: float | None
    gap: float | None
    levels: Mapping[str, int] | None

    def to_dict(self) -> dict[str, Any]:
        """All but the rows, as JSON."""
        return {
            "rows": self.rows,
            "classes": self.classes,
            "suppressed": self.suppressed,
            "generalised": self.generalised,
            "models": [each.to_dict() for each in self.models],
            "loss": self.loss.to_dict(),
            "method": self.method,
            "optimised": self.optimised,
            "seconds": self.seconds,
            "optimal": self.optimal,
            "bound": self.bound,
            "gap": self.gap,
            "levels": None if self.levels is None else dict(self.levels),
        }


def anonymize(
    table: Table,
    roles: Roles,
    models: Sequence[Model],
    *,
    suppress: float = 0.0,
    loss: str = "ncp",
    method: str = "optimal",
    time: float | None = None,
    progress: Progress | None = None,
    keep_order: bool = False,
) -> Publication:
    """Generalises and suppresses until all models hold.

    Args:
        table: The rows.
        roles: Identifiers, quasi-identifiers, sensitive columns; hierarchies and weights.
        models: What must hold, all of it.
        suppress: At most this share of the rows may be suppressed.
        loss: What is to be small: "ncp", "discernibility", "class-size" or "entropy".
        method: "optimal" (the best of all full-domain tables), "mondrian", "mondrian-relaxed", "local" or "greedy".
        time: Seconds after which the best so far is taken.
        progress: Called with a share of what is done and a word.
        keep_order: Leave rows in the order of the original: to compare the two, never to publish. Where somebody stands
            in a file that is sorted, or known, undoes generalisation and suppression.

    Raises:
        InputError: The table is too small, the models cannot be reached, or an option makes no sense.
        PolicyInvalidError: The roles do not fit the table, or a hierarchy misses a value.

    >>> from pathlib import Path
    >>> table = Table.of({"age": ["31", "34", "47", "48"], "ill": ["flu", "cold", "flu", "flu"]})
    >>> roles = Roles.from_dict({"quasi": ["age"], "hierarchies": {"age": {"width": 10}}}, Path())
    >>> found = anonymize(table, roles, [KAnonymity(2)])
    >>> found.table["age"].cells(), found.optimal
    (['30-39', '30-39', '40-49', '40-49'], True)
    """
    _check_options(suppress, loss, method, time)
    roles.check(table)
    _check_size(table, models)
    _check_stars(table, roles)
    if method not in {"optimal", "greedy"} and any(isinstance(model, Presence) for model in models):
        raise InputError(
            f"δ-presence cannot be had by the method {method!r}.",
            why="It must be clear into which class each person of the population falls.",
            fix="Use --method optimal or greedy.",
        )
    begin = clock.monotonic()
    task = problem(
        table,
        roles,
        models,
        suppress=suppress,
        loss=loss,
        ends=None if time is None else begin + time,
        progress=progress or (lambda _share, _word: None),
    )
    recoding = TRANSFORMERS[method](task)
    made = published(task, recoding)
    seconds = clock.monotonic() - begin
    result = check(made, roles, models)
    if not result.met:
        raise InternalError(
            f"The method {method!r} made a table that fails its check.",
            why="It was not handed out.",
            fix="Report this, with the options that you used.",
        )
    found = losses(table, made, roles)
    starred = all(each.labels[-1] == (SUPPRESSED,) for each in task.hierarchies)
    # if all rows read `*` since that is the highest label, none of them is suppressed
    suppressed = int((recoding.levels[0] < 0).sum()) if result.suppressed or not starred else 0
    value = found.of(loss)
    gap = None if recoding.bound is None else max(value - recoding.bound, 0.0)
    chosen = recoding.levels_chosen
    return Publication(
        made if keep_order else made.sorted(),
        table.rows,
        result.classes,
        suppressed,
        max(result.suppressed - suppressed, 0),
        result.findings,
        found,
        method,
        loss,
        seconds,
        gap is not None and gap <= 1e-9 * max(value, 1.0),
        recoding.bound,
        gap,
        None if chosen is None else dict(zip(roles.quasi, chosen, strict=True)),
    )


def _check_options(suppress: float, loss: str, method: str, time: float | None) -> None:
    if not 0 <= suppress <= 1:
        raise InputError("This is no share of rows.", why="It is from 0 to 1.", fix="Write --suppress 5%.")
    for option, value, known in (("loss", loss, LOSSES), ("method", method, METHODS)):
        if value not in known:
            raise InputError(
                f"There is no {option} {value!r}.",
                why=f"There are {', '.join(known)}.",
                fix=f"Write --{option} {known[0]}.",
            )
    if time is not None and not time > 0:
        raise InputError("This is no time.", why="It is in seconds.", fix="Write --time 60.")


def _check_stars(table: Table, roles: Roles) -> None:
    for name in roles.quasi:
        if SUPPRESSED in table[name].values:
            raise InputError(
                f"In {name!r} some cell reads {SUPPRESSED}.",
                why="In a published table that stands for what was taken away: nobody could tell them apart.",
                fix="Write another word for it, or leave the cell empty.",
            )


def _check_size(table: Table, models: Sequence[Model]) -> None:
    if not models:
        raise InputError("No model is asked for.", why="Any table would do.", fix="Write --k 5, for instance.")
    if table.rows < 2:
        raise InputError(
            f"The table has {'no rows' if not table.rows else 'one row'}.",
            why="Nobody is hidden among no others.",
            fix="Publish more rows, or none.",
        )
    k = max((model.k for model in models if isinstance(model, KAnonymity)), default=1)
    if k > table.rows:
        raise InputError(
            f"k = {k} is larger than the table.",
            why=f"It has {table.rows} rows, so no class can have {k}.",
            fix=f"Write --k {table.rows} or less, or publish more rows.",
        )

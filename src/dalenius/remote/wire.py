"""What goes to a server, and what comes back: checked before it is used, as whoever answers need not be one of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dalenius._fields import Fields
from dalenius.accounting import parameters
from dalenius.errors import DaleniusError, InputError, SourceUnavailableError

if TYPE_CHECKING:
    from dalenius.learning.release import TrainedModel
    from dalenius.measuring.plan import Limits
    from dalenius.queries.ask import Amount, Error
    from dalenius.synthesis.release import SyntheticTable

_LONGEST = 20_000  # characters of one part of an error
_EXACT = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60}|/[1-9][0-9]{0,60})?")  # as the ledger writes decimals and fractions
_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")


# --- a question on its way there


def body_of(
    question: object,
    epsilon: float | None,
    error: Error | None,
    confidence: float,
    delta: float | None,
    limits: Limits | None,
    *,
    fresh: bool = False,
) -> dict[str, Any]:
    """A question as JSON; what is not given is left out. Numbers are checked here as they are at home."""
    if not isinstance(question, str):
        raise InputError("The question is not text.", why="It is one SELECT.", fix="Give it as a str.")
    body: dict[str, Any] = {"sql": question, "confidence": _number(confidence, "confidence")}
    if epsilon is not None:
        body["epsilon"] = parameters.epsilon(epsilon)
    if isinstance(error, Mapping):
        body["error"] = {str(name): _amount(value) for name, value in error.items()}
    elif error is not None:
        body["error"] = _amount(error)
    if delta is not None:
        body["delta"] = parameters.delta(delta)
    found = {} if limits is None else _limits_body(limits)
    return body | ({"limits": found} if found else {}) | ({"fresh": True} if fresh else {})


def workload_body(
    questions: Sequence[str] | str,
    epsilon: float,
    weights: Sequence[float],
    confidence: float,
    delta: float | None,
) -> dict[str, Any]:
    """A workload as JSON."""
    from dalenius.queries.workloads.reading import list_questions

    body: dict[str, Any] = {
        "questions": [each.text for each in list_questions(questions)],
        "epsilon": parameters.epsilon(epsilon),
        "confidence": _number(confidence, "confidence"),
        "weights": [_number(each, "weight") for each in weights],
    }
    return body if delta is None else body | {"delta": parameters.delta(delta)}


def comparison_body(release: SyntheticTable | str, epsilon: float, predict: str | None) -> dict[str, Any]:
    """A comparison of a synthetic table as JSON."""
    from dalenius.synthesis.release import release_id

    return {"release": release_id(release), "epsilon": parameters.epsilon(epsilon), "predict": predict}


def score_body(release: TrainedModel | str, epsilon: float) -> dict[str, Any]:
    """A score of a model as JSON."""
    from dalenius.learning.release import release_id

    return {"release": release_id(release), "epsilon": parameters.epsilon(epsilon)}


def _amount(given: Amount) -> float | str:
    """An error: a number, or a per cent, which the server reads."""
    return given if isinstance(given, str) else _number(given, "error")


def _limits_body(limits: Limits) -> dict[str, Any]:
    given = {"rows": limits.rows, "groups": limits.groups, "units": limits.units}
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if limits.totals:
        found["totals"] = {name: _exact(total, name) for name, total in limits.totals.items()}
    if limits.search is not None:
        found["search"] = float(limits.search)
    return found


def _exact(total: Fraction, name: str) -> str | float:
    """A limit as JSON, without any loss: a number where a double is just that, else a decimal."""
    if total.denominator == 1:
        return int(total)
    if Fraction(float(total)) == total:
        return float(total)
    for digits in range(1, 31):
        if (total * 10**digits).denominator == 1:
            whole, rest = divmod(abs(total.numerator) * 10**digits // total.denominator, 10**digits)
            return f"{'-' if total < 0 else ''}{whole}.{rest:0{digits}}"
    raise InputError(
        f"The total of {name} has no decimal form.", why="It is sent as one, exactly.", fix="Give a decimal number."
    )


def _number(value: object, name: str) -> float:
    number = parameters.real(value, name)
    return number if isinstance(number, int) else float(number)


def quote_part(name: object) -> str:
    """A name as one part of an address."""
    if not isinstance(name, str) or not name:
        raise InputError("The name is not a text.", why="It is part of an address.", fix="Give it as a str.")
    return quote(name, safe="")


# --- what comes back


@dataclass(frozen=True)
class RemoteJob:
    """A question whose answer leaves at a time fixed beforehand."""

    id: str
    state: str
    seconds_left: float
    result: dict[str, Any] | None
    problem: dict[str, Any] | None
    steps: tuple[int, int] | None = None  # of a training: done, of how many

    @classmethod
    def from_dict(cls, data: object) -> RemoteJob:
        """As the server tells it."""
        found = Fields(data, "job")
        job = cls(
            found.text("id"),
            found.text("state"),
            max(0.0, found.number("seconds_left")) if "seconds_left" in found else 0.0,  # not known before it looks
            found.mapping("result") if "result" in found else None,
            found.mapping("problem") if "problem" in found else None,
            _steps(found) if "steps" in found else None,
        )
        needed = {"running": True, "done": job.result is not None, "failed": job.problem is not None}
        if not needed.get(job.state, False) or not _ID.fullmatch(job.id):
            raise found.wrong("state")
        return job


def _steps(found: Fields) -> tuple[int, int]:
    given = found.each("steps", int)
    if len(given) != 2 or not 0 <= given[0] <= given[1]:
        raise found.wrong("steps")
    return given[0], given[1]


def problem(data: object, status: int) -> DaleniusError | None:
    """The error that a problem tells, with nothing in it that a terminal would obey; None: it is no problem.

    A code that is not known, of a server that is newer, becomes the general error of its status.
    """
    if not isinstance(data, dict):
        return None
    shown = {
        name: _readable(value) if name in {"message", "why", "fix"} and isinstance(value, str) else value
        for name, value in data.items()
    }
    code = shown.get("code")
    try:
        return DaleniusError.from_dict(shown)
    except InputError:
        if not isinstance(code, str) or not isinstance(shown.get("message"), str):
            return None
    kind = InputError if status < 500 else SourceUnavailableError
    known = {"code": kind.code, "why": "", "fix": "Upgrade dalenius: its error is not known here.", **shown}
    try:
        return DaleniusError.from_dict({**known, "code": kind.code})
    except InputError:
        return None


def summaries(data: object) -> list[dict[str, Any]]:
    """A list of tables."""
    return [summary(each) for each in Fields(data, "list of tables").items("tables")]


def only_summary(data: object) -> dict[str, Any]:
    """The one table that was asked for, alone or in a list."""
    found = Fields(data, "table")
    if "tables" not in found:
        return summary(data)
    if len(found.items("tables")) != 1:
        raise found.wrong("tables")
    return summary(found.items("tables")[0])


def summary(data: object) -> dict[str, Any]:
    """What may be known of a table; of the form that `dalenius tables --json` has."""
    found = Fields(data, "table")
    for name in ("name", "dataset", "neighbors", "version"):
        found.text(name)
    found.texts("unit")
    for name in ("path", "closed"):
        if name in found:
            found.text(name)
    found.whole("data_version")
    for column in found.mapping("columns").values():
        _check_column(Fields(column, "table"))
    _check_limits(found.fields("contribution"))
    if "limits" in found and found.mapping("limits"):
        limits = found.fields("limits")
        limits.whole("rows")
        limits.mapping("totals")
        _check_limits(limits)
        if "data_version" in limits:
            limits.whole("data_version")
        if "clipped" in limits:
            _check_numbers(limits, "clipped")
        if "sizes" in limits:
            for counts in limits.mapping("sizes").values():
                Fields(counts, "table").numbers("noisy")
    for public in found.mapping("public").values():
        table = Fields(public, "table")
        table.texts("key")
        if "columns" in table and not all(isinstance(each, str) for each in table.mapping("columns").values()):
            raise table.wrong("columns")
    return dict(found.data)


def _check_column(column: Fields) -> None:
    column.text("type")
    if "zone" in column:
        column.text("zone")
    if "step" in column:
        column.number("step")
    if "bounds" in column and len(column.items("bounds")) != 2:
        raise column.wrong("bounds")
    values = [*(column.items(name) for name in ("bounds", "keys") if name in column), [column.any("default")]]
    if not all(each is None or isinstance(each, str | int | float) for part in values for each in part):
        raise column.wrong("keys")


def _check_limits(limits: Fields) -> None:
    for name in ("rows", "groups", "units"):
        if name in limits:
            limits.whole(name)
    if "totals" in limits:
        for each in limits.mapping("totals").values():
            if not isinstance(each, str):
                limits.number_of(each, "totals")
            elif not _EXACT.fullmatch(each):
                raise limits.wrong("totals")


def _check_numbers(fields: Fields, name: str) -> None:
    for each in fields.mapping(name).values():
        if each is not None:
            fields.number_of(each, name)


def _readable(text: str) -> str:
    shown = "".join(each if each.isprintable() or each == "\n" else "\N{REPLACEMENT CHARACTER}" for each in text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"

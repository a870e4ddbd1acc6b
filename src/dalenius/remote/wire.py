"""What a server sends, checked before it is used: whoever answers at an address need not be one of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dalenius._fields import Fields
from dalenius.errors import DaleniusError, InputError, SourceUnavailableError

_LONGEST = 20_000  # characters of one part of an error
_EXACT = re.compile(r"[0-9]{1,60}(\.[0-9]{1,60}|/[1-9][0-9]{0,60})?")  # as the ledger writes decimals and fractions
_ID = re.compile(r"[0-9A-Za-z_-]{1,100}")


@dataclass(frozen=True)
class Job:
    """A question whose answer leaves at a time fixed beforehand."""

    id: str
    state: str
    seconds_left: float
    result: dict[str, Any] | None
    problem: dict[str, Any] | None

    @classmethod
    def from_dict(cls, data: object) -> Job:
        """As the server tells it."""
        found = Fields(data, "job")
        job = cls(
            found.text("id"),
            found.text("state"),
            max(0.0, found.number("seconds_left")) if "seconds_left" in found else 0.0,  # not known before it looks
            found.mapping("result") if "result" in found else None,
            found.mapping("problem") if "problem" in found else None,
        )
        needed = {"running": True, "done": job.result is not None, "failed": job.problem is not None}
        if not needed.get(job.state, False) or not _ID.fullmatch(job.id):
            raise found.wrong("state")
        return job


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

"""What leaves: noisy values with their error, the guarantee, and what it cost."""

from __future__ import annotations

import hashlib
import html
import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from dalenius._fields import Fields
from dalenius._numbers import count_of, to_digits
from dalenius.accounting.filters import rounded_down
from dalenius.errors import InputError

_ROWS = 50  # shown as text; the rest is in `rows`
_KEY_WIDTH = 48
_MORE = 1.05  # times the noise error: what is hardly more is not worth a word
_UNKNOWN = "unknown"
PUBLIC = "public"  # the kind of guarantee of an answer that is about nobody
FREE = "public, exact, free"


@dataclass(frozen=True, repr=False)
class Release:
    """The answer to a question.

    Attributes:
        columns: Names, in the order of the question.
        keys: Which columns are group keys; they carry no noise.
        rows: The cells. None in a noisy column: the noise leaves nothing to say. A cell may be a list of numbers
            (quantiles); then its error, and its interval, are lists as well.
        noise_error: Half-width of each cell at ``confidence`` from the noise alone; None for keys.
        interval: Low and high of each cell; None for keys, and where the noise error tells it all.
        total_interval: The same with an estimate of what clipping took, so that it covers the raw rows as well as can
            be said; None for keys, and where nothing is known of clipping.
        clipping: Of each noisy column the estimated share that clipping took; None for keys, and where it is not known.
        confidence: Chance that an interval covers.
        guarantee: `kind`, `epsilon`, `delta`, `unit`, `neighbors`. Of the kind "public": the answer is about public
            tables only, exact, and was charged nothing; then all columns count as keys.
        charge: `epsilon`, `delta`, `rho`, as charged for this question.
        remaining: `analyst` and `dataset`, each with the `epsilon` and `delta` that one more question may ask.
        free: Paid for before, by this question or by another that it follows from: it came back for nothing.
        receipt: Proof of the charge.
        question: As it was asked.
        notes: What the reader should know besides.
        limits: Where the question found its own: `measure`, `limit`, `of` (what held before), `beyond` (about which
            part lies above it; None: the noise hides it), `hidden` (so many units of one size may be above it
            without showing in that), `share` (of the price that went into it).

    >>> release = Release(
    ...     columns=("region", "visits"), keys=(True, False), rows=(("north", 1234), ("south", 98)),
    ...     noise_error=((None, 56.0), (None, 56.0)), interval=((None, (1178.0, 1290.0)), (None, (42.0, 154.0))),
    ...     confidence=0.95, free=False, receipt={"analyst": "ana"}, question="SELECT …",
    ...     guarantee={"kind": "approx", "epsilon": 0.5, "delta": 1e-6, "unit": "user_id", "neighbors": "add-remove"},
    ...     charge={"epsilon": 0.5, "delta": 0, "rho": 0.007},
    ...     remaining={"analyst": {"epsilon": 0.41, "delta": 0}, "dataset": {"epsilon": 2.1, "delta": 0}})
    >>> print(release)
    region      visits
    ──────  ──────────
    north   1,234 ± 56
    south      98 ± 56
    95% margin for the added noise · (ε = 0.5, δ = 1e-06)-DP for one user_id (add-remove) · charged ε = 0.5 ·
    left: ana ε ≤ 0.41, data set ε ≤ 2.1
    """

    columns: tuple[str, ...]
    keys: tuple[bool, ...]
    rows: tuple[tuple[Any, ...], ...]
    noise_error: tuple[tuple[Any, ...], ...]
    interval: tuple[tuple[Any, ...], ...]
    confidence: float
    guarantee: Mapping[str, Any]
    charge: Mapping[str, Any]
    remaining: Mapping[str, Any]
    free: bool
    receipt: Mapping[str, Any] | None
    question: str
    notes: tuple[str, ...] = ()
    limits: tuple[Mapping[str, Any], ...] = ()
    total_interval: tuple[tuple[Any, ...], ...] = ()
    clipping: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        """Nothing is known of clipping where nothing is said."""
        unknown = (None,) * len(self.columns)
        if not self.total_interval:
            object.__setattr__(self, "total_interval", (unknown,) * len(self.rows))
        if not self.clipping:
            object.__setattr__(self, "clipping", unknown)

    @property
    def value(self) -> Any:
        """The one number, where there is only one.

        Raises:
            InputError: There are more, or none.
        """
        noisy = [place for place, key in enumerate(self.keys) if not key or self.public]
        if len(noisy) == len(self.rows) == 1:
            return self.rows[0][noisy[0]]
        raise InputError(
            f"This release has no single value: it has {count_of(len(self.rows), 'row')} and "
            f"{count_of(len(noisy), 'column')} of values.",
            why="`value` is for answers that are one number.",
            fix="Use `rows`, `to_arrow()`, `to_pandas()` or `to_polars()`.",
        )

    def of_question(self, question: str) -> Release:
        """The same, as the answer to a question in these words."""
        return replace(self, question=question)

    @property
    def public(self) -> bool:
        """Whether it is about public tables only: exact, and free."""
        return self.guarantee.get("kind") == PUBLIC

    def to_dict(self) -> dict[str, Any]:
        """The shape in which a release leaves as JSON: no NaN or infinity, dates as ISO 8601."""
        return {
            "columns": list(self.columns),
            "keys": list(self.keys),
            "rows": _plain(self.rows),
            "noise_error": _plain(self.noise_error),
            "interval": _plain(self.interval),
            "total_interval": _plain(self.total_interval),
            "clipping": _plain(self.clipping),
            "confidence": self.confidence,
            "guarantee": _plain(self.guarantee),
            "charge": _plain(self.charge),
            "remaining": _plain(self.remaining),
            "free": self.free,
            "receipt": _plain(self.receipt),
            "notes": list(self.notes),
            "limits": _plain(self.limits),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], question: str | None = None) -> Release:
        """The release that `to_dict` wrote. It prints as the first one did.

        What JSON lacks does not come back: dates and times among the keys stay ISO 8601 texts, decimals are the
        nearest doubles, and a noise error without end is None.

        Args:
            data: As `to_dict` wrote it.
            question: As it was asked; by default what stands as "question" beside the rest.

        Raises:
            InputError: It is no release.
        """
        found = Fields(data, "release")
        columns, keys = found.texts("columns"), tuple(found.each("keys", bool))
        rows, errors, intervals = (found.each(name, list) for name in ("rows", "noise_error", "interval"))
        # An older release says nothing of clipping.
        unknown = [None] * len(columns)
        totals = found.each("total_interval", list) if "total_interval" in found else [unknown] * len(rows)
        clipping = found.numbers("clipping") if "clipping" in found else tuple(unknown)
        parts = (rows, errors, intervals, totals)
        wide = {len(columns), len(keys), len(clipping), *(len(row) for part in parts for row in part)}
        if len(wide) != 1 or len(set(map(len, parts))) != 1:
            raise found.wrong("rows")
        guarantee, charge, remaining = (found.mapping(name) for name in ("guarantee", "charge", "remaining"))
        _check_amounts(found, guarantee, charge, *(remaining[who] for who in remaining if remaining[who] is not None))
        return cls(
            columns=columns,
            keys=keys,
            rows=tuple(map(tuple, rows)),
            noise_error=tuple(tuple(_error(found, each) for each in row) for row in errors),
            interval=tuple(tuple(_interval(found, each) for each in row) for row in intervals),
            confidence=found.number("confidence"),
            guarantee=guarantee,
            charge=charge,
            remaining=remaining,
            free=found.flag("free"),
            receipt=found.mapping("receipt") if "receipt" in found else None,
            question=found.text("question") if question is None else question,
            notes=found.texts("notes"),
            limits=tuple(found.each("limits", dict)),
            total_interval=tuple(tuple(_interval(found, each) for each in row) for row in totals),
            clipping=clipping,
        )

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`; beside each noisy column NAME stands NAME_noise_error.

        Where the total interval of any cell is known, NAME_low and NAME_high are its ends.
        """
        from dalenius.queries import frames

        return frames.to_arrow(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with the columns of `to_arrow`.

        Raises:
            SourceUnavailableError: pandas is not installed.
        """
        from dalenius.queries import frames

        return frames.to_pandas(self)

    def to_polars(self) -> Any:
        """A `polars.DataFrame` with the columns of `to_arrow`.

        Raises:
            SourceUnavailableError: polars is not installed.
        """
        from dalenius.queries import frames

        return frames.to_polars(self)

    def plot(self, file: Path | str | None = None) -> Any:
        """A `matplotlib.figure.Figure` with error bars, written to ``file`` if one is given. Needs the extra `plot`.

        Args:
            file: Ends in .png or .svg.
        """
        from dalenius.queries import charts
        from dalenius.releasing.targets import PLOT, check_target

        if file is None:
            return charts.figure(self)
        target = Path(file)
        check_target(target, PLOT)
        drawing = charts.figure(self)
        charts.save(drawing, target)
        return drawing

    def write(self, file: Path | str) -> None:
        """Writes it as .csv or .parquet (the columns of `to_arrow`), or as .json (`to_dict` and the question)."""
        from dalenius.queries import files

        files.write(self, Path(file))

    def __str__(self) -> str:
        table = self._cells()
        columns = [
            [name, "─" * max(map(_width, (name, *cells))), *cells]
            for name, cells in zip(map(shown, self.columns), table, strict=True)
        ]
        lines = []
        for line in zip(*columns, strict=True):
            padded = [
                _pad(text, _width(column[1]), left=key)
                for text, column, key in zip(line, columns, self.keys, strict=True)
            ]
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*lines, *self._more(), self.summary, *map(shown, self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for notebooks; every word of it is escaped."""
        sides = ["left" if key else "right" for key in self.keys]

        def line(tag: str, texts: Sequence[str]) -> str:
            cells = (
                f'<{tag} style="text-align: {side}; white-space: pre">{html.escape(text)}</{tag}>'
                for text, side in zip(texts, sides, strict=True)
            )
            return f"<tr>{''.join(cells)}</tr>"

        head = line("th", [shown(name) for name in self.columns])
        body = "".join(line("td", texts) for texts in zip(*self._cells(), strict=True))
        below = (
            f'<div style="font-size: smaller; opacity: 0.75">{html.escape(text)}</div>'
            for text in (*self._more(), self.summary, *map(shown, self.notes))
        )
        return f"<div><table><thead>{head}</thead><tbody>{body}</tbody></table>{''.join(below)}</div>"

    @property
    def summary(self) -> str:
        """One line: confidence, guarantee, what it cost, what is left."""
        if self.public:
            return FREE
        if self.free:
            cost = self.why_free
        else:
            delta = self.charge.get("delta")
            cost = f"charged ε = {_number(self.charge.get('epsilon'))}" + (f", δ = {_number(delta)}" if delta else "")
        name = (self.receipt or {}).get("analyst") or "you"
        left = [
            f"{who} ε ≤ {_left(self.remaining[whose].get('epsilon'))}"
            for whose, who in (("analyst", shown(str(name))), ("dataset", "data set"))
            if self.remaining.get(whose)
        ]
        parts = [self.promise, cost, *([f"left: {', '.join(left)}"] if left else [])]
        return " · ".join(parts)

    @property
    def why_free(self) -> str:
        """Whether just this was asked before, or its answer is made of what was paid for in other words.

        Quantiles and extremes of a column are read from one tree, so MAX is free after a median that nobody calls MAX.
        The receipt tells: it has the hash of the question that was charged.
        """
        paid = (self.receipt or {}).get("question")
        same = paid is None or paid == hashlib.sha256(self.question.encode("utf-8", "replace")).hexdigest()
        return "free: asked before" if same else "free: follows from an earlier answer"

    @property
    def promise(self) -> str:
        """The confidence and the guarantee, as they stand under tables and charts."""
        guarantee = self.guarantee
        if self.public:
            return FREE
        delta = guarantee.get("delta")
        terms = f"ε = {_number(guarantee.get('epsilon'))}" + (f", δ = {_number(delta)}" if delta else "")
        unit, neighbors = shown(str(guarantee.get("unit"))), shown(str(guarantee.get("neighbors")))
        told = any(self.in_all(at, place) for at in range(len(self.rows)) for place in range(len(self.columns)))
        off = "margin for the added noise" + (", in all with what limits cut off (estimated)" if told else "")
        return f"{self.confidence * 100:.10g}% {off} · ({terms})-DP for one {unit} ({neighbors})"

    def ends(self, row: int, place: int) -> tuple[float, float] | None:
        """Low and high of a cell: with what limits cut off where that is known, else from the noise alone."""
        value, error = self.rows[row][place], self.noise_error[row][place]
        if isinstance(value, list | tuple):
            return None
        found = self.total_interval[row][place] or self.interval[row][place]
        if found is not None:
            return float(found[0]), float(found[1])
        if error is None or isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
            return None
        return float(value) - float(error), float(value) + float(error)

    def in_all(self, row: int, place: int) -> str:
        """Where the raw truth of a cell may lie, as text: "" where that is not known, or what its ± says already."""
        error, ends = self.noise_error[row][place], self.total_interval[row][place]
        if error is None or isinstance(error, list) or ends is None or not all(map(math.isfinite, (error, *ends))):
            return ""
        if ends[1] - ends[0] <= 2 * _MORE * error:
            return ""
        digit = _place(error or ends[1] - ends[0])
        digit = min(digit, 0) if isinstance(self.rows[row][place], int) else digit
        return f"{_rounded(ends[0], digit)} to {_rounded(ends[1], digit)}"

    def _cells(self) -> list[list[str]]:
        """The cells as text, by column, down to the last row shown."""
        rows = range(min(len(self.rows), _ROWS))
        table = []
        for place, key in enumerate(self.keys):
            if key:
                table.append([shown(self.rows[row][place], _KEY_WIDTH) for row in rows])
                continue
            pairs = [with_error(self.rows[row][place], self.noise_error[row][place]) for row in rows]
            wide, errors = (max((len(pair[side]) for pair in pairs), default=0) for side in (0, 1))
            cells = [f"{value:>{wide}} ± {error:>{errors}}" if error else f"{value:>{wide}}" for value, error in pairs]
            ends = [self.in_all(row, place) for row in rows]
            table.append([f"{cell} (in all {each})" if each else cell for cell, each in zip(cells, ends, strict=True)])
        return table

    def _more(self) -> Iterator[str]:
        if len(self.rows) > _ROWS:
            yield f"… {len(self.rows) - _ROWS:,} more"


def with_error(value: Any, error: Any) -> tuple[str, str]:
    """Value and error as text, both to the second digit of the error; of a list, lists.

    >>> with_error(1234.5678, 56.21), with_error(98765, 4321.0), with_error(0.123456, 0.00234), with_error(3.5, 0.0)
    (('1,235', '56'), ('98,800', '4,300'), ('0.1235', '0.0023'), ('3.5', '0'))
    >>> with_error([1234.5678, None], [56.21, 500.0])
    ('[1235, unknown]', '[56, 500]')
    """
    if isinstance(value, list) and isinstance(error, list):
        pairs = [with_error(*each) for each in zip(value, error, strict=True)]
        # in a list a comma stands between numbers, not in them
        one, other = ([each[side].replace(",", "") for each in pairs] for side in (0, 1))
        return f"[{', '.join(one)}]", f"[{', '.join(other)}]"
    if value is None:
        return _UNKNOWN, "" if error is None else shown_error(error)
    if not isinstance(value, int | float | Decimal | Fraction) or isinstance(value, bool):
        return shown(value, _KEY_WIDTH), ""
    if error == 0:  # the noise moves it by less than a step
        return _as_it_is(value), shown_error(error)
    if error is None or not math.isfinite(error):
        return _as_it_is(value), ""
    place = min(_place(error), 0) if isinstance(value, int) else _place(error)
    return _rounded(value, place), _rounded(error, place)


def shown_error(error: float) -> str:
    """An error to its second digit.

    >>> shown_error(26123.0), shown_error(0.0234), shown_error(0.0)
    ('26,000', '0.023', '0')
    """
    return _rounded(error, _place(error)) if error else "0"


def shown(value: Any, width: int | None = None) -> str:
    r"""A key or a name as text that cannot steer a terminal: what does not print is escaped.

    >>> shown(None), shown(True), shown(date(2024, 5, 1)), shown("a\nb"), shown("abcdef", 4)
    ('NULL', 'true', '2024-05-01', 'a\\nb', 'abc…')
    """
    if value is None:
        text = "NULL"
    elif isinstance(value, bool):
        text = str(value).lower()
    else:
        text = str(_plain(value))
    text = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def _place(error: float) -> int:
    """How many digits after the point (or, negative, before it) the error justifies."""
    return 1 - math.floor(math.log10(abs(error))) if error and math.isfinite(error) else 0


def _rounded(value: Any, place: int) -> str:
    if place > 12 or abs(value) >= 1e18:
        return f"{float(value):.6g}"
    # exact for ints of any size; a float is rounded as it prints
    near = round(value, place) if isinstance(value, int) else round(float(value), place)
    return f"{near:,.{max(place, 0)}f}" if place > 0 or not isinstance(near, int) else f"{near:,}"


def _as_it_is(value: Any) -> str:
    """A value of which no digit is noise; doubles to the twelfth, so that they do not show how they are kept."""
    if isinstance(value, int):
        return f"{value:,}"
    return to_digits(float(value), 12) if math.isfinite(value) else _number(value)


def _number(value: Any) -> str:
    if value is None:
        return "∞"  # JSON's null for an ε without end
    return f"{float(value):.6g}".replace("inf", "∞")


def _left(value: float | None) -> str:
    """As budgets and previews show it: what is left must not look like more."""
    return _number(value) if not value or not math.isfinite(value) else f"{rounded_down(value):g}"


def _width(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _pad(text: str, width: int, *, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


def _plain(value: Any) -> Any:
    """In JSON's terms."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal | Fraction):
        return _plain(float(value))
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):  # of a public table
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _error(found: Fields, error: object) -> Any:
    """The error of a cell; of a list, a list."""
    if isinstance(error, list):
        return [_error(found, each) for each in error]
    return None if error is None else found.number_of(error, "noise_error")


def _interval(found: Fields, ends: object) -> Any:
    """Low and high; JSON's null at an end is one without bound. Of a list, a list of them."""
    if ends is None:
        return None
    if isinstance(ends, list) and any(isinstance(each, list) for each in ends):
        return [_interval(found, each) for each in ends]
    if not isinstance(ends, list) or len(ends) != 2:
        raise found.wrong("interval")
    low, high = (math.inf if each is None else found.number_of(each, "interval") for each in ends)
    return (-low if ends[0] is None else low), high


def _check_amounts(found: Fields, *amounts: object) -> None:
    """Refuses anything but numbers, or null for one without bound, where ε and δ should be."""
    for each in amounts:
        if not isinstance(each, Mapping):
            raise found.wrong("charge")
        for name in ("epsilon", "delta"):
            if each.get(name) is not None:
                found.number_of(each[name], name)

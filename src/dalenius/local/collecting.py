"""From a file of values to a file of reports, and from files of reports to a tally; neither need fit into memory."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local import reports, values
from dalenius.local.domain import Domain
from dalenius.local.memory import Spending
from dalenius.local.memory_files import reports_of_the_day
from dalenius.local.randomisers import RANDOMISERS
from dalenius.local.randomisers.bit_vector import BitVector
from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
from dalenius.local.randomisers.randomiser import FrequencyOracle, Randomiser, Reports, Values, slices
from dalenius.local.tallies import Tally

Told = Callable[[float], None]
"""Is told which share of the work is done: of bytes read, of reports written; never of what stands in them."""

_BLOCK_BYTES = 2**24  # of reports, held at once
_SAME_FROM = 64  # bytes of reports that no two files share by chance


@dataclass(frozen=True, eq=False)
class Folded:
    """The tally of one or several files.

    Attributes:
        tally: Of all their reports.
        domain: The SHA-256 of their domain, "" where the randomiser has none.
        files: How many there were.
    """

    tally: Tally
    domain: str
    files: int


@dataclass(frozen=True)
class Encoded:
    """What became of a file of values.

    Attributes:
        reports: How many there are.
        spending: What all reports of a life cost, where answers are kept.
    """

    reports: int
    spending: Spending | None


def randomiser_called(
    name: str, epsilon: float, domain: Domain | None = None, settings: Mapping[str, str] | None = None
) -> Randomiser:
    """A randomiser as the command line names it.

    Args:
        name: As in `RANDOMISERS`.
        epsilon: For one report.
        domain: What is reported about; needed by randomisers of categories, and by no others.
        settings: Its other fields, as text.

    >>> randomiser_called("k-ary", 1.0, Domain(("yes", "no"))).size
    2
    """
    known = {cls.name: cls for cls in RANDOMISERS}
    if name not in known:
        near = get_close_matches(name, known, 1)
        raise InputError(
            f"There is no randomiser {name!r}.",
            why="There are " + ", ".join(known) + ".",
            fix=f"Did you mean {near[0]}?" if near else "'dalenius collect plan' says which one tells most.",
        )
    cls = known[name]
    given = dict[str, Any](settings or {})
    fields = {each.name: each for each in dataclasses.fields(cls) if each.init and each.name != "epsilon"}
    if issubclass(cls, FrequencyOracle):
        if domain is None:
            raise InputError(
                f"{name} needs a domain.",
                why="It reports one of a public list of values.",
                fix="Give --domain FILE, with one value on each line, or --domain N for the numbers below N.",
            )
        del fields["size"]
    elif domain is not None:
        raise InputError(f"{name} has no domain.", why="Its values are not those of a list.", fix="Leave it out.")
    for key, text in given.items():
        if key not in fields:
            have = ", ".join(fields) or "none"
            raise InputError(f"{name} has no setting {key!r}.", why=f"It has: {have}.", fix="Leave it out.")
        given[key] = _number(key, text)
    missing = [key for key, each in fields.items() if each.default is dataclasses.MISSING and key not in given]
    if missing:
        raise InputError(
            f"{name} needs {', '.join(missing)}.",
            why="All who report must use the same, fixed beforehand.",
            fix="Give " + " ".join(f"--set {key}=…" for key in missing) + ".",
        )
    if domain is not None:
        given["size"] = domain.size
    return cls(epsilon=epsilon, **given)


def encode_file(
    source: Path,
    target: Path,
    randomiser: Randomiser,
    domain: Domain | None = None,
    *,
    column: str | None = None,
    memory: Path | None = None,
    keep: int | None = None,
    told: Told | None = None,
) -> Encoded:
    """Write one report for each value of a file.

    All values are read and checked before the first report is written.

    Args:
        source: One value a line, or a CSV file.
        target: Written whole or not at all.
        randomiser: What makes the reports.
        domain: The texts of a randomiser of categories.
        column: Of a CSV file.
        memory: A file that keeps everybody's answers, from day to day; made where there is none.
        keep: For how many different values it keeps them; 1, unless it says otherwise.
        told: Hears how far it is.
    """
    if keep is not None and memory is None:
        raise InputError("Nothing is kept.", why="No memory was named.", fix="Name a file that keeps the answers.")
    hears = told or (lambda _share: None)
    size = max(1, os.path.getsize(source) if source != values.STDIN and source.is_file() else 1)  # noqa: PTH202
    read = list[Values]()
    for part in values.parts(source, column):
        read.append(_understood(part, randomiser, domain))
        hears(min(1.0, part.done / size) / 2)
    found = np.concatenate(read)
    if memory is None:
        reports.write_blocks(target, randomiser, len(found), _blocks(found, randomiser, hears), domain)
        return Encoded(len(found), None)
    made, kept = reports_of_the_day(memory, randomiser, found, domain, keep=keep)
    reports.write(target, randomiser, made, domain)
    return Encoded(len(found), kept.spending)


def fold_files(files: Sequence[Path], domain: Domain | None = None, *, told: Told | None = None) -> Folded:
    """The sum of the tallies of files: to merge is to add.

    Raises:
        ReportInvalidError: For a bad file, named; and for files that do not belong together.
        InputError: For a file that is named twice, or holds the same reports as another.
    """
    if not files:
        raise InputError("No files were named.", why="There is nothing to add up.", fix="Name files of reports.")
    hears = told or (lambda _share: None)
    total: Tally | None = None
    first: reports.ReportFile | None = None
    seen = dict[str, Path]()
    for number, path in enumerate(files):
        try:
            found = reports.read(path, domain if domain is not None else None)
        except ReportInvalidError as error:
            raise ReportInvalidError(f"{path.name}: {error.message}", why=error.why, fix=error.fix) from None
        if first is None:
            first = found
        _check_alike(files[0], first, path, found)
        _check_new(path, found.reports, seen)
        randomiser = found.randomiser
        tally = Tally(randomiser, 0, np.zeros(randomiser.tally_shape, np.int64))
        for part in slices(len(found.reports), max(1, _BLOCK_BYTES // randomiser.report_bytes)):
            tally += randomiser.fold(found.reports[part])
            hears((number + part.stop / len(found.reports)) / len(files))
        total = tally if total is None else total + tally
    assert total is not None  # noqa: S101 - there is a first file
    assert first is not None  # noqa: S101
    return Folded(total, first.domain, len(files))


def _understood(part: values.Part, randomiser: Randomiser, domain: Domain | None) -> Values:
    """Texts as what the randomiser takes."""
    if isinstance(randomiser, MeanRandomiser):
        return np.array(values.numbers(part, randomiser.low, randomiser.high))
    if isinstance(randomiser, BitVector):
        return np.array(values.bits(part, randomiser.size), np.uint8)
    if domain is None:
        return randomiser.checked(part.texts)  # an open vocabulary: fingerprints
    try:
        return domain.index(part.texts)
    except InputError as error:
        inside = set(domain.texts)
        at = next(place for place, text in enumerate(part.texts) if text not in inside)
        raise InputError(
            f"Line {part.lines[at]:,} holds a value that is not in the domain{_hint(part.texts[at], inside)}.",
            why=error.why,
            fix=error.fix,
        ) from None


def _hint(text: str, inside: set[str]) -> str:
    """What is the matter, where it is one of the usual things; says no value."""
    if not text:
        return " (it is empty)"
    if text.strip() in inside:
        return " (it has blanks around it)"
    if text in {each.strip() for each in inside}:
        return " (that of the domain has blanks around it)"
    if text.casefold() in {each.casefold() for each in inside}:
        return " (capital and small letters differ)"
    return ""


def _blocks(found: Values, randomiser: Randomiser, told: Told) -> Iterator[Reports]:
    for part in slices(len(found), max(1, _BLOCK_BYTES // randomiser.report_bytes)):
        yield randomiser.encode(found[part])
        told(0.5 + part.stop / len(found) / 2)


def _check_alike(path: Path, one: reports.ReportFile, other_path: Path, other: reports.ReportFile) -> None:
    """Counts of different randomisers or domains mean different things."""
    names = f"{path.name} and {other_path.name}"
    fix = "Estimate them apart; only reports of one survey can be added up."
    if one.domain != other.domain:
        raise ReportInvalidError(f"{names} are about different domains.", why="Their values differ.", fix=fix)
    if one.randomiser != other.randomiser:
        own, theirs = _described(one.randomiser), _described(other.randomiser)
        apart = [key for key in {**own, **theirs} if own.get(key) != theirs.get(key)]
        words = ", ".join(f"{key} {own.get(key, '–')} and {theirs.get(key, '–')}" for key in apart)
        raise ReportInvalidError(f"{names} were made differently.", why=f"They have {words}.", fix=fix)


def _described(randomiser: Randomiser) -> dict[str, Any]:
    return {"randomiser": randomiser.name, **randomiser.fields()}


def _check_new(path: Path, rows: Reports, seen: dict[str, Path]) -> None:
    """The same reports twice would count everybody twice."""
    if rows.nbytes < _SAME_FROM:
        digest = f"at {os.path.realpath(path)}"
    else:
        digest = hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
    if digest in seen:
        raise InputError(
            f"{path.name} holds the same reports as {seen[digest].name}.",
            why="Everybody in it would count twice.",
            fix="Leave one of them out.",
        )
    seen[digest] = path


def _number(key: str, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{key} must be a number.", why="It is one.", fix=f"Write --set {key}=1, say.") from None

"""A file of what a memory keeps, so that tomorrow's reports repeat today's answers (`headers` says how it begins).

    header        under "DLNM": randomiser, fields, domain, people, values, days
    used          2 bytes for each person, low byte first: how many answers there are
    keys          8 bytes for each person and value, low byte first: the value's number, grid place or fingerprint
    answers       `report_bytes` for each person and value

What is not used is 0. The file is secret: it holds values, and answers that undo what an instantaneous response blurs.
It belongs where the values are, and to nobody who sees reports.

A day is written down before its reports are: whoever sees a report can be sure that it will be repeated, whatever
breaks in between. Lost, everybody answers anew, which costs a lifetime's ε once more.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dalenius.errors import InputError, ReportInvalidError
from dalenius.local.domain import Domain
from dalenius.local.headers import head, number_of, opened, randomiser_of, read_head, refuse, write_whole
from dalenius.local.memory import MOST_PEOPLE, MOST_VALUES, Kept, Memory
from dalenius.local.randomisers.randomiser import Randomiser, Reports, Values
from dalenius.local.reports import check_domain

MAGIC = b"DLNM"
_MOST_DAYS = 2**53
_LOST = "Take an intact copy. Without one, everybody answers anew, and spends a lifetime's ε once more."


@dataclass(frozen=True, eq=False)
class MemoryFile:
    """A memory with what its values are about.

    Attributes:
        memory: The memory.
        domain: The SHA-256 of the domain, "" for a randomiser without one.
    """

    memory: Memory
    domain: str


def write_memory(path: Path, memory: Memory, domain: Domain | None = None) -> None:
    """Write a memory whole, readable by its owner alone; a crash leaves either the old file or the new one."""
    check_domain(memory.randomiser, domain)
    kept = memory.kept
    header = {
        "randomiser": memory.randomiser.name,
        "fields": memory.randomiser.fields(),
        "domain": domain.sha256 if domain else "",
        "people": memory.people,
        "values": memory.values,
        "days": kept.days,
    }
    arrays = kept.used.astype("<u2"), kept.keys.astype("<u8"), kept.answers
    write_whole(path, [head(MAGIC, header), *(np.ascontiguousarray(each).data.cast("B") for each in arrays)])


def read_memory(path: Path) -> MemoryFile:
    """Read and check a memory.

    Raises:
        InputError: For a file that cannot be read.
        ReportInvalidError: For one that is no memory, or damaged.
    """
    data = opened(path)
    try:
        return _memory(data)
    except ReportInvalidError as error:
        raise ReportInvalidError(f"{path.name}: {error.message}", why=error.why, fix=_LOST) from None


def reports_of_the_day(
    path: Path, randomiser: Randomiser, values: Values, domain: Domain | None = None, *, keep: int | None = None
) -> tuple[Reports, Memory]:
    """Today's reports of the people whose memory lies there, and the memory, which is on disk by then.

    Args:
        path: The file; where there is none, everybody's first day is today.
        randomiser: Which must be that of the memory.
        values: One for each person, checked, in the same order every day.
        domain: What they are about.
        keep: For how many different values answers are kept; 1, unless the memory says otherwise.
    """
    with _alone(path):
        memory = _found(path, randomiser, domain, keep) if path.exists() else Memory(randomiser, len(values), keep or 1)
        if len(values) != memory.people:
            raise InputError(
                f"There must be {memory.people:,} values, and there are {len(values):,}.",
                why=f"{path.name} keeps the answers of so many people, by their place.",
                fix="Give everybody's value of the day, in the same order every day.",
            )
        made = memory.report(values)
        write_memory(path, memory, domain)
    return made, memory


def _found(path: Path, randomiser: Randomiser, domain: Domain | None, keep: int | None) -> Memory:
    found = read_memory(path)
    memory, fix = found.memory, "Ask the same question in the same way every day, or start another memory."
    if memory.randomiser != randomiser:
        was, now = (
            " ".join(f"{key}={value}" for key, value in each.fields().items())
            for each in (memory.randomiser, randomiser)
        )
        why = f"It keeps answers of {memory.randomiser.name} ({was}); these would be of {randomiser.name} ({now})."
        raise InputError(f"{path.name} belongs to another survey.", why=why, fix=fix)
    if found.domain != (domain.sha256 if domain else ""):
        raise InputError(f"{path.name} belongs to another survey.", why="Its domain is another one.", fix=fix)
    if keep is not None and keep != memory.values:
        raise InputError(
            f"{path.name} keeps answers about {memory.values:,} values.",
            why="How many are kept is what a lifetime costs; it was fixed on the first day.",
            fix="Leave --keep out.",
        )
    return memory


def _memory(data: bytes | mmap.mmap) -> MemoryFile:
    header, start = read_head(data, MAGIC, "a memory")
    randomiser = randomiser_of(header)
    people, values = number_of(header, "people", most=MOST_PEOPLE), number_of(header, "values", most=MOST_VALUES)
    days = number_of(header, "days", most=_MOST_DAYS)
    shapes: list[tuple[str, tuple[int, ...]]] = [
        ("<u2", (people,)),
        ("<u8", (people, values)),
        ("|u1", (people, values, randomiser.report_bytes)),
    ]
    expected = sum(np.dtype(kind).itemsize * int(np.prod(shape, dtype=object)) for kind, shape in shapes)
    if not people or not values or len(data) - start != expected:
        why = f"{people:,} people with {values:,} values take {expected:,} bytes, and there are {len(data) - start:,}"
        refuse("The file is not as long as its header says", why, start)
    arrays = list[Any]()
    for kind, shape in shapes:
        arrays.append(np.frombuffer(data, kind, int(np.prod(shape)), start).reshape(shape))
        start += arrays[-1].nbytes
    used, keys, answers = arrays[0].astype(np.int64), arrays[1].astype(np.uint64), np.array(arrays[2])
    filled = np.arange(values) < used[:, None]
    if (used > values).any() or (used < min(days, 1)).any() or (used > days).any():
        _impossible("somebody has more answers than days or values, or none")
    if keys[~filled].any() or answers[~filled].any():
        _impossible("there are answers past the last one")
    ordered = np.sort(np.where(filled, keys, np.uint64(0)), axis=1) if values > 1 else keys
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] > 0)
    if twice.any():
        _impossible("somebody has two answers about one value")
    randomiser.check(answers[filled])
    return MemoryFile(Memory.of(randomiser, Kept(days, used, keys, answers)), header["domain"])


def _impossible(why: str) -> NoReturn:
    refuse("No memory looks like this", why, 0)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Nobody else changes a memory in this folder meanwhile: of two at once, one day would be forgotten."""
    try:
        descriptor = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        why = error.strerror or "The system refused."
        raise InputError(f"{path.parent} cannot be read.", why=why, fix="Check the path.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

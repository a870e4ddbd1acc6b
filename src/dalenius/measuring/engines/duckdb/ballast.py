"""Work that every row does, whatever it holds (`work.ballast`), as a condition that always holds."""

from __future__ import annotations

from dalenius.measuring.work import Work, ballast

_MD5, _SINE = 170.0, 10.0  # ns


def heavier(work: Work) -> str:
    """A condition that always holds and takes `ballast`; empty where none is needed.

    It works on random numbers, so that it is worked out for each row, in a time that no row can change.
    """
    left = ballast(work)
    if left <= 0:
        return ""
    digests, shown = int(left // _MD5), "random()"
    for _ in range(round((left - digests * _MD5) / _SINE)):
        shown = f"sin({shown})"
    if not digests:
        return f"({shown} < 2e0)"
    shown = f"CAST({shown} AS VARCHAR)"
    for _ in range(digests):
        shown = f"md5({shown})"
    return f"({shown} <> '')"

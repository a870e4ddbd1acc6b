"""Whether an engine can begin, asked before anything is charged.

A question that cannot even start tells nothing about anybody, so nobody should pay for it. What a look takes is taken
here once, and given back: a thread, handles of files, a statement on the engine's own connection; and there must be
memory. What can be promised is that all of it was there a moment before the charge, not that it still is when the look
begins: a failure after the charge stays charged (it could tell about the data).
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from dalenius.errors import EngineFailedError

LEAST = 192 * 2**20  # bytes of memory that must be there
_HANDLES = 16
_CGROUP = Path("/sys/fs/cgroup")


def check_can_start() -> None:
    """Refuses where a thread, handles or memory are missing, at no charge.

    Raises:
        EngineFailedError: One of them is.
    """
    handles: list[int] = []
    try:
        for _ in range(_HANDLES):
            handles.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 (those before a failure are given back)
        thread = threading.Thread(target=lambda: None, daemon=True)
        thread.start()
        thread.join()
    except (OSError, RuntimeError, MemoryError):
        raise cannot_start("No thread, or no handle of a file, is left.") from None
    finally:
        for each in handles:
            os.close(each)
    if available() < LEAST:
        raise cannot_start(f"It needs {LEAST // 2**20} MB of memory that nobody else uses.")


def cannot_start(why: str) -> EngineFailedError:
    """A refusal before anything is charged."""
    return EngineFailedError(
        "The engine cannot start now.", why=why, fix="Ask again later; tell the owner if it stays."
    )


def available() -> float:
    """Bytes of memory that this process could still take, as far as the system tells."""
    found = [_machine(), _container(), _process()]
    return min(found)


def _machine() -> float:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return float("inf")


def _container() -> float:
    """Of the control group, where it has a limit; what only caches files can be given back."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        most = int((_CGROUP / "memory.max").read_text())  # "max" is no number
        stat = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return most - int((_CGROUP / "memory.current").read_text()) + int(stat.get("inactive_file", 0))
    return float("inf")


def _process() -> float:
    with contextlib.suppress(ImportError, OSError, ValueError, IndexError):
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            return most - pages * os.sysconf("SC_PAGE_SIZE")
    return float("inf")

"""Who holds a claim, and whether that process is provably dead.

A claim is taken over only then. Even a wrong verdict could not let two answers out: the commit that stores a release
checks the claim's fencing token, and a release leaves only after it is stored.
"""

from __future__ import annotations

import os
import secrets
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")


# The claims of this process that are being worked on. A claim whose work broke off is as good as dead.
_ACTIVE: set[str] = set()


def me() -> str:
    """A holder for one claim: machine and boot, process id and its start, and a nonce of its own."""
    nonce = secrets.token_hex(8)
    _ACTIVE.add(nonce)
    return f"{_boot()} {os.getpid()} {_own_start(os.getpid())} {nonce}"


def let_go(holder: str) -> None:
    """The work on this claim has ended, one way or the other."""
    _ACTIVE.discard(holder.rpartition(" ")[2])


def is_dead(holder: str) -> bool:
    """Whether the holder has certainly ended: its machine was restarted, or its process is gone or another one."""
    words = holder.split()
    if len(words) != 4:
        return True  # not a holder we ever wrote
    machine, _, boot = words[0].partition("/")
    here, _, now = _boot().partition("/")
    if machine != here:
        return False  # another machine: nothing can be proved from here
    if boot != now:
        return True
    if words[1] == str(os.getpid()):
        return words[3] not in _ACTIVE
    started = _start(int(words[1])) if words[1].isdigit() else None
    if started is None:
        return not _exists(int(words[1]))
    return words[2] not in {"-", started}


@lru_cache(maxsize=1)
def _boot() -> str:
    return (
        f"{_read(Path('/etc/machine-id')) or os.uname().nodename}/{_read(_PROC / 'sys/kernel/random/boot_id') or '-'}"
    )


@lru_cache(maxsize=1)
def _own_start(process: int) -> str:
    return _start(process) or "-"


def _start(process: int) -> str | None:
    """When a process started, in clock ticks since boot; None where /proc does not tell, or for a zombie."""
    stat = _read(_PROC / str(process) / "stat")
    if stat is None:
        return None
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in {"Z", "X"} else None


def _exists(process: int) -> bool:
    if (_PROC / "self").exists():
        return _start(process) is not None
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _read(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except OSError:
        return None

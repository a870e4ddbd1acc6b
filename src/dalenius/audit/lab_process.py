"""One attack of the lab in a process of its own: `python -m dalenius.audit.lab_process NAME`, findings as JSON.

A server runs the lab so: what it takes of the processor is what others leave, and it ends by itself, or with the
server: then nobody is left to remove its folder, so it does.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

PEOPLE = 200
SECONDS = 60  # of the processor
BYTES = 2**26  # of one file
LEASHED = "leashed"
FOLDER = "dalenius-lab-"  # what the names of its folders begin with


def main(name: str, how: str = "") -> None:
    """Runs it against every target that it is made for; ``leashed``: until the input ends."""
    if how == LEASHED:
        threading.Thread(target=_end_with_input, daemon=True).start()  # before: to end, it need not wait for others
    _be_modest()
    from dalenius.audit.attacks import any_named
    from dalenius.audit.lab import Settings, run
    from dalenius.audit.targets.scene import demo_scene

    settings = Settings(demo_scene(PEOPLE))
    found = [run(name, each, settings).to_dict() for each in any_named(name).against]
    json.dump({"findings": found}, sys.stdout)


def _be_modest() -> None:
    """Where the system knows how."""
    with suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        os.nice(19)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_FSIZE, (BYTES, BYTES))


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    folder = Path(tempfile.gettempdir())
    if folder.name.startswith(FOLDER):
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:3])

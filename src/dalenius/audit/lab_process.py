"""One attack of the lab in a process of its own: `python -m dalenius.audit.lab_process NAME`, findings as JSON.

A server runs the lab so: what it takes of the processor is what others leave, and it ends by itself.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

PEOPLE = 200
SECONDS = 60  # of the processor


def main(name: str) -> None:
    """Runs it against every target that it is made for."""
    _be_modest()
    from dalenius.audit.attacks import attack_named
    from dalenius.audit.lab import Settings, run
    from dalenius.audit.targets.scene import demo_scene

    settings = Settings(demo_scene(PEOPLE))
    found = [run(name, each, settings).to_dict() for each in attack_named(name).against]
    json.dump({"findings": found}, sys.stdout)


def _be_modest() -> None:
    """Where the system knows how."""
    with suppress(ImportError, OSError, ValueError, AttributeError):
        import resource

        os.nice(19)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


if __name__ == "__main__":
    main(sys.argv[1])

"""`dalenius serve` with a bug planted in it, to see that the attacks would notice: run as a script by `serving`.

The product has no such switch. This file patches the engine's way from outside, then runs the command line. What is
planted stands in a JSON file that is read at each question, so that a test can change it while the server runs:
`sleep` seconds in the engine, `burn` seconds of processor time, `fail` with an error of that name, `grow` seconds for
each step of noise, at most 0.05 s;
and, at the start, a function's SQL as a `template`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from dalenius import errors
from dalenius.app.cli import main
from dalenius.measuring.engines.duckdb import rendering
from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
from dalenius.queries import answering

CONTROL = Path(sys.argv[1] if len(sys.argv) > 1 else "")
_measured, _release = answering.measure_plan, DiscreteGaussian.release


def measured(*parts: Any) -> bytes:
    """As the real one, late or in vain."""
    told = json.loads(CONTROL.read_text())
    if "fail" in told:
        kind = getattr(errors, told["fail"], None)
        if kind is None:
            raise {"MemoryError": MemoryError, "ValueError": ValueError}[told["fail"]]("a value of a row")
        raise kind("It failed.", why="The test made it.", fix="Nothing.")
    try:
        return _measured(*parts)
    finally:  # also when a busy machine had the real work stopped
        time.sleep(told.get("sleep", 0.0))
        end = time.thread_time() + told.get("burn", 0.0)
        while time.thread_time() < end:
            pass


def release(self: Any, vector: Any, *more: Any, **named: Any) -> Any:
    """As the real one, in a time that grows with the noise."""
    found = _release(self, vector, *more, **named)
    grow = json.loads(CONTROL.read_text()).get("grow", 0.0)
    if grow:
        noise = sum(abs(int(a) - int(b)) for a, b in zip(found.value, vector, strict=True))
        time.sleep(min(0.05, grow * noise))
    return found


if __name__ == "__main__":
    if template := json.loads(CONTROL.read_text()).get("template"):
        name, text = template
        if name == "number":  # written by a method
            plain = text.replace("{1}", "{}")
            rendering.Renderer.number = lambda self, inner: plain.format(self.sql(inner))  # type: ignore[method-assign]
        else:
            rendering._TEMPLATES[name] = text
    setattr(answering, "measure_plan", measured)  # noqa: B010 (from outside)
    setattr(DiscreteGaussian, "release", release)  # noqa: B010
    main(sys.argv[2:])

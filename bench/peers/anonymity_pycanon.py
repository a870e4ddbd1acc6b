"""What pycanon says of a table, and how long it takes: python anonymity_pycanon.py TABLE.csv SENSITIVE QUASI..."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pycanon import anonymity  # type: ignore[import-not-found]

table, sensitive, *quasi = sys.argv[1:]
# a number would have an order, for its t-closeness; the file's delimiter is ours
frame = pd.read_csv(table, dtype=str)

checks: dict[str, Callable[[], Any]] = {
    "k": lambda: anonymity.k_anonymity(frame, quasi),
    "l distinct": lambda: anonymity.l_diversity(frame, quasi, [sensitive]),
    "l entropy": lambda: anonymity.entropy_l_diversity(frame, quasi, [sensitive]),
    "l recursive": lambda: anonymity.recursive_c_l_diversity(frame, quasi, [sensitive]),
    "t": lambda: anonymity.t_closeness(frame, quasi, [sensitive]),
    "beta": lambda: anonymity.basic_beta_likeness(frame, quasi, [sensitive]),
}
found = {}
for name, measure in checks.items():
    begin = time.perf_counter()
    said = measure()
    said = said if isinstance(said, tuple) else (said,)
    found[name] = {"said": [float(each) for each in said], "seconds": time.perf_counter() - begin}
print(json.dumps({"version": version("pycanon"), "checks": found}))

"""Randomisers, one file each: what runs on the device of the person who reports.

`randomiser` says what each can do and how one is added.
"""

from __future__ import annotations

from dalenius.local.randomisers.k_ary import KAry
from dalenius.local.randomisers.randomiser import Randomiser

RANDOMISERS: tuple[type[Randomiser], ...] = (KAry,)
"""All of them; `name` is what the command line and a file's header call each."""

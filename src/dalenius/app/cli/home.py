"""Where ledger and policies lie; found the same way on the command line and in Python."""

from __future__ import annotations

from dalenius.ledger.home import FOLDER, VARIABLE, find_home

__all__ = ["FOLDER", "VARIABLE", "find_home"]

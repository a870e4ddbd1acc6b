"""Optional packages: asked for where they are needed, answered with the line that installs them."""

from __future__ import annotations

from importlib.util import find_spec

from dalenius.errors import ExtraMissingError


def require_extra(extra: str, *modules: str) -> None:
    """Makes sure that the modules of an extra can be imported, without importing them.

    Args:
        extra: Name of the extra in `pyproject.toml`.
        modules: Top-level modules that it brings.

    Raises:
        ExtraMissingError: One of them is not installed; the message holds the pip line.
    """
    missing = tuple(module for module in modules if find_spec(module) is None)
    if missing:
        raise ExtraMissingError(extra, missing)

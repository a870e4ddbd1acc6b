"""A policy that came over the network may name files below one folder, and no others.

Every path is followed to its end first: a link, a glob, `..` or an absolute path that leads out is refused. The file
is not opened before that, and the refusal is the same whether it exists or not.
"""

from __future__ import annotations

import glob
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dalenius.errors import NotAllowedError
from dalenius.tables.policy import Policy
from dalenius.tables.reading import read_text


def policy_from(text: str, folder: Path | None) -> Policy:
    """The policy in a text whose relative paths are relative to ``folder``, and whose paths all lie in it."""
    if folder is None:
        raise NotAllowedError(
            "This server takes no policies.",
            why="It was given no data_dir, so no file could be named.",
            fix="The owner starts it with --data-dir, or sets server.data_dir in config.toml.",
        )
    root = folder.resolve()
    for path in _named(text):  # before anything is read: a code list is opened with the policy
        check_inside(path, root)
    policy = read_text(text, root)
    for path in (*policy.source, *(each for spec in policy.public.values() for each in spec.source)):
        check_inside(path, root)
    return policy


def check_inside(path: str, root: Path) -> None:
    """That a path or a glob, relative to the root, stays below it, whatever links are on its way."""
    absolute = str(root / path)
    # The words first: no folder outside is even listed.
    inside = ".." not in Path(absolute).parts and _inside([absolute], root)
    if not inside or not _inside(glob.iglob(absolute, recursive=True), root):  # noqa: PTH207 (absolute patterns)
        raise NotAllowedError(
            "This names a file outside the server's data folder.",
            why="What comes over the network may name files below it only.",
            fix="Put the files there, and name them relative to it.",
        )


def _inside(paths: Iterable[str], root: Path) -> bool:
    """Whether all of them end below the root."""
    try:
        return all(Path(each).resolve().is_relative_to(root) for each in paths)
    except (OSError, ValueError, RuntimeError):
        return False


def _named(text: str) -> Iterator[str]:
    """Every path that a policy names, as far as it can be read; what cannot, `read_text` refuses."""
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError):
        return
    for holder in (tree.get("table"), *_values(tree.get("public"))):
        if isinstance(holder, Mapping):
            source = holder.get("source")
            yield from (each for each in (source if isinstance(source, list) else [source]) if isinstance(each, str))
    for column in _values(tree.get("columns")):
        keys = column.get("keys") if isinstance(column, Mapping) else None
        if isinstance(keys, Mapping) and isinstance(keys.get("file"), str):
            yield keys["file"]


def _values(tree: Any) -> list[Any]:
    return list(tree.values()) if isinstance(tree, Mapping) else []

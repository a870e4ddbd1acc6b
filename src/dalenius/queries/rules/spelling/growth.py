"""How much longer a question may become by being put in other words: some of them hold a part several times."""

from __future__ import annotations

from typing import Any

from dalenius.errors import QuestionRefusedError

MOST = 5000  # nodes that are added to the tree of one question


class Growth:
    """The nodes that were added to one tree."""

    def __init__(self) -> None:
        self.added = 0

    def add(self, nodes: int) -> None:
        """Counts nodes; refuses when there are too many."""
        self.added += max(0, nodes)
        if self.added > MOST:
            raise _too_involved()


def check_copies(node: Any, times: int) -> None:
    """Refuses before a part of the tree is copied, where its copies alone are too many nodes."""
    if size(node) * times > MOST:
        raise _too_involved()


def size(node: Any) -> int:
    """The nodes of a tree."""
    return sum(1 for _ in node.walk())


def _too_involved() -> QuestionRefusedError:
    return QuestionRefusedError(
        "The question is too involved.",
        why="Functions of other databases are written out here, and those within one another grow too long.",
        fix="Nest them less, or write a subquery: FROM (SELECT CBRT(a) AS b FROM …) t.",
    )

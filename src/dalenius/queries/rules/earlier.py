"""Items of SELECT that name earlier ones: `SELECT COUNT(*) AS n, SUM(x) AS s, s / n`.

A column of FROM comes first, then the last item before that has the name, as in DuckDB. A name is put in for what it
stands for; names of names could so grow without end, and what is put in is counted before it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import walk
from dalenius.queries.rules.parse import place

if TYPE_CHECKING:
    from dalenius.measuring.expressions import Expression

MOST = 5000  # parts that are put in for names, in one SELECT


class EarlierItems:
    """The items of one SELECT that were read so far.

    Attributes:
        open: Whether items are read now: elsewhere names of items have rules of their own.
    """

    def __init__(self) -> None:
        self.open = False
        self._items: dict[str, tuple[Expression, int]] = {}
        self._put_in = 0

    def add(self, name: str, expression: Expression) -> None:
        """One more item that has a name."""
        if self.open:
            self._items[name.lower()] = expression, sum(1 for _ in walk(expression))

    def find(self, node: Any, text: str) -> Expression | None:
        """What a name stands for; None where no item has it."""
        if not self.open or node.name.lower() not in self._items:
            return None
        found, size = self._items[node.name.lower()]
        self._put_in += size
        if self._put_in > MOST:
            raise QuestionRefusedError(
                "The question is too involved.",
                why="Items of SELECT that name earlier ones hold these, and become too long.",
                fix="Name fewer of them in one another.",
                at=place(node, text),
            )
        return found

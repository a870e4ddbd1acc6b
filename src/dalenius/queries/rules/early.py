"""Names that SELECT gives, before SELECT is done: in WHERE, and in the items behind them.

`SELECT region AS r, COUNT(*) … WHERE r = 'n'` means `WHERE region = 'n'`, as DuckDB has it. A column of that name goes
first, also one that names units and is not open to questions. In an item, only names of items before it are seen.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from dalenius.measuring.expressions import Expression, walk
from dalenius.measuring.relations import Owned
from dalenius.queries.rules.aggregated import is_aggregate
from dalenius.queries.rules.total import LARGEST

if TYPE_CHECKING:
    from dalenius.queries.rules.scope import SelectScope


class EarlyNames:
    """The names of one SELECT's items."""

    def __init__(self, reader: SelectScope) -> None:
        from sqlglot import exp

        self._reader, self._found = reader, dict[int, Expression]()
        self._items: dict[str, list[tuple[int, Any]]] = {}
        self._visible = 0  # items whose names are seen now
        units = {
            each.lower()
            for join in reader.joins
            if isinstance(join.source, Owned)
            for each in (*join.source.table.policy.unit, *join.source.table.policy.owner)
        }
        for at, item in enumerate(reader.tree.expressions):
            name = item.alias.lower() if isinstance(item, exp.Alias) else ""
            if name and name not in units and not item.this.find(exp.Query, exp.Window):
                self._items.setdefault(name, []).append((at, item.this))

    def see(self, item: Any = None) -> None:
        """From here on an item is read, and sees those before it; none: names are not seen, but in `meant`."""
        items = self._reader.tree.expressions
        self._visible = next((at for at, each in enumerate(items) if each is item), 0)

    def see_all(self) -> None:
        """From here on WHERE is read."""
        self._visible = len(self._reader.tree.expressions)

    def meant(self, node: Any) -> Expression | None:
        """What a name that no column has stands for; None: nothing, or nothing yet."""
        name = node.name.lower()
        seen = [each for each in self._items.get(name, ()) if each[0] < self._visible]
        if not seen:
            return None
        at, item = seen[-1]  # of several, the nearest before
        if self._visible == len(self._reader.tree.expressions) and any(map(is_aggregate, item.walk())):
            why = "WHERE chooses rows, before any are counted."
            raise self._reader.refused(
                node, f"{node.name} is an aggregate, which cannot stand in WHERE.", "Put it into HAVING.", why
            )
        if at not in self._found:
            before, self._visible = self._visible, at
            try:
                found = self._reader.expression(item)
            finally:
                self._visible = before
            # Each name may stand for two of the one before.
            if sum(1 for _ in islice(walk(found), LARGEST + 1)) > LARGEST:
                raise self._reader.refused(node, "An expression is too involved.", "Name fewer parts of it.")
            self._found[at] = found
        return self._found[at]

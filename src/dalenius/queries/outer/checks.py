"""What may not be in an outer part, found in its syntax tree before anything runs."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from dalenius.queries.outer import words
from dalenius.queries.outer.trees import is_plain

_READ = ("this", "alias", "with_", "expressions", "db", "catalog")  # of a source; the last are looked at elsewhere


def check_reads(tree: Any, names: Container[str], text: str) -> None:
    """Refuses any other table than these, and any WITH but the one before all.

    By construction there is none; this is looked at once more.
    """
    from sqlglot import exp

    for with_ in tree.find_all(exp.With):
        if with_.parent is not tree or any(each.alias not in names for each in with_.expressions):
            raise words.refuse_unread(with_, text)
    for table in tree.find_all(exp.Table):
        if not is_plain(table) or table.name not in names:
            raise words.refuse_unread(table, text)


def check_source(node: Any, text: str) -> None:
    """Refuses what stands beside a source in FROM: it is written anew, and nothing of it may be lost."""
    for part, value in node.args.items():
        if part not in _READ and value not in (None, False, [], ""):
            raise words.refuse_beside(part, node, text)


def check_limit(query: Any, text: str) -> None:
    """LIMIT and OFFSET are written out."""
    from sqlglot import exp

    for part in ("limit", "offset"):
        node = query.args.get(part)
        if node is None:
            continue
        options = node.args.get("limit_options")
        for name, word in (("with_ties", "WITH TIES"), ("percent", "PERCENT")):
            if options is not None and options.args.get(name):
                raise words.refuse_option(word, node, text)
        count = node.args.get("count") if isinstance(node, exp.Fetch) else node.expression
        if not isinstance(count, exp.Literal) or count.is_string or not count.name.isdigit():
            raise words.refuse_limit(part, node, text)

"""What may not be in an outer part, found in its syntax tree before anything runs."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from dalenius.queries.outer import words
from dalenius.queries.outer.cutting import has_windows, own_parts
from dalenius.queries.outer.trees import is_plain

_READ = ("this", "alias", "with_", "expressions", "db", "catalog")  # of a source; the last are looked at elsewhere
_OVER = frozenset({"Rank", "DenseRank", "RowNumber", "PercentRank", "CumeDist", "Ntile", "Lag", "Lead"})


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


def check_windows(select: Any, text: str) -> None:
    """Refuses windows where SQL has none, and window functions without OVER: the engine would only say that it fails.

    Nor are lambdas read: they would be written anew in a way that DuckDB has given up.
    """
    from sqlglot import exp

    over = {each.alias.lower() for each in select.expressions if isinstance(each, exp.Alias) and has_windows(each.this)}
    for part in ("where", "having"):
        node = select.args.get(part)
        names = {each.name.lower() for each in own_parts(node) if isinstance(each, exp.Column) and not each.table}
        if node is not None and (has_windows(node) or (part == "having" and over & names)):
            raise words.refuse_window(part, node, text)
    for each in own_parts(select):
        around = exp.Window | exp.IgnoreNulls | exp.RespectNulls | exp.Filter
        if type(each).__name__ in _OVER and not isinstance(each.parent, around):
            raise words.refuse_without_over(each, text)
        if isinstance(each, exp.Lambda):
            raise words.refuse_lambda(each, text)
    qualify = select.args.get("qualify")
    if qualify is not None and not any(has_windows(each) for each in (qualify, *select.expressions)):
        raise words.refuse_qualify(qualify, text)

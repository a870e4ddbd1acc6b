"""Clauses in other words: schemas, hints, parenthesised joins, FETCH FIRST, WITH ROLLUP, HAVING on an alias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.queries.rules.spelling.growth import size

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known


def shorten_table(node: Any, known: Known) -> Any:
    """`catalogue.schema.people` → people: tables have one name here. Hints of other databases are left out."""
    from sqlglot import exp

    if not isinstance(node.this, exp.Identifier):
        return None
    if all(isinstance(each, exp.WithTableHint) for each in node.args.get("hints") or ()):
        node.set("hints", None)
    last = node.name.rpartition(".")[2]
    if node.name.lower() not in known.tables and last.lower() in known.tables:  # `project.schema.people` as one name
        node.set("db", exp.to_identifier(node.name.rpartition(".")[0]))
        node.this.set("this", last)
    if (node.args.get("db") or node.args.get("catalog")) and node.name.lower() not in known.subqueries:
        node.set("db", None)
        node.set("catalog", None)
    return None


def shorten_column(node: Any, _: Known) -> Any:
    """`schema.people.region` → people.region."""
    node.set("db", None)
    node.set("catalog", None)


def limit_rows(node: Any, _: Known) -> Any:
    """FETCH FIRST n ROWS ONLY → LIMIT n."""
    from sqlglot import exp

    options = node.args.get("limit_options")
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        return None
    return exp.Limit(expression=node.args.get("count") or exp.Literal.number(1))


def roll_up(node: Any, _: Known) -> Any:
    """GROUP BY a, b WITH ROLLUP → GROUP BY ROLLUP (a, b); WITH CUBE likewise."""
    for part in ("rollup", "cube"):
        said = node.args.get(part)
        if said and not any(each.expressions for each in said) and len(said) == 1:
            node.set(part, None)
            node.set("expressions", [type(said[0])(expressions=node.expressions)])


def open_joins(node: Any, _: Known) -> Any:
    """(a JOIN b ON …) JOIN c ON …, a JOIN (b JOIN c ON …) ON … → the same from left to right, for inner joins."""
    from_ = node.args.get("from_") or node.args.get("from")
    joins = list(node.args.get("joins") or ())
    if from_ is not None and (inner := _parenthesised(from_.this)) is not None:
        first, rest = inner
        first.set("joins", None)
        from_.set("this", first)
        joins = [*rest, *joins]
    found: list[Any] = []
    for join in joins:
        found += _opened(join)
    if found:
        node.set("joins", found)


def turn_right_join(node: Any, _: Known) -> Any:
    """FROM a RIGHT JOIN b ON … → FROM b LEFT JOIN a ON …, where it is the first join."""
    from_ = node.args.get("from_") or node.args.get("from")
    first = next(iter(node.args.get("joins") or ()), None)
    if from_ is None or first is None or str(first.args.get("side") or "").upper() != "RIGHT":
        return
    if str(first.args.get("kind") or "").upper() not in {"", "OUTER"} or first.args.get("method"):
        return
    one, other = from_.this, first.this
    from_.set("this", other)
    first.set("this", one)
    first.set("side", "LEFT")


def _opened(join: Any) -> list[Any]:
    from sqlglot import exp

    inner = _parenthesised(join.this)
    plain = not join.args.get("side") and not join.args.get("method") and not join.args.get("using")
    if inner is None or not plain or str(join.args.get("kind") or "").upper() not in {"", "INNER", "CROSS"}:
        return [join]
    first, rest = inner
    if any(each.args.get("side") or each.args.get("using") or each.args.get("method") for each in rest):
        return [join]
    first.set("joins", None)
    condition = join.args.get("on")
    if condition is not None:  # it is about all of them: it stands with the last
        inside = rest[-1].args.get("on")
        rest[-1].set("on", condition if inside is None else exp.and_(inside, condition, copy=False))
        if str(rest[-1].args.get("kind") or "").upper() == "CROSS":
            rest[-1].set("kind", None)
    return [exp.Join(this=first, kind="CROSS"), *rest]


def _parenthesised(node: Any) -> tuple[Any, list[Any]] | None:
    """The first table and the joins of (a JOIN b …), without a name of its own."""
    from sqlglot import exp

    if not isinstance(node, exp.Subquery) or node.args.get("alias") or not isinstance(node.this, exp.Table):
        return None
    joins = list(node.this.args.get("joins") or ())
    return (node.this, joins) if joins else None


def have_alias(node: Any, known: Known) -> Any:
    """AVG(age) AS age … HAVING age > 30 → HAVING AVG(age) > 30; where age is no key, the average is meant."""
    from sqlglot import exp

    from dalenius.queries.rules.aggregated import is_aggregate

    having, group = node.args.get("having"), node.args.get("group")
    if having is None:
        return
    keys = _names_of_keys(node, group) if group is not None else set()
    items = {each.alias.lower(): each.this for each in node.expressions if isinstance(each, exp.Alias)}
    columns = known.stored | {
        each.alias_or_name.lower()
        for query in node.root().find_all(exp.Select, exp.TableAlias)
        if query is not node
        for each in (query.expressions if isinstance(query, exp.Select) else query.args.get("columns") or ())
    }  # an alias that is none of them was never taken for a column
    for column in list(having.find_all(exp.Column)):
        item = items.get(column.name.lower()) if not column.table else None
        name = column.name.lower()
        if item is None or name in keys or name not in columns or not any(map(is_aggregate, item.walk())):
            continue
        around = column.parent  # what stands in an aggregate or in a subquery is a column
        while around is not having and not is_aggregate(around) and not isinstance(around, exp.Query):
            around = around.parent
        if around is having:
            known.growth.add(size(item))
            column.replace(exp.Paren(this=item.copy()))


def _names_of_keys(node: Any, group: Any) -> set[str]:
    """The names that GROUP BY holds, and those in what it refers to by an alias, by a position or by ALL."""
    from sqlglot import exp

    found = {each.name.lower() for each in group.find_all(exp.Column)}
    places = {int(each.name) for each in group.find_all(exp.Literal) if each.name.isdecimal()}
    items = list(enumerate(node.expressions, 1))
    before = -1
    while len(found) != before:
        before = len(found)
        for place, item in items:
            meant = place in places or (isinstance(item, exp.Alias) and item.alias.lower() in found)
            if meant or (group.args.get("all") and not _has_aggregates(item)):
                found |= {each.name.lower() for each in item.find_all(exp.Column)}
                found |= {item.alias.lower()} if isinstance(item, exp.Alias) else set()
    return found


def _has_aggregates(node: Any) -> bool:
    from dalenius.queries.rules.aggregated import is_aggregate

    return any(map(is_aggregate, node.walk()))

"""FROM: tables, joins, subqueries and CTEs become the sources of one relation, and names become their columns.

A subquery that only selects, filters and joins is dissolved: its sources and conditions join those around it, and its
columns stand for their expressions. So a question means the same, and finds the same stored answer, however it is
nested. One that groups by unit, and UNION ALL, are sources of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from dalenius.errors import QuestionRefusedError, UnknownTableError
from dalenius.measuring.canonical import call, factor
from dalenius.measuring.expressions import Column, Expression, Type, walk
from dalenius.measuring.functions import TYPES
from dalenius.measuring.relations import (
    Join,
    Match,
    Open,
    Owned,
    Relation,
    Source,
    full,
    identities_of,
    kinds_of,
)
from dalenius.queries.rules.aggregated import Aggregating, is_aggregate
from dalenius.queries.rules.early import EarlyNames
from dalenius.queries.rules.listed import is_list, read_list
from dalenius.queries.rules.numbered import keep_first
from dalenius.queries.rules.parse import place
from dalenius.queries.rules.scope import Names, Subqueries
from dalenius.queries.rules.total import LARGEST, make_total
from dalenius.tables.mistakes import nearest

if TYPE_CHECKING:
    from dalenius.measuring.public import PublicTable

NOBODYS = "Every row that is counted must belong to somebody, and it must be plain to whom."
REFUSED_JOINS = {
    "FULL": "Ask about one side with LEFT JOIN, and about the other side in a second question.",
    "SEMI": "Write WHERE EXISTS (SELECT … ).",
    "ANTI": "Write WHERE NOT EXISTS (SELECT … ).",
    "ASOF": "Join on equal units, and say in WHERE which rows belong together.",
    "POSITIONAL": "Write JOIN … ON a.x = b.x.",
}
_LATER_RIGHT = "Put its table first in FROM, and the others behind it with LEFT JOIN."
_ALONE = "Put it into WHERE by itself; ask for alternatives (OR) one by one, with NOT EXISTS for the rest."
_HOLDS = "It is read where it must hold for a row: in WHERE, joined to other conditions by AND."
# Subqueries that are refused: what they are, why, and what to write instead.
REFUSED_SUBQUERIES = {
    "scalar": (
        "A scalar subquery is not supported.",
        "Its value would be used without any noise.",
        "Ask it as a question of its own (free where its tables are public), and write the number here.",
    ),
    "correlated": (
        "A correlated subquery is not supported.",
        "It would be worked out for each row.",
        "Join a subquery that groups by the unit: JOIN (SELECT unit, MAX(x) AS m FROM t GROUP BY unit) s ON …",
    ),
    "grouped": (
        "A correlated subquery with groups is not supported.",
        "Its groups would be others for each row around it.",
        "Group it by the unit and write unit IN (SELECT unit FROM … GROUP BY unit HAVING … ).",
    ),
    "exists": ("EXISTS cannot stand here.", _HOLDS, _ALONE),
    "in": ("IN (SELECT …) cannot stand here.", _HOLDS, _ALONE),
}


class Sources(Aggregating):
    """Reads FROM and WHERE of one SELECT."""

    # --- FROM

    def read_rows(self) -> None:
        """FROM and WHERE."""
        self.read_with()
        source = self.tree.args.get("from_") or self.tree.args.get("from")
        if source is None:
            self.no_table(None)
        self.add(source.this)
        for join in self.tree.args.get("joins") or ():
            self.add_join(join)
        where = self.tree.args.get("where")
        self.early = EarlyNames(self)
        self.early.see_all()
        for node in _conjuncts(where.this) if where else ():
            if not self.matching(node):
                self.conditions += self.condition(node, "WHERE")
        self.early.see()

    def read_with(self) -> None:
        """WITH: each subquery sees those before it."""
        with_ = self.tree.args.get("with_") or self.tree.args.get("with")
        if with_ is None:
            return
        if with_.args.get("recursive"):
            raise self.refused(with_, "WITH RECURSIVE is not supported.", "Write the steps out.")
        for each in with_.expressions:
            known = dict(self.subqueries)
            if each.alias.lower() in known and known[each.alias.lower()][0] in with_.expressions:
                raise self.refused(each, f"WITH names {each.alias!r} twice.", "Rename one.")
            known[each.alias.lower()] = (each, dict(self.subqueries))
            self.subqueries = known

    def add(self, node: Any, *, left: bool = False) -> tuple[str, int]:
        """One item of FROM; gives its name, and where its sources begin."""
        from sqlglot import exp

        start = len(self.joins)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            alias = node.alias or node.name
            if node.args.get("alias") is not None and node.args["alias"].args.get("columns"):
                raise self.refused(node, "Columns of a table cannot be renamed in FROM.", "Use AS in SELECT.")
            known = self.subqueries.get(node.name.lower())
            if known is None:
                self.name(node, alias, self.table_named(node, left))
            else:
                cte, visible = known
                self.name(node, alias, self.subquery(cte.this, visible, cte.args.get("alias"), node, left=left))
        elif isinstance(node, exp.Subquery):
            alias = node.alias
            found = self.subquery(node.this, self.subqueries, node.args.get("alias"), node, left=left)
            self.name(node, alias or f"#{len(self.names)}", found)
        elif is_list(node):
            table = read_list(self, node)
            alias = node.alias or f"#{len(self.names)}"
            self.name(node, alias, self.sourced(Open(self.shared.name(table.name), table, called=alias), left, node))
        else:
            self.no_table(node)
        return next(reversed(self.names)), start

    def name(self, node: Any, alias: str, names: Names) -> None:
        """Puts columns into view under a name."""
        if alias.lower() in self.names:
            raise self.invalid(
                node, f"There are two tables {alias!r} in FROM.", "Names could not tell them apart.", "Use AS."
            )
        for _, expression in names.values():
            # In a subquery of a subquery of … each name may stand for two of the one before.
            if sum(1 for _ in islice(walk(expression), LARGEST + 1)) > LARGEST:
                raise self.refused(node, "An expression is too involved.", "Nest fewer subqueries.")
        self.names[alias.lower()] = names

    def table_named(self, node: Any, left: bool) -> Names:
        """A protected or a public table."""
        stage = self.shared.stage
        spelled = {name.lower(): table for name, table in stage.tables.items()}
        found = spelled.get(node.name.lower())
        if found is not None:
            identities, called = identities_of(found, stage.tables), node.alias or node.name
            source = Owned(self.shared.name(found.policy.name), found, identities, called)
            return self.sourced(source, left, node)
        public = self.public(node.name)
        if public is not None:
            called = node.alias or node.name
            return self.sourced(Open(self.shared.name(public.name), public, called=called), left, node)
        meant = nearest(node.name, [*stage.tables, *stage.publics])
        raise UnknownTableError(
            f"There is no table {node.name!r}.",
            why=f"Protected are: {', '.join(sorted(stage.tables))}." if stage.tables else "No table is protected yet.",
            fix=f"Did you mean {meant!r}?" if meant else "See 'dalenius tables'.",
            at=place(node, self.text),
        )

    def public(self, name: str) -> PublicTable | None:
        """The public table of a name."""
        publics = self.shared.stage.publics
        spelled = {each.lower(): each for each in publics}
        return publics[spelled[name.lower()]] if name.lower() in spelled else None

    def sourced(self, source: Source, left: bool, node: Any) -> Names:
        """A source that stands in FROM as it is."""
        self.joins.append(Join(source, left))
        at = place(node, self.text)
        if at is not None:
            self.shared.places[source.name] = at
        found: Names = {}
        for name, classes in source.identities.items():
            self.shared.identities[full(source, name)] = classes
            found[name.lower()] = (name, Column(full(source, name), Type.UNIT))
        for name, kind in kinds_of(source).items():
            found[name.lower()] = (name, Column(full(source, name), TYPES[kind]))
        return found

    def add_join(self, node: Any) -> None:
        """JOIN, and tables after a comma."""
        side, kind = str(node.args.get("side") or "").upper(), str(node.args.get("kind") or "").upper()
        left = side == "LEFT" and kind in {"", "OUTER"}
        method = str(node.args.get("method") or "").upper()
        if method not in {"", "NATURAL"} or (side and not left) or kind not in {"", "INNER", "CROSS", "OUTER"}:
            self.refuse_join(node, " ".join(filter(None, [method, side, kind])))
        before = dict(self.names)
        name, start = self.add(node.this, left=left)
        shared = self.shared_names(node, before, self.names[name]) if method else node.args.get("using") or ()
        conditions = [self.using(each, before, self.names[name]) for each in shared]
        on = node.args.get("on")
        for each in _conjuncts(on) if on is not None else ():
            if left or not self.matching(each):  # of an inner join, ON is as good as WHERE
                conditions += self.condition(each, "ON")
        if not left:
            self.conditions += conditions
            return
        # One source, as `subquery` saw to.
        join = self.joins[start]
        self.joins[start] = Join(join.source, True, self.total(call("and", join.on, *conditions)))

    def shared_names(self, node: Any, before: Mapping[str, Names], names: Names) -> list[Any]:
        """The columns that a NATURAL JOIN is about: those of both sides that the policies list."""
        from sqlglot import exp

        found = [each for each in names if any(each in other for other in before.values())]
        if not found:
            self.refuse_join(node, "NATURAL")
        return [exp.to_identifier(each) for each in found]

    def using(self, node: Any, before: Mapping[str, Names], names: Names) -> Expression:
        """USING (k): both sides have a column of that name, and it is one column from then on."""
        name = node.name.lower()
        sides = [each[name][1] for each in before.values() if name in each]
        if name in self.merged:
            sides = [self.merged[name]]
        if len(sides) != 1 or name not in names:
            raise self.refused(
                node, f"USING ({node.name}) needs that column once on both sides.", "Write ON a.x = b.x."
            )
        self.merged[name] = sides[0]
        return self.equal(node, sides[0], names[name][1])

    def refuse_join(self, node: Any, what: str) -> NoReturn:
        """Refuses a kind of join, with another way."""
        ways = {**REFUSED_JOINS, "RIGHT": _LATER_RIGHT}
        fix = next((way for word, way in ways.items() if word in what), "Write JOIN … ON a.x = b.x.")
        raise QuestionRefusedError(
            f"{what} JOIN is not supported.",
            why=NOBODYS,
            fix=fix,
            at=place(node, self.text),
        )

    def no_table(self, node: Any) -> NoReturn:
        """Refuses whatever else can stand in FROM."""
        raise QuestionRefusedError(
            "The question names no table.",
            why="FROM must name a table that is protected; files and functions are never read for a question.",
            fix="Write FROM and one of the names of 'dalenius tables'.",
            at=place(node, self.text) if node is not None else None,
        )

    def subquery(self, tree: Any, visible: Subqueries, alias: Any, node: Any, *, left: bool) -> Names:
        """What a subquery in FROM brings; written where it can be dissolved, else a source of its own."""
        raise NotImplementedError

    def dissolved(self, child: Sources, named: Sequence[tuple[str, Expression]], node: Any, left: bool) -> Names:
        """The subquery's sources among those of this SELECT, its columns as their expressions."""
        if left:
            plain = len(child.joins) == 1 and not child.matches and all(isinstance(each, Column) for _, each in named)
            if not plain:
                raise self.refused(
                    node,
                    "LEFT JOIN takes a table, or a subquery that filters one or groups by unit.",
                    "Join the tables themselves.",
                )
            (join,) = child.joins
            self.joins.append(Join(join.source, True, self.total(call("and", *child.conditions))))
        else:
            self.joins += child.joins
            self.conditions += child.conditions
            self.matches += child.matches
        return {name.lower(): (name, expression) for name, expression in named}

    # --- conditions

    def condition(self, node: Any, where: str) -> list[Expression]:
        """A condition's parts that all must hold; what alternatives share is one of them."""
        self.check_rows(node, where)
        if type(node.parent).__name__ == "And":
            found = self.expression(node)
            if found.type not in {Type.BOOLEAN, Type.NOTHING}:
                raise self.mismatch(node, "boolean", found.type.value)
            return list(factor(found))
        return list(factor(self.boolean(node, where)))

    def check_rows(self, node: Any, where: str) -> None:
        """Refuses aggregates in a condition on rows; those of subqueries are their own."""
        from sqlglot import exp

        for each in node.walk(prune=lambda part: isinstance(part, exp.Query)):
            if is_aggregate(each):
                why = f"{where} chooses rows, before any are counted."
                raise self.refused(each, f"An aggregate cannot stand in {where}.", "Put it into HAVING.", why)

    def matching(self, node: Any) -> bool:
        """Reads [NOT] EXISTS and [NOT] IN (SELECT …), also behind parentheses; says whether it was one."""
        from sqlglot import exp

        negated = False
        while isinstance(node, exp.Not | exp.Paren):
            negated ^= isinstance(node, exp.Not)
            node = node.this
        if isinstance(node, exp.Exists):
            self.exists(node, negated=negated)
        elif isinstance(node, exp.In) and node.args.get("query") is not None:
            self.among(node, negated=negated)
        else:
            return False
        return True

    def exists(self, node: Any, *, negated: bool) -> None:
        """EXISTS and NOT EXISTS."""
        tree = node.this.this if type(node.this).__name__ == "Subquery" else node.this
        self.match(node, tree, negated, None)

    def among(self, node: Any, *, negated: bool) -> None:
        """IN and NOT IN with a subquery: EXISTS with one more equality.

        x NOT IN (…) is true where the list is empty, or x is not NULL, the list holds no NULL, and no value is x.
        """
        given = node.this.expressions if type(node.this).__name__ == "Tuple" else [node.this]
        self.match(node, node.args["query"].this, negated, given)

    def match(self, node: Any, tree: Any, negated: bool, given: Sequence[Any] | None) -> None:
        """A subquery that only says whether a row is there; ``given`` must be among its columns."""
        from sqlglot import exp

        if not isinstance(tree, exp.Select):
            raise self.refused(node, "A set operation cannot stand here.", "Write one EXISTS for each part.")
        child = self.child(tree, outer=self)
        named = child.matched(needs=given is not None)
        if given is not None:
            if len(named) != len(given):
                raise self.invalid(
                    node, "IN compares as many columns as stand before it.", f"There are {len(named)}.", "Correct it."
                )
            for mine, (_, theirs) in zip(given, named, strict=True):
                one = self.expression(mine)
                child.conditions.append(self.membership(node, one, theirs, negated))
        where = child.total(call("and", *child.conditions))
        relation = Relation(keep_first(child.joins, where), where, tuple(child.matches))
        self.matches.append(Match(relation, negated))

    def membership(self, node: Any, one: Expression, other: Expression, negated: bool) -> Expression:
        """What one comparison of IN is in EXISTS."""
        equal = self.equal(node, one, other)
        if not negated or Type.UNIT in {each.type for each in (getattr(equal, "arguments", ()) or ())}:
            return equal  # who somebody is is never NULL
        return call("or", equal, call("is_null", one), call("is_null", other))

    def matched(self, *, needs: bool) -> list[tuple[str, Expression]]:
        """Reads a subquery of EXISTS or IN; gives its columns, where they matter."""
        raise NotImplementedError

    def child(self, tree: Any, subqueries: Subqueries | None = None, outer: Sources | None = None) -> Any:
        """The reader of a SELECT inside this one."""
        return type(self)(self.shared, tree, self.subqueries if subqueries is None else subqueries, outer)

    def total(self, expression: Expression) -> Expression:
        """A condition that no row can make fail."""
        return make_total(expression, self.ranges())

    # --- expressions

    def expression(self, node: Any) -> Expression:
        """Any expression."""
        from sqlglot import exp

        if isinstance(node, exp.Subquery) and self.only_public(node):
            from dalenius.queries.public_questions import public_value

            return public_value(node.this, self.shared.stage.publics, place(node, self.text))
        if isinstance(node, exp.Subquery | exp.Select | exp.Exists) or (
            isinstance(node, exp.In) and node.args.get("query")
        ):
            raise self.misplaced(node)
        if isinstance(node, exp.EQ) and isinstance(node.this, exp.Column) and isinstance(node.expression, exp.Column):
            return self.equal(node, super().expression(node.this), super().expression(node.expression))
        return super().expression(node)

    def only_public(self, node: Any) -> bool:
        """Whether a subquery reads public tables and nothing else."""
        from sqlglot import exp

        names = {each.name.lower() for each in node.find_all(exp.Table)}
        return bool(names) and names <= {each.lower() for each in self.shared.stage.publics} - self.subqueries.keys()

    def misplaced(self, node: Any) -> QuestionRefusedError:
        """The error about a subquery where none can stand."""
        from sqlglot import exp

        if isinstance(node, exp.Exists | exp.In):
            return self.no_subquery(node, "exists" if isinstance(node, exp.Exists) else "in")
        read = list(node.find_all(exp.Table))
        inner = {each.alias_or_name.lower() for each in read}
        around = {*self.names, *(self.outer.names if self.outer is not None else ())} - inner
        own = self.columns_named({each.name.lower() for each in read})
        here = {name for names in self.names.values() for name in names} - own
        correlated = any(
            each.table.lower() in around or (not each.table and each.name.lower() in here)
            for each in node.find_all(exp.Column)
        )
        return self.no_subquery(node, "correlated" if correlated else "scalar")

    def columns_named(self, tables: Collection[str]) -> set[str]:
        """The names of all columns of some tables, in lower case."""
        stage, found = self.shared.stage, set[str]()
        for name, table in stage.tables.items():
            if name.lower() in tables:
                found |= {each.lower() for each in (*table.policy.columns, *identities_of(table, stage.tables))}
        for name in stage.publics:
            if name.lower() in tables:
                found |= {each.lower() for each in stage.publics[name].kinds}
        return found

    def no_subquery(self, node: Any, kind: str) -> QuestionRefusedError:
        """The error about a kind of subquery."""
        what, why, fix = REFUSED_SUBQUERIES[kind]
        return QuestionRefusedError(what, why=why, fix=fix, at=place(node, self.text))


def _conjuncts(node: Any) -> list[Any]:
    """The parts of a condition that all must hold."""
    from sqlglot import exp

    if isinstance(node, exp.And):
        return [*_conjuncts(node.this), *_conjuncts(node.expression)]
    if isinstance(node, exp.Paren):
        return _conjuncts(node.this) if isinstance(node.this, exp.And | exp.Paren) else [node]
    return [node]

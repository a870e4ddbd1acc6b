"""Questions with outer parts, made up: each has one right answer, which plain DuckDB gives on the rows.

A question is built from the inside: an aggregated SELECT over the shop's orders, around it SELECTs, joins, UNION ALL
and names of WITH. Of each query it is known which columns it has, of which types, and which of them tell its rows
apart; so that whatever is drawn has no ties that matter, and no NULL where databases may differ. Names are few, so that
they are drawn again and again and hide one another: those of tables and of their columns are among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

_KEYS = {"region": "text", "status": "text", "MONTH(day)": "int", "UPPER(region)": "text", "status = 'open'": "bool"}
_AGGREGATES = {
    "COUNT(*)": "int",
    "COUNT(amount)": "int",
    "COUNT(DISTINCT user_id)": "int",
    "SUM(amount)": "num",
    "SUM(CASE WHEN amount > 10 THEN 1 ELSE 0 END)": "int",
    "COUNT(*) FILTER (WHERE status = 'open')": "int",
    "SUM(amount) / COUNT(*)": "num",
    "COUNT(*) + 1": "int",
}
_NAMES = ("n", "s", "region", "amount", "k", "status", "x", "day", "r")
_TABLES = ("t", "u", "v", "orders", "people", "w")
_FRAMES = (
    *("UNBOUNDED PRECEDING AND CURRENT ROW", "1 PRECEDING AND 1 FOLLOWING"),
    *("2 PRECEDING AND 1 PRECEDING", "CURRENT ROW AND UNBOUNDED FOLLOWING"),
)
_WHERE = ("amount > 5", "day < DATE '2025-09-01'", "status = 'open'", "amount IS NOT NULL")
_NUMBERS = ("int", "num")
_STORED = frozenset({"region", "status", "amount", "day"})  # columns of the rows


@dataclass(frozen=True)
class Column:
    """A column of a query: its name, and its type: text, int, num, bool."""

    name: str
    type: str


@dataclass(frozen=True)
class Query:
    """A query: its text, its columns, and the places of those that tell its rows apart; None: that is not known."""

    sql: str
    columns: tuple[Column, ...]
    unique: tuple[int, ...] | None


_REGIONS = Query("", (Column("code", "text"), Column("name", "text"), Column("tax", "num")), (0,))
_LIST = Query("", (Column("word", "text"), Column("rank", "int")), (0,))


@dataclass
class Maker:
    """Makes questions from one seed."""

    chance: Random
    names: dict[str, Query] = field(default_factory=dict)  # of WITH, in their order
    hides: bool = False  # whether a name of WITH is that of a table of rows, which is then out of sight

    def question(self) -> tuple[str, bool]:
        """A question; and whether its rows have an order."""
        self.names, self.hides = {}, False
        for _ in range(self.chance.choice((0, 0, 1, 1, 2))):
            query = self.query(1)
            name = self.chance.choice([each for each in _TABLES if each not in self.names])
            self.names[name] = query
            self.hides |= name in ("orders", "people")
        found = self.query(2)
        before = ", ".join(f"{name} AS ({each.sql})" for name, each in self.names.items())
        sql, ordered = self.ended(found)
        return (f"WITH {before} {sql}" if before else sql), ordered

    # --- queries

    def query(self, depth: int) -> Query:
        """Any query."""
        ways = ["base"] if depth == 0 else ["base", "over", "over", "over", "union", "join"]
        if self.hides:  # the rows are out of sight
            ways = ["over"] if depth else ["named"]
        match self.chance.choice(ways):
            case "base":
                return self.base()
            case "named":
                name = self.chance.choice(list(self.names))
                found = self.names[name]
                return Query(f"SELECT * FROM {name}", found.columns, found.unique)
            case "union":
                return self.union(depth)
            case "join":
                return self.join(depth)
        return self.over(depth)

    def base(self) -> Query:
        """An aggregated SELECT over rows."""
        chance = self.chance
        keys = chance.sample(list(_KEYS), chance.choice((0, 1, 1, 1, 2)))
        if {"region", "UPPER(region)"} <= set(keys) or {"status", "status = 'open'"} <= set(keys):
            keys = keys[:1]
        parts = chance.sample(list(_AGGREGATES), chance.randint(1, 3))
        names = self.fresh(len(keys) + len(parts))
        columns = [Column(name, _KEYS[key]) for name, key in zip(names, keys, strict=False)]
        columns += [Column(name, _AGGREGATES[part]) for name, part in zip(names[len(keys) :], parts, strict=True)]
        items = [f"{each} AS {name}" for each, name in zip([*keys, *parts], names, strict=True)]
        scope = [Column(key, _KEYS[key]) for key in keys] + [Column(part, _AGGREGATES[part]) for part in parts]
        taken = set(names) | _STORED
        for _ in range(chance.choice((0, 0, 1))):
            name = chance.choice([f"w{at}" for at in range(9) if f"w{at}" not in taken])
            made, type_ = self.window(scope, list(range(len(keys))))
            columns.append(Column(name, type_))
            items.append(f"{made} AS {name}")
            taken.add(name)
        sql = f"SELECT {', '.join(items)} FROM orders"
        if chance.random() < 0.3:
            sql += f" WHERE {chance.choice(_WHERE)}"
        if keys:
            qualifies = chance.random() < 0.1
            plain = not qualifies and not any(" OVER " in each for each in items)
            sql += f" GROUP BY {self.grouped(keys, names, plain=plain)}"
            sql += f" HAVING {self.having(parts, names[len(keys) :])}"
            if qualifies:
                made, _ = self.window(scope, list(range(len(keys))), ranks=True)
                sql += f" QUALIFY {made} <= 3"
        return Query(sql, tuple(columns), tuple(range(len(keys))))

    def having(self, parts: Sequence[str], names: Sequence[str]) -> str:
        """What stands in HAVING: at least that a group has rows, as those without have none in DuckDB."""
        chance = self.chance
        some = f"COUNT(*) > {chance.choice((0, 0, 1, 2))}"
        known = [(part, name) for part, name in zip(parts, names, strict=True) if name not in _STORED]
        if known and chance.random() < 0.3:
            some += f" AND {chance.choice(chance.choice(known))} > {chance.choice((-1, 2, 4))}"
        return some

    def grouped(self, keys: Sequence[str], names: Sequence[str], *, plain: bool) -> str:
        """What stands in GROUP BY."""
        if self.chance.random() < 0.4:
            return ", ".join(str(at) for at in range(1, len(keys) + 1))
        if plain and self.chance.random() < 0.3:
            return "ALL"  # which DuckDB has not with windows
        clear = not _STORED & set(names)
        return ", ".join(names[: len(keys)] if clear and self.chance.random() < 0.5 else keys)

    def over(self, depth: int) -> Query:
        """A SELECT over one query."""
        chance = self.chance
        source, alias, sql = self.source(depth - 1)
        dotted = chance.random() < 0.3
        scope = [Column(f"{alias}.{each.name}" if dotted else each.name, each.type) for each in source.columns]
        where = f" WHERE {self.condition(scope, alias)}" if chance.random() < 0.3 else ""
        groups = [at for at, each in enumerate(scope) if each.type in ("text", "bool", "int")]
        if chance.random() < 0.3 and groups:
            return self.gathered(scope, chance.sample(groups, min(len(groups), chance.randint(1, 2))), sql, where)
        kept = list(range(len(scope))) if chance.random() < 0.6 else sorted(chance.sample(range(len(scope)), 1))
        items, columns, taken = list[str](), list[Column](), set[str]()
        known = {each.name for each in source.columns}
        for at in kept:
            name = source.columns[at].name
            if name in taken:
                continue
            items.append(scope[at].name)
            columns.append(Column(name, scope[at].type))
            taken.add(name)
        if len(columns) == len(source.columns) and chance.random() < 0.3:
            items = [f"{alias}.*" if chance.random() < 0.5 else "*"]
        unique = source.unique
        places = None if unique is None or not set(unique) <= set(kept) else tuple(kept.index(at) for at in unique)
        for _ in range(chance.choice((0, 1, 1, 2))):
            name = chance.choice([each for each in (*_NAMES, "c1", "c2", "c3") if each not in taken])
            make = self.window if chance.random() < 0.5 else self.value
            made, type_ = make(scope, None if unique is None else list(unique))
            earlier = [each for each in columns[len(kept) :] if each.type in _NUMBERS and each.name not in known]
            if earlier and chance.random() < 0.4:  # the name of an item before it
                one = chance.choice(earlier)
                made, type_ = f"{one.name} * 2 + 1", one.type
            items.append(f"{made} AS {name}")
            columns.append(Column(name, type_))
            taken.add(name)
        qualify = ""
        if chance.random() < 0.15 and any("OVER" in each for each in items) and unique is not None:
            made, _ = self.window(scope, list(unique), ranks=True)
            qualify = f" QUALIFY {made} <= {chance.randint(1, 3)}"
        if unique and chance.random() < 0.1 and "c9" not in taken:
            items.append("ROW_NUMBER() OVER w9 AS c9")
            columns.append(Column("c9", "int"))
            qualify = f" WINDOW w9 AS (ORDER BY {self.terms([scope[at].name for at in unique])}){qualify}"
        distinct = ""
        if chance.random() < 0.12:
            distinct, places = "DISTINCT ", tuple(range(len(columns)))
        return Query(f"SELECT {distinct}{', '.join(items)} FROM {sql}{where}{qualify}", tuple(columns), places)

    def gathered(self, scope: Sequence[Column], groups: Sequence[int], sql: str, where: str) -> Query:
        """A SELECT with GROUP BY over one query."""
        chance = self.chance
        parts = [("COUNT(*)", "int")]
        numbers = [each.name for each in scope if each.type in _NUMBERS]
        for name in chance.sample(numbers, min(len(numbers), 2)):
            type_ = next(each.type for each in scope if each.name == name)
            parts += [
                chance.choice(
                    (
                        *((f"SUM({name})", type_), (f"MAX({name}) - MIN({name})", type_), (f"AVG({name})", "num")),
                        *((f"COUNT(DISTINCT {name})", "int"), (f"MIN({name})", type_), (f"MEDIAN({name})", "num")),
                    )
                )
            ]
        names = self.fresh(len(groups) + len(parts), apart=True)
        items = [f"{scope[at].name} AS {name}" for at, name in zip(groups, names, strict=False)]
        items += [f"{part} AS {name}" for (part, _), name in zip(parts, names[len(groups) :], strict=True)]
        columns = [Column(name, scope[at].type) for at, name in zip(groups, names, strict=False)]
        columns += [Column(name, type_) for (_, type_), name in zip(parts, names[len(groups) :], strict=True)]
        keys = ", ".join(str(at) if chance.random() < 0.3 else scope[key].name for at, key in enumerate(groups, 1))
        if chance.random() < 0.1:
            keys = "ALL"
        elif chance.random() < 0.1 and len(groups) == 1:
            keys = f"ROLLUP ({scope[groups[0]].name})"
        having = f" HAVING COUNT(*) >= {chance.randint(1, 2)}" if chance.random() < 0.3 else ""
        text = f"SELECT {', '.join(items)} FROM {sql}{where} GROUP BY {keys}{having}"
        return Query(text, tuple(columns), tuple(range(len(groups))))

    def union(self, depth: int) -> Query:
        """Two queries, one below the other, with columns in another order perhaps."""
        one, other = self.query(depth - 1), self.query(depth - 1)
        places = []
        free = list(range(len(other.columns)))
        kept = []
        for at, column in enumerate(one.columns):
            fits = [each for each in free if other.columns[each].type == column.type]
            if fits:
                free.remove(fits[0])
                places.append(fits[0])
                kept.append(at)
        if not kept:
            return one
        first = f"SELECT {', '.join(one.columns[at].name for at in kept)} FROM ({one.sql}) a"
        second = f"SELECT {', '.join(other.columns[at].name for at in places)} FROM ({other.sql}) b"
        word = self.chance.choice(("UNION ALL", "UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"))
        unique = None if word == "UNION ALL" else tuple(range(len(kept)))
        return Query(f"{first} {word} {second}", tuple(one.columns[at] for at in kept), unique)

    def join(self, depth: int) -> Query:
        """Two queries side by side, by a key of the second."""
        chance = self.chance
        one, name, left = self.source(depth - 1)
        other, beside, right = self.source(depth - 1, but=name)
        pairs = [
            (a, b)
            for a, first in enumerate(one.columns)
            for b, second in enumerate(other.columns)
            if first.type == second.type and first.type != "num"
        ]
        if not pairs or one.unique is None or other.unique is None:
            return Query(f"SELECT * FROM {left}", one.columns, one.unique)
        a, b = chance.choice(pairs)
        kind = chance.choice(("JOIN", "LEFT JOIN", "JOIN", "FULL JOIN", "RIGHT JOIN", "SEMI JOIN", "ANTI JOIN"))
        shown = [(name, each) for each in one.columns]
        unique: tuple[int, ...] | None = one.unique
        if kind not in ("SEMI JOIN", "ANTI JOIN"):
            shown += [(beside, each) for each in other.columns]
            unique = (*one.unique, *(len(one.columns) + at for at in other.unique))
        names = self.fresh(len(shown), apart=True)
        items = [f"{table}.{each.name} AS {new}" for (table, each), new in zip(shown, names, strict=True)]
        columns = tuple(Column(new, each.type) for (_, each), new in zip(shown, names, strict=True))
        where = ""
        if chance.random() < 0.2:
            where = f" WHERE {self.condition([Column(f'{table}.{each.name}', each.type) for table, each in shown])}"
        on = f"{name}.{one.columns[a].name} = {beside}.{other.columns[b].name}"
        return Query(f"SELECT {', '.join(items)} FROM {left} {kind} {right} ON {on}{where}", columns, unique)

    def source(self, depth: int, but: str = "") -> tuple[Query, str, str]:
        """What stands in FROM, what it is called there, and how it is written."""
        chance = self.chance
        alias = chance.choice([each for each in ("q", "p", "t", "region", "n") if each != but])
        if but and chance.random() < 0.15:
            return _REGIONS, alias, f"regions AS {alias}"
        if but and chance.random() < 0.15:
            return _LIST, alias, f"(VALUES ('n', 3), ('open', 9)) AS {alias}(word, rank)"
        if self.names and (self.hides or chance.random() < 0.6):
            name = chance.choice(list(self.names))
            if name != but and chance.random() < 0.5:
                return self.names[name], name, name
            return self.names[name], alias, f"{name} AS {alias}"
        found = self.query(max(depth, 0))
        if chance.random() < 0.15:
            names = self.fresh(len(found.columns), apart=True)
            columns = tuple(Column(name, each.type) for name, each in zip(names, found.columns, strict=True))
            return Query(found.sql, columns, found.unique), alias, f"({found.sql}) AS {alias}({', '.join(names)})"
        return found, alias, f"({found.sql}) AS {alias}"

    # --- values

    def value(self, scope: Sequence[Column], unique: Sequence[int] | None) -> tuple[str, str]:
        """A value of one row."""
        chance = self.chance
        numbers = [each for each in scope if each.type in _NUMBERS]
        whole = [each.name for each in scope if each.type == "int"]
        texts = [each.name for each in scope if each.type == "text"]
        ways = [("1 + 2", "int")]
        if numbers:
            x, y = (chance.choice(numbers) for _ in range(2))
            both = "int" if x.type == y.type == "int" else "num"
            ways += [(f"{x.name} + {y.name}", both), (f"{x.name} - 2 * {y.name}", both), (f"ABS({x.name} - 5)", x.type)]
            ways += [(f"{x.name} / NULLIF({y.name}, 0)", "num"), (f"ROUND({x.name} / 3, 2)", "num")]
            ways += [(f"CASE WHEN {x.name} > 4 THEN {y.name} ELSE 0 END", y.type), (f"{x.name} > {y.name}", "bool")]
            ways += [(f"COALESCE({x.name}, 0)", x.type), (f"GREATEST({x.name}, 3)", x.type), (f"-{x.name}", x.type)]
            ways += [(f"{x.name} * 100.0 / 7", "num"), (f"{x.name} BETWEEN 2 AND {y.name}", "bool")]
        if whole:
            some = chance.choice(whole)
            ways += [(f"{some} // 2", "int"), (f"{some} % 3", "int"), (f"CAST({some} AS VARCHAR)", "text")]
            ways += [(f"{some} || ' rows'", "text"), (f"CAST({some} AS DOUBLE)", "num"), (f"ROUND({some}, -1)", "int")]
        if texts:
            some = chance.choice(texts)
            ways += [(f"UPPER({some})", "text"), (f"{some} || '-'", "text"), (f"{some} IN ('n', 'open')", "bool")]
            ways += [(f"CASE {some} WHEN 'n' THEN 1 WHEN 'open' THEN 2 ELSE 3 END", "int"), (f"LENGTH({some})", "int")]
        if self.names and chance.random() < 0.3:
            name = chance.choice(list(self.names))
            numbers = [each for each in self.names[name].columns if each.type in _NUMBERS]
            if numbers:
                inner = chance.choice(numbers)
                ways = [(f"(SELECT MAX({inner.name}) FROM {name})", inner.type)]
                ways += [(f"(SELECT SUM(z.{inner.name}) FROM {name} AS z)", inner.type)]
        return chance.choice(ways)

    def condition(self, scope: Sequence[Column], alias: str = "") -> str:
        """A condition on one row."""
        chance = self.chance
        if self.names and chance.random() < 0.3:
            name = chance.choice(list(self.names))
            inner = chance.choice(self.names[name].columns)
            fits = [each for each in scope if each.type == inner.type]
            if fits:
                outer = chance.choice(fits).name
                if chance.random() < 0.5:
                    return f"{outer} IN (SELECT {inner.name} FROM {name})"
                outer = outer if "." in outer or not alias else f"{alias}.{outer}"
                return f"EXISTS (SELECT 1 FROM {name} AS zz WHERE zz.{inner.name} > {outer})"
        for each in chance.sample(list(scope), len(scope)):
            if each.type == "text":
                return chance.choice(
                    (f"{each.name} <> 'n'", f"{each.name} IN ('n', 's', 'open')", f"{each.name} > 'e'")
                )
            if each.type in _NUMBERS:
                return chance.choice((f"{each.name} > 3", f"{each.name} <= 9.5", f"NOT {each.name} = 4"))
        return "1 = 1"

    def window(self, scope: Sequence[Column], unique: Sequence[int] | None, *, ranks: bool = False) -> tuple[str, str]:
        """A window whose values do not hang on the order of ties."""
        chance = self.chance
        numbers = [each for each in scope if each.type in _NUMBERS and "OVER" not in each.name]
        by = [each.name for each in scope if each.type in ("text", "bool")]
        partition = f"PARTITION BY {chance.choice(by)} " if by and chance.random() < 0.4 else ""
        some = self.terms([chance.choice(list(scope)).name])
        ways = [(f"{each}() OVER ({partition}ORDER BY {some})", "int") for each in ("RANK", "DENSE_RANK")]
        if ranks:
            return chance.choice(ways)
        ways += [(f"COUNT(*) OVER ({partition})", "int")]
        if numbers:
            x = chance.choice(numbers)
            ways += [(f"SUM({x.name}) OVER ({partition})", x.type), (f"{x.name} * 1.0 / SUM({x.name}) OVER ()", "num")]
            ways += [(f"SUM({x.name}) OVER ({partition}ORDER BY {some})", x.type)]
            ways += [(f"MAX({x.name}) OVER ({partition}) - {x.name}", x.type)]
            ways += [(f"AVG({x.name}) OVER ({partition})", "num"), (f"COUNT({x.name}) OVER ({partition})", "int")]
        if unique:
            order = self.terms([scope[at].name for at in unique])
            over = f"OVER ({partition}ORDER BY {order}"
            ways += [(f"ROW_NUMBER() {over})", "int"), (f"NTILE(2) {over})", "int"), (f"CUME_DIST() {over})", "num")]
            if numbers:
                x = chance.choice(numbers)
                ways += [(f"{each}({x.name}) {over})", x.type) for each in ("LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE")]
                ways += [
                    (f"{x.name} - LAG({x.name}, 1, 0) {over})", x.type),
                    (f"NTH_VALUE({x.name}, 2) {over})", x.type),
                ]
                frames = (
                    "UNBOUNDED PRECEDING AND CURRENT ROW",
                    "1 PRECEDING AND 1 FOLLOWING",
                    "2 PRECEDING AND 1 PRECEDING",
                )
                frame = chance.choice((*frames, "CURRENT ROW AND UNBOUNDED FOLLOWING"))
                ways += [(f"SUM({x.name}) {over} ROWS BETWEEN {frame})", x.type)]
                ways += [(f"SUM({x.name}) FILTER (WHERE {x.name} > 4) {over} ROWS BETWEEN {frame})", x.type)]
                ways += [(f"AVG({x.name}) {over} ROWS BETWEEN {frame} EXCLUDE CURRENT ROW)", "num")]
        return chance.choice(ways)

    def terms(self, names: Sequence[str]) -> str:
        """What stands in ORDER BY."""
        ends = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC")
        return ", ".join(f"{each}{self.chance.choice(ends)}" for each in names)

    # --- the end of a question

    def ended(self, query: Query) -> tuple[str, bool]:
        """The question with ORDER BY and LIMIT perhaps."""
        chance = self.chance
        if chance.random() < 0.5 or " OVER " in query.sql.rsplit("FROM", 1)[-1]:
            return query.sql, False
        places = chance.sample(range(len(query.columns)), len(query.columns))
        spelled = chance.random() < 0.5
        sets = any(each in query.sql for each in (" UNION ", " EXCEPT ", " INTERSECT "))
        terms = [query.columns[at].name if spelled and not sets else str(at + 1) for at in places]
        sql = f"{query.sql} ORDER BY {self.terms(terms)}"
        if chance.random() < 0.5:
            sql += f" LIMIT {chance.randint(1, 5)}" + (
                f" OFFSET {chance.randint(1, 2)}" if chance.random() < 0.3 else ""
            )
        return sql, True

    def fresh(self, count: int, *, apart: bool = False) -> list[str]:
        """Names, some of them those of columns of a table."""
        some = [each for each in _NAMES if not apart or each not in _STORED]
        return self.chance.sample([*some, *"abcdefgh", *(f"z{at}" for at in range(12))], count)

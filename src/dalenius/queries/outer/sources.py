"""Queries of the outer part, and what stands in their FROM: names, columns, and how they are written.

Each query is written up to three times: as it is asked; without what chooses and orders its rows at the end (`base`);
and over all copies of the releases at once (`all_copies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import Aggregate, Type, walk
from dalenius.queries.outer.cutting import column_name, column_of, table_named

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan

# Nobody can type them: no control character is in a question.
ROW, COPY, ID = "row\x01number", "copy\x01number", "row\x01id"


@dataclass(frozen=True)
class OuterColumn:
    """A column of a query.

    Attributes:
        name: As it is shown.
        exact: No noise is in it.
        origin: The release and the column that it is, where it is one unchanged.
        rank: It is a place in an order.
    """

    name: str
    exact: bool
    origin: tuple[int, int] | None = None
    rank: bool = False


@dataclass(frozen=True)
class OuterQuery:
    """A query of the outer part.

    Attributes:
        tree: What is run; its last column is `ID` where `identified`.
        columns: Those that are shown.
        identified: Whether rows can be told apart by exact things.
        base: Without what chooses and orders the rows at the end, with `ID`; None: rows cannot be told apart.
        at_once: The base over all copies of the releases, with the number of the copy behind `ID`; None where copies
            cannot be kept apart within one statement.
        copied: All of the query in that way, for queries that read it.
        rows_of: The release of which each row is one row, by its number; None: there is no such.
    """

    tree: Any
    columns: tuple[OuterColumn, ...]
    identified: bool
    base: Any = None
    at_once: Any = None
    copied: Any = None
    rows_of: int | None = None

    def within(self, commons: Sequence[tuple[str, OuterQuery]]) -> OuterQuery:
        """As a statement of its own, with the queries that it names before it."""
        plain = [(name, each.tree) for name, each in commons]
        copied = [(copies_of(name), each.copied) for name, each in commons if each.copied is not None]
        return replace(
            self,
            tree=_with(self.tree, plain),
            base=_with(self.base, plain),
            at_once=_with(self.at_once, copied),
        )

    @property
    def sql(self) -> str:
        """The statement that gives the answer."""
        return write(self.tree)


def write(tree: Any) -> str:
    """A statement, written anew from its tree."""
    return str(tree.sql(dialect="duckdb", comments=False))


@dataclass(frozen=True)
class Source:
    """What stands in FROM.

    Attributes:
        name: The table or query.
        alias: What it is called there.
        columns: Its columns.
        id: The column that tells its rows apart; None: none does. "": all of them together.
        spelled: What its columns are called where it is made, if otherwise.
        rows_of: As of `OuterQuery`.
        copies: What all of its copies are called; "": it has none, as no noise is in it. None: they are not at hand.
        release: Whether it is a release itself.
    """

    name: str
    alias: str
    columns: tuple[OuterColumn, ...]
    id: str | None
    spelled: tuple[str, ...] = ()
    rows_of: int | None = None
    copies: str | None = ""
    release: bool = False

    @classmethod
    def of_release(cls, name: str, number: int, plan: Plan) -> Source:
        """A release: its columns are those of the plan."""
        if any(each.expression.type is Type.LIST for each in plan.question.outputs):
            raise QuestionRefusedError(
                "A list of quantiles cannot be used further.",
                why="It is one cell, and nothing is computed with lists here.",
                fix="Ask for its values one by one: QUANTILE_CONT(x, 0.25), QUANTILE_CONT(x, 0.5).",
            )
        parts = [part for each in plan.question.outputs for part in walk(each.expression)]
        if any(isinstance(each, Aggregate) and each.kind == "mode" for each in parts):
            raise QuestionRefusedError(
                "MODE(x) cannot be used further.",
                why="It has no error that could be carried on.",
                fix="Count each value inside, GROUP BY x, and rank the counts: RANK() OVER (ORDER BY n DESC).",
            )
        exact = [
            not any(isinstance(part, Aggregate) for part in walk(each.expression)) for each in plan.question.outputs
        ]
        columns = tuple(OuterColumn(column_name(at), each, (number, at)) for at, each in enumerate(exact))
        return cls(name, name, columns, ROW, rows_of=number, copies=copies_of(name), release=True)

    @classmethod
    def of_query(cls, name: str, query: OuterQuery, names: Sequence[str]) -> Source:
        """A query that a WITH names."""
        id_, copies = ID if query.identified else None, None if query.copied is None else copies_of(name)
        found = cls(name, name, query.columns, id_, rows_of=query.rows_of, copies=copies)
        return found.named(name, names)

    @classmethod
    def of_public(cls, name: str, columns: Iterable[str]) -> Source:
        """A public table."""
        return cls(name, name, tuple(OuterColumn(each, exact=True) for each in columns), "")

    @classmethod
    def of_values(cls, alias: str, names: Sequence[str]) -> Source:
        """A list of constants."""
        return cls(alias, alias, tuple(OuterColumn(each, exact=True) for each in names), "")

    def named(self, alias: str, names: Sequence[str]) -> Source:
        """The same under another name, and with other names of its columns."""
        if len(names) > len(self.columns):
            raise QuestionRefusedError(
                f"{len(names)} names do not fit.", why=f"It has {len(self.columns)} columns.", fix="Correct it."
            )
        new = [*names, *(each.name for each in self.columns[len(names) :])]
        columns = tuple(replace(each, name=name) for each, name in zip(self.columns, new, strict=True))
        return replace(self, alias=alias, columns=columns, spelled=tuple(new) if names else self.spelled)

    def table(self) -> Any:
        """As it is written in FROM."""
        from sqlglot import exp

        found = table_named(self.name, self.alias)
        if self.spelled:
            # DuckDB gives names from the left; what is hidden stands last, and keeps its own
            found.args["alias"].set("columns", [exp.to_identifier(each, quoted=True) for each in self.spelled])
        return found

    def ids(self) -> Any:
        """What tells its rows apart, as an expression."""
        from sqlglot import exp

        return (
            exp.Column(this=exp.to_identifier(self.alias, quoted=True))
            if self.id == ""
            else column_of(self.alias, self.id or "")
        )


def copies_of(release: str) -> str:
    """What the table of all copies of a release is called."""
    return f"{release} copies"


def _with(tree: Any, queries: Sequence[tuple[str, Any]]) -> Any:
    from sqlglot import exp

    if tree is None or not queries:
        return tree
    found = tree.copy()
    ctes = [
        exp.CTE(this=each.copy(), alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        for name, each in queries
    ]
    found.set("with_", exp.With(expressions=ctes))
    return found

"""LEFT JOIN from public rows onto protected ones: `FROM regions r LEFT JOIN people p ON p.region = r.code`.

SQL keeps each row of the public side, also where nobody meets it, with NULL beside it. Such a row belongs to nobody,
and nothing of it may be counted. But groups by public columns are all answered anyway, whoever is in them: so where the
rows that were kept add nothing, the question means what the inner join means, and it is read as that (a relation whose
every row belongs to a unit: `relations`). Whatever would tell the two apart is refused, with what to type:

- An aggregate that counts a row of NULLs, as COUNT(*) does.
- A condition on the protected side in WHERE that rows of NULLs may pass; one that they never pass makes it an inner
  join in SQL too.
- One on the public side alone in ON, which in SQL leaves no row out; the inner join would have fewer groups.
- Keys of the protected side, which would be NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.expressions import (
    FALSE,
    NULL,
    TRUE,
    Aggregate,
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    number,
)
from dalenius.measuring.relations import Join, Open, Owned, Source, full
from dalenius.measuring.statistics import family_for
from dalenius.queries.rules.parse import as_written, place

if TYPE_CHECKING:
    from dalenius.queries.rules.nested import Nested

# Functions that say something of NULL; all others give NULL where an argument is.
_OF_NULL = frozenset({"is_null", "not", "and", "or", "case", "coalesce", "nullif", "least", "greatest", "grouping"})


@dataclass(frozen=True)
class Kept:
    """Rows of public tables that stay where no row of others meets them."""

    absent: frozenset[str]  # columns that are NULL there
    beside: frozenset[str]  # columns that may be
    public: str  # what the question calls the first public table
    people: str  # and the first protected one
    counted: str  # what is there in every row that meets somebody


def keep_public(reader: Nested) -> Kept | None:
    """Reads such a LEFT JOIN as an inner one; None: there is none, or somebody's rows stand before it."""
    joins = reader.joins
    if any(not each.left and not isinstance(each.source, Open) for each in joins):
        return None
    at = next((at for at, each in enumerate(joins) if each.left and not isinstance(each.source, Open)), None)
    if at is None:
        return None
    optional = [each.source for each in joins[at:] if each.left]
    public = next(each.source.called for each in joins if isinstance(each.source, Open))
    beside = frozenset(full(each, name) for each in optional for name in (*each.columns, *each.identities))
    people = [each for each in optional if not isinstance(each, Open)]
    absent = frozenset(full(each, name) for each in people for name in (*each.columns, *each.identities))
    on = [each for each in conjuncts(joins[at].on) if each != TRUE]
    joins[at], conditions = Join(joins[at].source), list(reader.conditions)
    reader.conditions += on
    if any(_without(each, absent) in (FALSE, NULL) for each in conditions):  # WHERE leaves such rows out again
        return None
    kept = Kept(absent, beside, public, _called(people[0]), _counted(people[0]))
    _check_rows(reader, kept, conditions, on)
    return kept


def check_kept(reader: Nested, kept: Kept, keys: Sequence[Expression], aggregates: Sequence[Aggregate]) -> None:
    """Refuses what a row of NULLs would change."""
    group: Any = reader.tree.args.get("group")
    if any(columns_of(key) & kept.beside for key in keys):
        raise QuestionRefusedError(
            f"GROUP BY holds a column of {kept.people}, which rows of {kept.public} without a match do not have.",
            why="Its groups would be NULL there, and a row without a key is in no group here.",
            fix=f"Group by columns of {kept.public} alone, or write JOIN in place of LEFT JOIN.",
            at=place(group, reader.text),
        )
    for each in aggregates:
        if not _adds_nothing(each, kept.absent):
            raise QuestionRefusedError(
                f"An aggregate counts rows of {kept.public} that nobody meets.",
                why="LEFT JOIN keeps them, and COUNT(*) counts 1 for each; they belong to nobody.",
                fix=f"Write COUNT({kept.counted}), aggregate columns of {kept.people}, or write JOIN in place of "
                "LEFT JOIN.",
                at=reader.places.get(each),
            )


def _check_rows(reader: Nested, kept: Kept, conditions: Sequence[Expression], on: Sequence[Expression]) -> None:
    tree: Any = reader.tree
    at = place(tree.args.get("from_") or tree.args.get("from"), reader.text)
    where = tree.args.get("where")
    if reader.matches or any(columns_of(each) & kept.beside for each in conditions):
        raise QuestionRefusedError(
            f"A condition on {kept.people} stands behind LEFT JOIN, in WHERE or in another join.",
            why=f"Rows of {kept.public} without a match may pass it, in which all of {kept.people} is NULL.",
            fix="Put it into ON, or write JOIN in place of LEFT JOIN.",
            at=at if where is None else place(where, reader.text),
        )
    if any(not columns_of(each) & kept.absent for each in on):
        raise QuestionRefusedError(
            f"A condition in ON is about {kept.public} alone.",
            why=f"LEFT JOIN keeps all rows of {kept.public}, whatever ON says of them.",
            fix="Put it into WHERE, which leaves them out, or write it as a condition of the aggregate: "
            "COUNT(x) FILTER (WHERE …).",
            at=at,
        )


def _called(source: Source) -> str:
    return as_written(source.called or source.table.policy.name) if isinstance(source, Owned) else "the subquery"


def _counted(source: Source) -> str:
    """How rows that meet somebody are counted."""
    if isinstance(source, Owned) and not source.table.policy.path:
        return f"{_called(source)}.{as_written(source.table.policy.unit[0])}"
    return "x"


# --- what comes of a row of NULLs


def _adds_nothing(aggregate: Aggregate, absent: frozenset[str]) -> bool:
    """Whether an aggregate is the same with rows in which these columns are NULL, and without them."""
    if aggregate.kind == "units":  # such a row has none
        return True
    if any(_without(each, absent) in (FALSE, NULL) for each in conjuncts(aggregate.where)):
        return True
    values = [_without(each, absent) for each in (aggregate.value, aggregate.other) if each is not None]
    adds = family_for(aggregate.kind).asked[aggregate.kind].adds
    return NULL in values or (adds and values == [number(0)])


def _without(expression: Expression, absent: frozenset[str]) -> Expression:
    """The expression where these columns are NULL: a constant, as far as that can be told."""
    if isinstance(expression, Column):
        return NULL if expression.name in absent else expression
    if not isinstance(expression, Call):
        return NULL if isinstance(expression, Literal) and expression.value is None else expression
    arguments = tuple(_without(each, absent) for each in expression.arguments)
    found = Call(expression.function, arguments, expression.type)
    match expression.function:
        case "is_null":
            return TRUE if arguments == (NULL,) else FALSE if isinstance(arguments[0], Literal) else found
        case "not":
            return {NULL: NULL, TRUE: FALSE, FALSE: TRUE}.get(arguments[0], found)  # type: ignore[arg-type]
        case "and" | "or" as function:
            end, other = (FALSE, TRUE) if function == "and" else (TRUE, FALSE)
            if end in arguments:
                return end
            known = all(each in (other, NULL) for each in arguments)
            return found if not known else NULL if NULL in arguments else other
        case "coalesce":
            there = [each for each in arguments if each != NULL]
            return NULL if not there else there[0] if isinstance(there[0], Literal) else found
        case "case":
            return _chosen(arguments, found)
        case function if function not in _OF_NULL and NULL in arguments:
            return NULL
    return found


def _chosen(arguments: Sequence[Expression], found: Expression) -> Expression:
    for condition, value in zip(arguments[:-1:2], arguments[1:-1:2], strict=True):
        if condition == TRUE:
            return value
        if condition not in (FALSE, NULL):
            return found
    return arguments[-1]

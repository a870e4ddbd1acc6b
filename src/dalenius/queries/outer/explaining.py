"""What a question with an outer part was understood to mean: what is asked, and what is computed from the release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dalenius.queries.explaining import Explanation, chosen_rows, explain_part, named, price_words, public_facts
from dalenius.queries.note_words import plain_notes
from dalenius.queries.outer.trees import sources_of
from dalenius.queries.rules.parse import in_sql, parse_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.queries.outer.asking import OuterPlanned
    from dalenius.queries.rules.price import Priced

_LONGEST = 300  # characters of one line of the question's own text
_CLAUSES = {"where": "WHERE", "group": "GROUP BY", "having": "HAVING"}  # of rows, where the SELECT itself is asked
_AFTER = {"qualify": "QUALIFY", "order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}


def explain_outer(found: OuterPlanned, question: str, prices: Sequence[Priced] = (), delta: float = 0.0) -> Explanation:
    """All parts that are asked, and then what is done with their releases, in the words that were typed."""
    plans = [each.plan for each in found.parts]
    own: list[Priced | None] = [*prices] or [None] * len(plans)
    columns = found.split.outer.columns
    after = [line for plan in plans for line in chosen_rows(plan)]
    after += _computed(parse_sql(question), found)
    return Explanation(
        columns=tuple(each.name for each in columns),
        parts=tuple(explain_part(plan, priced) for plan, priced in zip(plans, own, strict=True)),
        after=tuple(dict.fromkeys(after)),
        public=public_facts(plans, [each.name for each in found.publics]),
        price=price_words(plans, own[0], delta),
        notes=tuple(dict.fromkeys(note for plan in plans for note in plain_notes(plan, plan.notes))),
    )


def _computed(tree: Any, found: OuterPlanned) -> Iterator[str]:
    """What the outermost query does."""
    from sqlglot import exp

    while isinstance(tree, exp.Subquery):
        tree = tree.this
    with_ = tree.args.get("with_")
    for each in with_.expressions if with_ is not None else ():
        yield f"{each.alias} stands for {_text(each.this)}"
    if isinstance(tree, exp.SetOperation):
        yield f"{_kind(tree)} of {_count(tree)} SELECTs"
    else:
        yield from _items(tree, found)
        if not _is_asked(found):
            yield f"from {', '.join(_text(each) for each in sources_of(tree))}"
            yield from _clauses(tree, _CLAUSES)
        if tree.args.get("distinct"):
            yield "DISTINCT: equal rows are shown once"
    yield from _clauses(tree, _AFTER)


def _items(select: Any, found: OuterPlanned) -> Iterator[str]:
    """Columns that are not released as they are."""
    columns = found.split.outer.columns
    items = select.expressions
    for at, column in enumerate(columns):
        if column.origin is not None:
            continue
        if len(items) == len(columns):
            yield named(column.name, _text(items[at].unalias()))
        elif not column.exact:
            yield f"{column.name} is computed"


def _is_asked(found: OuterPlanned) -> bool:
    """Whether the outermost SELECT reads a release itself: its own WHERE and GROUP BY are asked then."""
    names = {each.name for each in found.split.inners}
    return all(each.name in names for each in sources_of(found.split.outer.tree))


def _clauses(tree: Any, names: dict[str, str]) -> Iterator[str]:
    for part in names:
        node = tree.args.get(part)
        if node is not None:
            yield _text(node)


def _kind(tree: Any) -> str:
    distinct = "" if tree.args.get("distinct") else " ALL"
    return f"{type(tree).__name__.upper()}{distinct}"


def _count(tree: Any) -> int:
    from sqlglot import exp

    return sum(_count(each) for each in (tree.this, tree.expression)) if isinstance(tree, exp.SetOperation) else 1


def _text(node: Any) -> str:
    """A part of the question in one line, as DuckDB writes it."""
    found = in_sql(node) or "…"
    return found if len(found) <= _LONGEST else f"{found[: _LONGEST - 1]}…"

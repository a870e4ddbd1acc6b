"""Names of the sources of a relation that do not depend on how the question is written.

A table that occurs twice is called "orders" and "orders 2" in the order of the text. Two questions that differ in that
order alone mean the same, so of all ways to give out these names the one is taken whose text comes first. The result
is the same for all of them, and the stored answer is found.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import TYPE_CHECKING

from dalenius.measuring.expressions import TRUE, Aggregate, Call, Column, Expression, written
from dalenius.measuring.relations import Join, Match, Open, Owned, PerUnit, Relation, Source, Stacked

if TYPE_CHECKING:
    from dalenius.measuring.plan import Question

MOST = 720  # ways that are tried; with more, the names stay as they are, and another wording is another question
_EITHER_WAY = frozenset({"and", "or", "eq", "ne", "add", "mul"})  # functions whose arguments have no order
_NUMBER = re.compile(r" \d+$")


def name_alike(question: Question, relation: Relation) -> tuple[Question, Relation] | None:
    """The question and its relation with names that do not depend on the wording; None: they are so already."""
    groups: dict[str, list[str]] = {}
    for each in relation.within():
        for source in each.sources:
            groups.setdefault(_NUMBER.sub("", source.name), []).append(source.name)
    several = [each for each in groups.values() if len(each) > 1]
    if not several or math.prod(math.factorial(len(each)) for each in several) > MOST:
        return None
    best = min(_ways(several), key=lambda way: _text(question, relation, way))
    if all(old == new for old, new in best.items()):
        return None
    change = _Renamed(best)
    return change.question(question), change.relation(relation)


def _ways(groups: Sequence[Sequence[str]]) -> Iterator[dict[str, str]]:
    """All ways to give the names of each group to its members."""
    for chosen in product(*(permutations(each) for each in groups)):
        yield {
            old: new for group, names in zip(groups, chosen, strict=True) for old, new in zip(group, names, strict=True)
        }


def _text(question: Question, relation: Relation, way: Mapping[str, str]) -> tuple[str, ...]:
    """What is compared; the order of outputs and HAVING, ORDER BY and LIMIT do not matter."""
    change = _Renamed(way)
    keys = [written(change.expression(each)) for each in question.keys]
    asked = sorted(written(change.expression(each)) for each in question.aggregates)
    return (change.relation(relation).written(), *keys, *asked, written(change.expression(question.where)))


class _Renamed:
    """Writes everything anew, with other names for the sources."""

    def __init__(self, way: Mapping[str, str]) -> None:
        self.way = way

    def question(self, question: Question) -> Question:
        """Its expressions; the table is made anew by whoever asks."""
        return replace(
            question,
            where=self.expression(question.where),
            keys=tuple(map(self.expression, question.keys)),
            outputs=tuple(replace(each, expression=self.expression(each.expression)) for each in question.outputs),
            having=self.expression(question.having),
            order=tuple(replace(each, expression=self.expression(each.expression)) for each in question.order),
            places={self._aggregate(each): at for each, at in question.places.items()},
        )

    def relation(self, relation: Relation) -> Relation:
        """A relation and all in it."""
        return Relation(
            tuple(Join(self.source(each.source), each.left, self.expression(each.on)) for each in relation.joins),
            self.expression(relation.where),
            tuple(Match(self.relation(each.relation), each.negated) for each in relation.matches),
        )

    def source(self, source: Source) -> Source:
        """A source under its new name."""
        name = self.way.get(source.name, source.name)
        match source:
            case Owned() | Open():
                return replace(source, name=name)
            case PerUnit():
                return replace(
                    source,
                    name=name,
                    relation=self.relation(source.relation),
                    keys=tuple(map(self.expression, source.keys)),
                    aggregates=tuple(map(self._aggregate, source.aggregates)),
                )
            case Stacked():
                parts = [(self.relation(one), tuple(map(self.expression, values))) for one, values in source.parts]
                return replace(source, name=name, parts=tuple(parts))

    def column(self, name: str) -> str:
        """A column's full name."""
        source, dot, short = name.partition(".")
        return f"{self.way.get(source, source)}{dot}{short}" if dot else name

    def expression(self, expression: Expression) -> Expression:
        """An expression; what has no order is put into that of the new names."""
        match expression:
            case Column(name=name):
                return replace(expression, name=self.column(name))
            case Aggregate():
                return self._aggregate(expression)
            case Call(function=function, arguments=arguments):
                found = tuple(map(self.expression, arguments))
                return replace(expression, arguments=_sorted(found) if function in _EITHER_WAY else found)
        return expression

    def _aggregate(self, aggregate: Aggregate) -> Aggregate:
        change: Callable[[Expression], Expression] = self.expression
        value = None if aggregate.value is None else change(aggregate.value)
        other = None if aggregate.other is None else change(aggregate.other)
        if value is not None and other is not None:
            value, other = _sorted((value, other))
        where = TRUE if aggregate.where == TRUE else change(aggregate.where)
        return replace(aggregate, value=value, other=other, where=where)


def _sorted(expressions: Sequence[Expression]) -> tuple[Expression, ...]:
    return tuple(sorted(expressions, key=written))

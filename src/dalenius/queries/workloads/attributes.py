"""What the questions of a workload tell rows apart by, and the classes of rows that follow. Never touches the data.

Questions name *atoms*: keys, and conditions of WHERE and FILTER. Atoms that read the same columns make one *attribute*:
then whatever one of them says of a row is independent of what the atoms of another attribute say. Every row is in
exactly one *class* of each attribute; in a class, each atom has one value. NULL is a value too: a row whose key is NULL
is in no group of that question, but other questions may count it.

Classes are found without looking at a row: from the values that a column can have where they are public, from the
constants that it is compared with where they are not, else as all combinations of what the atoms can be. There may be
classes that no row is in; there is never a row without a class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.canonical import call, plain
from dalenius.measuring.expressions import (
    FALSE,
    NULL,
    Column,
    Expression,
    Literal,
    Scalar,
    Type,
    columns_of,
    number,
    written,
)
from dalenius.measuring.function_values import arrow_type, column_values, sort_key, values_of
from dalenius.measuring.functions import TYPES, bounded, ranges_of
from dalenius.queries.workloads.comparisons import (
    ORDERED,
    constants_of,
    holds,
    is_reached,
    place_of,
    subjects_of,
)
from dalenius.tables.policy import Kind

if TYPE_CHECKING:
    from dalenius.measuring.function_values import Columns

MOST_TRIED = 2**17  # combinations of column values that are put into atoms
MOST_CLASSES = 2**17  # of one attribute
MOST_COMBINED = 2**12  # of these, where all combinations of what atoms can be are taken: it doubles with each condition
MOST_TOLD = 2**22  # values of atoms in all its classes
_RUNNING = frozenset({Type.DATE, Type.NUMBER})  # between two values of a column there are none but its own
_MOST_RUNS = 4
_SHORT, _MOST_SHORT = 4, 64  # the longest list that DuckDB makes no join of, and up to where lists are parted so

Values = tuple[Scalar, ...]


@dataclass(frozen=True)
class Attribute:
    """One attribute.

    Attributes:
        keys: What tells its classes apart, made total. A row has no class just where one of them is NULL: then no
            question counts it.
        classes: The values of these keys in each class.
        values: What each atom is in each class; None: NULL.
        whole: Whether every row has a class.
    """

    keys: tuple[Expression, ...]
    classes: tuple[Values, ...]
    values: Mapping[Expression, Values]
    whole: bool

    @property
    def size(self) -> int:
        """How many classes."""
        return len(self.classes)


# By keys, conditions, and whether every row has a class.
Found = dict[tuple[tuple[Expression, ...], tuple[Expression, ...], bool], Attribute]


@dataclass(frozen=True, slots=True)
class Atoms:
    """What one question groups by, and what it asks of rows: each of the conditions must hold."""

    keys: tuple[Expression, ...]
    conditions: tuple[Expression, ...]


def merge_conditions(asked: Sequence[Atoms]) -> list[Atoms]:
    """The same with one condition for each attribute: more than whether all of them hold need not be told apart."""
    parts = [frozenset(each) for each in components(_all(asked))]
    return [
        Atoms(
            one.keys,
            tuple(
                call("and", *(each for each in one.conditions if each in component))
                for component in parts
                if not component.isdisjoint(one.conditions)
            ),
        )
        for one in asked
    ]


def _all(asked: Sequence[Atoms]) -> set[Expression]:
    return {each for one in asked for each in (*one.keys, *one.conditions)}


def find_attributes(
    asked: Sequence[Atoms], columns: Columns, found_before: Found | None = None
) -> tuple[Attribute, ...]:
    """The attributes of all atoms, in an order that does not depend on that of the questions.

    Args:
        asked: The atoms of each question, made total.
        columns: Of the policy.
        found_before: Attributes by their atoms, for whoever looks for many that are alike: what is there is taken, and
            what is found is put there.

    Raises:
        QuestionRefusedError: There are too many classes.
    """
    keys = frozenset(each for one in asked for each in one.keys)
    before = {} if found_before is None else found_before
    found = []
    for component in components(_all(asked)):
        own = frozenset(component)
        # A question that names none of them counts rows of all classes: also those of which all others count none.
        whole = any(own.isdisjoint((*one.keys, *one.conditions)) for one in asked)
        parts = tuple(each for each in component if each in keys), tuple(each for each in component if each not in keys)
        if (*parts, whole) not in before:
            before[*parts, whole] = _Finding(*parts, columns, whole=whole).attribute()
        found.append(before[*parts, whole])
    return tuple(found)


def components(atoms: Iterable[Expression]) -> list[list[Expression]]:
    """Atoms by the columns that they share, in the order of their texts."""
    groups: list[tuple[set[str], list[Expression]]] = []
    for atom in sorted(atoms, key=written):
        read, own = set(columns_of(atom)), [atom]
        for other in [each for each in groups if each[0] & read]:
            groups.remove(other)
            read |= other[0]
            own = other[1] + own
        groups.append((read, own))
    return sorted((sorted(own, key=written) for _, own in groups), key=lambda own: written(own[0]))


class _Finding:
    """The way to one attribute's classes."""

    def __init__(
        self, keys: Sequence[Expression], conditions: Sequence[Expression], columns: Columns, *, whole: bool
    ) -> None:
        self.keys, self.conditions, self.columns, self.whole = keys, conditions, columns, whole
        self.atoms = [*keys, *conditions]
        self.names = sorted(frozenset().union(*map(columns_of, self.atoms)))

    def attribute(self) -> Attribute:
        ways = (self._compared, self._listed) if not self.keys else (self._listed, self._compared)
        found = ways[0]() or ways[1]() or self._combined()
        if found is None or found.size > MOST_CLASSES or found.size * len(self.atoms) > MOST_TOLD:
            raise self._too_many()
        return found

    def _too_many(self) -> QuestionRefusedError:
        return QuestionRefusedError(
            f"The questions tell rows apart by {', '.join(self.names)} in too many ways.",
            why=f"There may be {MOST_CLASSES:,} classes of rows, and fewer where conditions are many.",
            fix="Ask fewer different conditions at once, or group by coarser keys.",
        )

    def _counts(self, vector: Values) -> bool:
        """Whether one of its atoms lets a question count rows of such a class: a key has a value, a condition holds."""
        keys = len(self.keys)
        return any(each is not None for each in vector[:keys]) or any(vector[keys:])

    # --- by the values of columns

    def _listed(self) -> Attribute | None:
        """By all values that the columns can have, where they are public and few enough to be tried."""
        domains: list[list[Scalar]] = []
        for name in self.names:
            column = self.columns[name]
            values = column_values(column)
            if values is None or len(values) > MOST_TRIED:
                return None
            domains.append([*values, *([None] if column.default is None else [])])
        if not domains or math.prod(map(len, domains)) > MOST_TRIED:
            return None
        rows = self._tried(domains)
        if len(self.names) > 1:
            return self._told_by_atoms({tuple(row[len(self.names) :]) for row in rows})
        vectors: dict[Values, list[Scalar]] = {}
        at = {value: place for place, value in enumerate(domains[0])}
        for row in sorted(rows, key=lambda row: at[row[0]]):
            vectors.setdefault(tuple(row[1:]), []).append(row[0])
        kept = [(vector, values) for vector, values in vectors.items() if self.whole or self._counts(vector)]
        return self._told_by_column(kept, [each for each in domains[0] if each is not None])

    def _tried(self, domains: Sequence[Sequence[Scalar]]) -> list[Values]:
        """Each combination of values with what the atoms are for it, by the engine itself."""
        import pyarrow as pa

        from dalenius.measuring.engines.sources import reference

        kinds = [TYPES[self.columns[name].kind] for name in self.names]
        tables = [
            ((name,), pa.table({"v0": pa.array(list(values), arrow_type(kind))}))
            for name, kind, values in zip(self.names, kinds, domains, strict=True)
        ]
        integers = frozenset(name for name in self.names if self.columns[name].kind is Kind.INTEGER)
        own = [Column(name, kind) for name, kind in zip(self.names, kinds, strict=True)]
        asked = [*own, *self.keys, *map(_settled, self.conditions)]
        return [tuple(row) for row in reference().combinations(asked, tables, integers, ()).rows()]

    def _told_by_column(self, kept: Sequence[tuple[Values, list[Scalar]]], domain: Sequence[Scalar]) -> Attribute:
        """Classes of one column: itself where each value is a class, else the class's number."""
        name = self.names[0]
        column = Column(name, TYPES[self.columns[name].kind])
        values = {atom: tuple(vector[place] for vector, _ in kept) for place, atom in enumerate(self.atoms)}
        classes = [each for _, own in kept for each in own]
        if all(len(own) == 1 for _, own in kept) and set(domain) <= set(classes):
            keys, cells = _told_apart(column, classes)
            return Attribute(keys, cells, values, self.whole)
        cases: list[Expression] = []
        for place, (_, own) in enumerate(kept):
            cases += [_held(column, own, domain), number(place)]
        return Attribute((plain("case", *cases, NULL),), _numbers(len(kept)), values, self.whole)

    # --- by what they are compared with

    def _compared(self) -> Attribute | None:
        """By the constants that one expression is compared with: between two of them, all rows are alike."""
        subject = self._subject()
        if subject is None:
            return None
        constants = constants_of(self.conditions, subject)
        if constants is None:
            return None
        if self.keys:  # the subject itself, whose values are public
            listed = values_of(subject, self.columns)
            if listed is None:
                return None
            points: list[Scalar] = [*listed, None]
            self._check_told(len(points))
            truths = self._truths(subject, constants, [place_of(value, constants) for value in points])
            rows = [((value, *truth), value) for value, truth in zip(points, truths, strict=True)]
            chosen = [(vector, value) for vector, value in rows if self.whole or self._counts(vector)]
            keys, cells = _told_apart(subject, [value for _, value in chosen])
            values = {atom: tuple(vector[place] for vector, _ in chosen) for place, atom in enumerate(self.atoms)}
            return Attribute(keys, cells, values, self.whole)
        if subject.type in ORDERED:
            return self._between(subject, constants)
        return self._equal(subject, constants)

    def _subject(self) -> Expression | None:
        """The one expression that all atoms are about: a key, or what is compared with constants."""
        if self.keys:
            return self.keys[0] if len(self.keys) == 1 else None
        found = {part for each in self.conditions for part in subjects_of(each)}
        return found.pop() if len(found) == 1 else None

    def _between(self, subject: Expression, constants: Sequence[Scalar]) -> Attribute:
        """Before, at and after each constant, as far as the expression gets there; and where it is NULL."""
        reach = bounded(subject, ranges_of(self.columns)) if subject.type is Type.NUMBER else None
        whole = isinstance(subject, Column) and self.columns[subject.name].kind in {Kind.INTEGER, Kind.DATE}
        places = [at for at in range(2 * len(constants) + 1) if is_reached(at, constants, reach, whole=whole)]
        self._check_told(len(places))
        vectors: dict[Values, int] = {}
        runs: list[tuple[int, int]] = []  # the last place of each run, and its class
        *truths, absent = self._truths(subject, constants, [*places, place_of(None, constants)])
        for at, vector in zip(places, truths, strict=True):
            if not self.whole and not self._counts(vector):
                runs = _extended(runs, at, -1)
                continue
            runs = _extended(runs, at, vectors.setdefault(vector, len(vectors)))
        cases: list[Expression] = []
        if self.whole or self._counts(absent):
            cases += [call("is_null", subject), number(vectors.setdefault(absent, len(vectors)))]
        else:
            cases += [call("is_null", subject), NULL]
        for last, class_ in runs[:-1]:
            literal = Literal(constants[min(last, 2 * len(constants) - 1) // 2], subject.type)
            cases += [plain("le" if last % 2 else "lt", subject, literal), NULL if class_ < 0 else number(class_)]
        otherwise = NULL if not runs or runs[-1][1] < 0 else number(runs[-1][1])
        return self._told_by_case(cases, otherwise, list(vectors))

    def _truths(self, subject: Expression, constants: Sequence[Scalar], places: Sequence[int]) -> list[Values]:
        """At each place whether each condition holds: that changes at its own constants only."""
        import numpy as np

        asked, columns = np.array(places), []
        for each in self.conditions:
            own = constants_of([each], subject) or []
            ends = np.array([place_of(constant, constants) for constant in own], dtype=int)
            beside = np.searchsorted(ends, asked) + np.searchsorted(ends, asked, side="right")
            beside[asked > 2 * len(constants)] = 2 * len(own) + 1  # NULL
            columns.append(holds(each, own)[beside].tolist())
        return list(zip(*columns, strict=True)) if columns else [()] * len(places)

    def _check_told(self, places: int) -> None:
        if places * len(self.conditions) > MOST_TOLD:
            raise self._too_many()

    def _equal(self, subject: Expression, constants: Sequence[Scalar]) -> Attribute:
        """Each constant, everything else, and NULL."""
        vectors: dict[Values, int] = {}
        cases: list[Expression] = []
        kept: dict[Values, list[Scalar]] = {}
        self._check_told(len(constants) + 2)
        places = [0, *(place_of(each, constants) for each in (*constants, None))]
        other, *truths = self._truths(subject, constants, places)
        for value, vector in zip((*constants, None), truths, strict=True):
            kept.setdefault(vector, []).append(value)
        for vector, own in kept.items():
            told = self.whole or self._counts(vector)
            class_: Expression = number(vectors.setdefault(vector, len(vectors))) if told else NULL
            cases += [_among(subject, own), class_]
        told = self.whole or self._counts(other)
        otherwise: Expression = number(vectors.setdefault(other, len(vectors))) if told else NULL
        return self._told_by_case(cases, otherwise, list(vectors))

    def _told_by_case(self, cases: Sequence[Expression], otherwise: Expression, vectors: Sequence[Values]) -> Attribute:
        values = {atom: tuple(vector[place] for vector in vectors) for place, atom in enumerate(self.conditions)}
        key = call("case", *cases, otherwise)
        if key.type is Type.NOTHING:  # no row can be in any class
            key = plain("case", FALSE, number(0), NULL)
        return Attribute((key,), _numbers(len(vectors)), values, self.whole)

    # --- by all that atoms can be

    def _combined(self) -> Attribute | None:
        """All combinations of what the atoms can be: more than there are, where they depend on one another."""
        domains: list[list[Scalar]] = []
        for each in self.keys:
            values = values_of(each, self.columns)
            if values is None:
                return None
            domains.append([*values, None])
        domains += [[False, True]] * len(self.conditions)
        if math.prod(map(len, domains)) > MOST_COMBINED:
            return None
        return self._told_by_atoms(set(product(*domains)))

    def _told_by_atoms(self, vectors: Iterable[Values]) -> Attribute:
        """Classes whose keys are the atoms themselves; all of them, so that none of these is NULL."""
        kept = sorted(vectors, key=lambda each: tuple(map(_absent_last, each)))
        keys: list[Expression] = []
        columns: list[Sequence[Scalar]] = []
        for place, atom in enumerate(self.atoms):
            own = [each[place] for each in kept]
            if place >= len(self.keys):
                keys.append(_settled(atom))
                columns.append(own)
                continue
            told, cells = _told_apart(atom, own)
            keys += told
            columns += zip(*cells, strict=True) if cells else [() for _ in told]
        values = {atom: tuple(each[place] for each in kept) for place, atom in enumerate(self.atoms)}
        return Attribute(tuple(keys), tuple(zip(*columns, strict=True)), values, True)


def _settled(condition: Expression) -> Expression:
    """A condition that is never NULL: where it is not true, a row does not count."""
    return plain("coalesce", condition, FALSE)


def _told_apart(key: Expression, values: Sequence[Scalar]) -> tuple[tuple[Expression, ...], tuple[Values, ...]]:
    """Keys, and their values, that tell the values of one key apart where NULL is one of them.

    Where it is, a second key says so, and the first has any value in its stead.
    """
    if None not in values:
        return (key,), tuple((each,) for each in values)
    present = [each for each in values if each is not None]
    if not present:
        return (plain("is_null", key),), ((True,),) * len(values)
    stand_in = present[0]
    keys = plain("coalesce", key, Literal(stand_in, key.type)), plain("is_null", key)
    return keys, tuple((stand_in, True) if each is None else (each, False) for each in values)


def _held(column: Column, values: Sequence[Scalar], domain: Sequence[Scalar]) -> Expression:
    """That a column has one of some values, all that it can have being known: days and whole numbers by runs."""
    if column.type not in _RUNNING:
        return _among(column, values)
    places = {value: at for at, value in enumerate(sorted(domain, key=sort_key))}
    runs: list[list[Scalar]] = []
    for value in sorted((each for each in values if each is not None), key=sort_key):
        if runs and places[runs[-1][-1]] + 1 == places[value]:
            runs[-1].append(value)
        else:
            runs.append([value])
    if len(runs) > _MOST_RUNS:
        return _among(column, values)
    parts = [_between(column, run[0], run[-1]) for run in runs]
    parts += [plain("is_null", column)] if None in values else []
    return parts[0] if len(parts) == 1 else plain("or", *parts)


def _between(column: Column, first: Scalar, last: Scalar) -> Expression:
    ends = Literal(first, column.type), Literal(last, column.type)
    if first == last:
        return plain("eq", column, ends[0])
    return plain("and", plain("le", ends[0], column), plain("le", column, ends[1]))


def _among(subject: Expression, values: Sequence[Scalar]) -> Expression:
    """That an expression has one of some values; NULL may be one of them.

    Lists are short where there are few values: of each longer one DuckDB makes a join, and of a hundred classes a
    hundred of them, which takes it seconds to plan and run, however few rows there are.
    """
    literals = [Literal(each, subject.type) for each in values if each is not None]
    parts = [plain("is_null", subject)] if None in values else []
    step = _SHORT if len(literals) <= _MOST_SHORT else len(literals)
    for at in range(0, len(literals), step):
        some = literals[at : at + step]
        parts.append(plain("eq", subject, some[0]) if len(some) == 1 else plain("in", subject, *some))
    return parts[0] if len(parts) == 1 else plain("or", *parts)


def _numbers(classes: int) -> tuple[Values, ...]:
    return tuple((float(each),) for each in range(classes))


def _absent_last(value: Any) -> tuple[Any, ...]:
    return (1,) if value is None else (0, *sort_key(value))


def _extended(runs: list[tuple[int, int]], at: int, class_: int) -> list[tuple[int, int]]:
    if runs and runs[-1][1] == class_:
        return [*runs[:-1], (at, class_)]
    return [*runs, (at, class_)]

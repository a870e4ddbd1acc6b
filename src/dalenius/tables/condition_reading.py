"""Conditions from their text. Whatever is not one is refused with the place and what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from fractions import Fraction

from dalenius.errors import InputError, Place, UnknownColumnError
from dalenius.tables.conditions import (
    MIRRORED,
    Absent,
    Among,
    Columns,
    Compare,
    Condition,
    Either,
    Every,
    Negated,
    Types,
)
from dalenius.tables.mistakes import nearest
from dalenius.tables.policy import NUMERIC, TIMES, Kind, Value

LONGEST, DEEPEST, MOST_VALUES = 20_000, 50, 1_000
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>\"(?:[^\"]|\"\")*\")|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign><=|>=|<>|!=|==|[=<>(),+\-])|(?P<other>\S))"
)
_CALLED = {
    Kind.INTEGER: "whole numbers",
    Kind.NUMBER: "numbers",
    Kind.BOOLEAN: "true or false",
    Kind.CATEGORY: "text",
    Kind.TEXT: "text",
    Kind.DATE: "dates",
    Kind.DATETIME: "dates with a time",
}
_KEYWORDS = {"AND", "OR", "NOT", "IN", "IS", "NULL", "BETWEEN", "TRUE", "FALSE", "LIKE", "DATE", "TIMESTAMP"}
_GRAMMAR = (
    "Compare columns with constants or with one another: =, <>, <, <=, >, >=, BETWEEN, IN, IS NULL, AND, OR, NOT."
)


def read_condition(text: str, types: Types) -> Condition:
    """A condition on these columns.

    >>> read_condition("age >= 60 AND sex = 'f'", {"age": Kind.INTEGER, "sex": Kind.CATEGORY}).parts[0]
    Compare(column='age', op='>=', value=60)
    """
    if len(text) > LONGEST:
        raise InputError("The condition is too long.", why=f"It may have {LONGEST:,} letters.", fix="Say less at once.")
    reader = _Reader(text, types)
    found = reader.either(0)
    if reader.token.kind != "end":
        raise reader.refused(f"Syntax error near {reader.token.text}.", _GRAMMAR)
    return found


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int

    @property
    def word(self) -> str:
        """In capitals, where it stands without quotes."""
        return self.text.upper() if self.kind == "word" else ""


class _Reader:
    """From left to right, one token ahead."""

    def __init__(self, text: str, types: Types) -> None:
        self.text, self.types, self.at = text, types, 0
        self.names = {name.lower(): name for name in types}
        self.token = self._next()

    # --- grammar

    def either(self, depth: int) -> Condition:
        parts = [self._every(depth)]
        while self._take("OR"):
            parts.append(self._every(depth))
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _every(self, depth: int) -> Condition:
        parts = [self._one(depth)]
        while self._take("AND"):
            parts.append(self._one(depth))
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def _one(self, depth: int) -> Condition:
        if depth > DEEPEST:
            raise self.refused(
                "The condition is nested too deep.", f"Use at most {DEEPEST} parentheses within one another."
            )
        if self._take("NOT"):
            return Negated(self._one(depth + 1))
        if self._sign("("):
            found = self.either(depth + 1)
            if not self._sign(")"):
                raise self.refused("A parenthesis is not closed.", "Write ).")
            return found
        return self._comparison()

    def _comparison(self) -> Condition:
        if self._is_constant():  # 60 <= age
            start, constant = self.token, self._raw()
            op, name = self._operator(), self._column()
            return self._compare(name, MIRRORED[op], self._typed(constant, name, start))
        name = self._column()
        if self._take("IS"):
            negated = self._take("NOT")
            if not self._take("NULL"):
                raise self.refused(
                    f"Syntax error near {self.token.text}.", f"Write {name} IS NULL, or {name} IS NOT NULL."
                )
            return Absent(name, not negated)
        negated = self._take("NOT")
        if self._take("IN"):
            return Among(name, self._list(name), not negated)
        if self._take("BETWEEN"):
            low = self._compare(name, ">=", self._constant(name))
            if not self._take("AND"):
                raise self.refused("BETWEEN has no upper end.", f"Write {name} BETWEEN 18 AND 65.")
            found = Every((low, self._compare(name, "<=", self._constant(name))))
            return Negated(found) if negated else found
        if negated or self.token.word == "LIKE":
            raise self.refused(f"Syntax error near {self.token.text}.", _GRAMMAR)
        if self.token.kind == "sign" and self.token.text in {"=", "==", "<>", "!=", "<", "<=", ">", ">="}:
            op = self._operator()
            if self._is_constant():
                return self._compare(name, op, self._constant(name))
            if self.token.word == "NULL":
                raise self.refused("Nothing is equal to NULL.", f"Write {name} IS NULL.")
            return self._columns(name, op, self._column())
        if self.types[name] is Kind.BOOLEAN:
            return Compare(name, "=", True)
        raise self.refused(f"Column {name!r} stands alone.", f"Compare it: {name} = …")

    def _compare(self, name: str, op: str, value: Value) -> Condition:
        self._check_order(name, op)
        return Compare(name, op, value)

    def _columns(self, first: str, op: str, second: str) -> Condition:
        kinds = {self.types[first], self.types[second]}
        alike = len(kinds) == 1 or kinds <= NUMERIC or kinds <= {Kind.CATEGORY, Kind.TEXT} or kinds <= TIMES
        if not alike or first == second:
            raise self.refused(
                f"{first!r} and {second!r} cannot be compared.",
                "Compare two different columns of numbers, of times or of texts.",
            )
        self._check_order(first, op)
        return Columns(first, op, second)

    def _check_order(self, name: str, op: str) -> None:
        if op not in {"=", "<>"} and self.types[name] not in NUMERIC | TIMES:
            raise self.refused(
                f"Column {name!r} has no order.", f"It holds {_CALLED[self.types[name]]}: use =, <> or IN."
            )

    # --- columns and constants

    def _column(self) -> str:
        token = self.token
        if token.kind == "quoted":
            name = token.text[1:-1].replace('""', '"')
        elif token.kind == "word" and token.word not in _KEYWORDS - {"DATE", "TIMESTAMP"}:
            name = token.text
        elif token.kind == "end":
            raise self.refused("The condition ends too early.", _GRAMMAR)
        else:
            raise self.refused(f"Syntax error near {token.text}.", _GRAMMAR)
        found = self.names.get(name.lower())
        if found is None:
            meant = nearest(name, list(self.types))
            raise UnknownColumnError(
                f"There is no column {name!r} here.",
                why="A condition speaks of columns that are modelled.",
                fix=f"Did you mean {meant!r}?" if meant else f"Take some of {', '.join(self.types)}.",
                at=self._place(token),
            )
        self.token = self._next()
        if self._sign("("):
            raise self.refused(f"{name}(…) is not computed here.", _GRAMMAR)
        return found

    def _list(self, name: str) -> tuple[Value, ...]:
        if not self._sign("("):
            raise self.refused("IN has no list.", f"Write {name} IN (…, …).")
        found = [self._constant(name)]
        while self._sign(","):
            found.append(self._constant(name))
        if not self._sign(")") or len(found) > MOST_VALUES:
            raise self.refused("The list does not end.", f"Put at most {MOST_VALUES:,} constants in parentheses.")
        return tuple(found)

    def _is_constant(self) -> bool:
        token = self.token
        if token.word in {"DATE", "TIMESTAMP"}:  # a column may be called so
            return self._ahead().kind == "text"
        return token.kind in {"text", "number"} or token.word in {"TRUE", "FALSE"} or token.text in {"-", "+"}

    def _constant(self, name: str) -> Value:
        start = self.token
        if not self._is_constant():
            raise self.refused(f"Syntax error near {start.text or 'the end'}.", "A constant must stand here.")
        return self._typed(self._raw(), name, start)

    def _raw(self) -> str | Decimal | bool:
        """A text, a number or a truth value, whatever the column holds."""
        token = self.token
        self.token = self._next()
        if token.word in {"TRUE", "FALSE"}:
            return token.word == "TRUE"
        if token.word in {"DATE", "TIMESTAMP"}:
            token, self.token = self.token, self._next()
        if token.kind == "text":
            return token.text[1:-1].replace("''", "'")
        negative = token.text == "-"
        if token.kind == "sign":
            token, self.token = self.token, self._next()
        if token.kind != "number":
            raise self.refused(f"Syntax error near {token.text or 'the end'}.", "A number must stand here.")
        return -Decimal(token.text) if negative else Decimal(token.text)

    def _typed(self, raw: str | Decimal | bool, name: str, start: _Token) -> Value:
        """The constant as the column's type has it."""
        kind = self.types[name]
        match raw:
            case bool() if kind is Kind.BOOLEAN:
                return raw
            case Decimal() if kind in NUMERIC:
                exact = Fraction(raw)
                return int(exact) if exact.denominator == 1 else exact
            case str() if kind in {Kind.CATEGORY, Kind.TEXT}:
                return raw
            case str() if kind in TIMES:
                try:
                    moment = datetime.fromisoformat(raw)
                except ValueError:
                    moment = None
                if moment is not None and moment.tzinfo is None:
                    if kind is Kind.DATETIME:
                        return moment
                    if moment.time() == time.min:
                        return moment.date()
        example = {Kind.DATE: "'2025-01-31'", Kind.DATETIME: "'2025-01-31T12:00:00'", Kind.BOOLEAN: "TRUE"}
        number = f"'{raw}'" if isinstance(raw, Decimal) else "'…'"
        fits = example.get(kind, "60" if kind in NUMERIC else number)
        raise self.refused(f"Column {name!r} holds {_CALLED[kind]}.", f"Write {name} = {fits}.", start)

    # --- tokens

    def _operator(self) -> str:
        token = self.token
        if token.kind != "sign" or token.text in {"(", ")", ",", "+", "-"}:
            raise self.refused(f"Syntax error near {token.text or 'the end'}.", _GRAMMAR)
        self.token = self._next()
        return {"!=": "<>", "==": "="}.get(token.text, token.text)

    def _take(self, word: str) -> bool:
        if self.token.word != word:
            return False
        self.token = self._next()
        return True

    def _sign(self, sign: str) -> bool:
        if self.token.kind != "sign" or self.token.text != sign:
            return False
        self.token = self._next()
        return True

    def _next(self) -> _Token:
        token, self.at = self._read(self.at)
        return token

    def _ahead(self) -> _Token:
        return self._read(self.at)[0]

    def _read(self, at: int) -> tuple[_Token, int]:
        found = _TOKEN.match(self.text, at)
        if found is None:
            return _Token("end", "", len(self.text)), at
        kind = str(found.lastgroup)
        return _Token(kind, found[kind], found.start(kind)), found.end()

    def _place(self, token: _Token) -> Place:
        before = self.text[: token.start]
        return Place(before.count("\n") + 1, token.start - (before.rfind("\n") + 1) + 1)

    def refused(self, what: str, fix: str, token: _Token | None = None) -> InputError:
        """The error at a token."""
        why = "A condition is on columns that are modelled, and is checked for every row that is drawn."
        return InputError(what, why=why, fix=fix, at=self._place(token or self.token))

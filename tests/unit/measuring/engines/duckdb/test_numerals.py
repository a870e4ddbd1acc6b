"""Texts that are read as numbers: those that DuckDB's parser is quick with, as it reads them; all others not at all."""

from __future__ import annotations

import math
import random
import struct
from fractions import Fraction

import duckdb
import pytest

from dalenius.measuring.canonical import call
from dalenius.measuring.engines.duckdb.rendering import Renderer
from dalenius.measuring.engines.duckdb.statements.source import cast
from dalenius.measuring.expressions import Column, Expression, Type, number, text
from dalenius.measuring.work import LONGEST_NUMBER, LONGEST_TIME, SURE_DIGITS, Meter, has_few_digits
from dalenius.tables.policy import Column as Spec
from dalenius.tables.policy import Kind

X = Column("x", Type.TEXT)
WAYS = {
    "a column": Renderer({"x": "x"}, lengths={"x": 200}).sql(call("to_number", X)),
    "an expression": Renderer({"x": "x"}, lengths={}).sql(call("to_number", call("coalesce", X, text("1" * 20)))),
    "a file": cast(Spec("x", Kind.NUMBER), {"x": "VARCHAR"}),
}
SAME = (
    *("12", "-3.5", " 1e6 ", "0.1", "+7", "1_000", "1E-5", "inf", "-nan", "", "x", "2021-05-06", "1.2.3"),
    *("5e-324", "2.2250738585072014e-308", "-2.2250738585072014e-308", "-1.7976931348623157e+308"),
    *("1.234567890123456789e+00", "-1.234567890123456789E-300", "9223372036854775807", "0.00012345678901234567"),
    *("0.3333333333333333333333333333", "12345678901234567890123456789012", "-0.00000000000000000000000000001"),
)
ABSENT = (
    "2.470328229206232720882843e-324",
    "12345678901234567890e288",
    "1.2345678901234567890e288",
    "-1.2345678901234567890e288",
    "--1234567890123456789.e28",
    "0" * 20 + "1E5",
    "1" * (LONGEST_NUMBER + 1),
    "1" + " " * LONGEST_NUMBER,
)


def read(sql: str, texts: list[str]) -> list[float | None]:
    with duckdb.connect() as connection:
        listed = connection.execute(f"SELECT {sql} FROM (SELECT unnest($texts) AS x)", {"texts": texts}).fetchall()
    return [each for (each,) in listed]


@pytest.mark.parametrize("way", WAYS)
def test_ordinary_texts_are_read_as_the_engine_reads_them(way: str) -> None:
    assert list(map(str, read(WAYS[way], list(SAME)))) == list(map(str, read("TRY_CAST(x AS DOUBLE)", list(SAME))))


@pytest.mark.parametrize("way", WAYS)
def test_every_double_is_read_as_it_is_printed(way: str) -> None:
    chance = random.Random(7)
    found = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(5_000)]
    found += [chance.uniform(-1, 1) * 10 ** chance.randint(-6, 18) for _ in range(5_000)]
    found = [each for each in found if not math.isnan(each)]
    assert read(WAYS[way], list(map(repr, found))) == found


@pytest.mark.parametrize("way", WAYS)
def test_what_the_parser_could_take_long_over_is_absent(way: str) -> None:
    assert read(WAYS[way], list(ABSENT)) == [None] * len(ABSENT)


@pytest.mark.parametrize("way", WAYS)
def test_no_text_with_many_digits_before_an_exponent_gets_through(way: str) -> None:
    """Truncated middles of doubles, written in every way that moves the point, the sign and the exponent."""
    chance, texts = random.Random(8), []
    for _ in range(400):
        middle = (2 * chance.randrange(2**52, 2**53) + 1) * Fraction(2) ** chance.randint(-1074, 960)
        size = len(str(int(middle))) if middle >= 1 else 1 - len(str(int(1 / middle)))
        for digits in (SURE_DIGITS + 1, SURE_DIGITS + 3):
            power = size - digits
            shown = str(int(middle / Fraction(10) ** power))[:24]
            for at in (0, 1, 2, 9, len(shown)):
                for before, sign, mark in (("", "", "e"), ("", "-", "E"), (" ", "+", "e"), ("", "", "e+")):
                    texts.append(f"{before}{sign}{shown[:at]}.{shown[at:]}{mark}{abs(power)}")
                    texts.append(f"{before}{sign}{shown}{mark}{abs(power)}.")
                    texts.append(f"{before}{sign}{shown}{mark}{abs(power)}")
    assert all(sum(map(str.isdigit, each.lower().split("e")[0])) > SURE_DIGITS for each in texts)
    assert set(read(WAYS[way], texts)) == {None}


SHORT = call("left", X, number(SURE_DIGITS))


@pytest.mark.parametrize(
    ("inner", "quick"),
    [
        (X, False),
        (SHORT, True),
        (call("left", X, number(SURE_DIGITS + 1)), False),
        (call("substring", X, number(3)), False),
        (call("substring", X, number(3), number(5)), True),
        (call("case", call("eq", X, text("b")), text("1" * 31), text("1")), False),
        (call("case", call("eq", X, text("b")), SHORT, text("1")), True),
        (call("to_text", Column("n", Type.NUMBER)), True),
        (call("trim", SHORT), False),
    ],
)
def test_texts_that_are_surely_short_are_cast_as_they_are(inner: Expression, quick: bool) -> None:
    shown = Renderer({"x": "x", "n": "n"}, lengths={}).sql(call("to_number", inner))
    assert has_few_digits(inner) is quick is ("strlen(" not in shown)
    assert Meter({})(call("to_number", inner)).worst >= (250 if quick else Meter({})(inner).worst + 250)


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.DATETIME, Kind.BOOLEAN])
def test_dates_and_truth_values_that_are_too_long_are_absent(kind: Kind) -> None:
    shown = cast(Spec("x", kind), {"x": "VARCHAR"})
    value = "true" if kind is Kind.BOOLEAN else "2021-05-06"
    padded = [value, value + " " * (LONGEST_TIME + 1)]
    assert [each is None for each in read(shown, padded)] == [False, True]


def test_casts_made_while_reading_count_and_only_those() -> None:
    columns = {"n": Spec("n", Kind.NUMBER), "d": Spec("d", Kind.DATE), "c": Spec("c", Kind.CATEGORY)}
    assert Meter(columns, texts=frozenset()).read(columns).worst == 0
    assert Meter(columns, texts=frozenset({"n"})).read(columns).worst >= 1_000
    assert Meter(columns).read(columns).worst > Meter(columns, texts=frozenset({"n"})).read(columns).worst

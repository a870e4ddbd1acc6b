"""Regular expressions: what is read here DuckDB reads too, and no text makes it slow."""

from __future__ import annotations

import random

import duckdb
import pytest

from dalenius.measuring.patterns import MOST_STATES, PatternError, check_pattern

READ = [
    *(
        "",
        "a",
        "gift|card",
        "^a$",
        "a|",
        "(|a)*",
        "(?:ab)?c+",
        "x{2,}y",
        "x{2,5}",
        "x{3}",
        "é|😀",
        "^$",
        "(a)(b)",
        "a{50}",
    ),
    *("[a-z]", "[^a-z]", "[abc-]", "[-a]", "[\\w.-]+", "[\\d]", "[ä-ö]", "\\d\\D\\w\\W\\s\\S", "\\.\\*\\\\\\-\\_", "."),
    *("(?i)Ann", "(?i)[a-c]x", "(x+x+)+y", "(a?){9}a{9}", "^\\w+@\\w+\\.(com|org)$", "a.{4}b", " ", "a'b", "%", "a&b;"),
]
REFUSED = [
    *(
        "(",
        ")",
        "a)",
        "[",
        "[]",
        "[a",
        "[z-a]",
        "[a-\\d]",
        "[\\W]",
        "[^",
        "a**",
        "a+?",
        "*a",
        "^*",
        "$+",
        "a{",
        "a{2",
        "a{3,2}",
    ),
    *(
        "a{0}",
        "a{51}",
        "{2}",
        "\\q",
        "\\",
        "\\1",
        "(?=a)",
        "(?P<n>a)",
        "(?s)a",
        "a(?i)b",
        "\\pL",
        "\\b",
        "[[:alpha:]]",
        "]",
    ),
]
SLOW = ["a.{15}b", "(a|b)*a(a|b){8}c", "[^q]*a[^q]{20}z", "(((a{50}){50}){50})", "(.a){20}.{20}"]


@pytest.mark.parametrize("pattern", READ)
def test_what_is_read_here_duckdb_reads(pattern):
    check_pattern(pattern)
    assert duckdb.execute("SELECT regexp_matches('ab', $1)", [pattern]).fetchall() in ([(True,)], [(False,)])


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_read_is_refused_with_a_reason(pattern):
    with pytest.raises(PatternError, match=r"\.$"):
        check_pattern(pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_texts_could_make_slow_is_refused(pattern):
    with pytest.raises(PatternError, match=f"{MOST_STATES} states|written out"):
        check_pattern(pattern)


def test_whatever_signs_a_pattern_has_it_is_refused_or_duckdb_reads_it():
    chance, read = random.Random(5), 0
    for _ in range(3000):
        pattern = "".join(chance.choices("ab0é.^$*+?()[]{}|\\-,2dwsDW:i_ ", k=chance.randint(1, 9)))
        try:
            check_pattern(pattern)
        except PatternError:
            continue
        read += 1
        duckdb.execute("SELECT regexp_matches('ab 0', $1)", [pattern]).fetchone()
    assert read > 300

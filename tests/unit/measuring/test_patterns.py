"""Regular expressions: what is read here means what DuckDB takes it for, and no text makes it slow."""

from __future__ import annotations

import contextlib
import random
import time

import duckdb
import pytest

from dalenius.measuring.automata import check_states
from dalenius.measuring.pattern_reading import read_pattern
from dalenius.measuring.patterns import PatternError, spelled

READ = [
    *(
        "a",
        "gift|card",
        "^a$",
        "(?:ab)?c+",
        "x{2,}y",
        "x{2,5}$",
        "x{3}",
        "é|😀",
        "(a)(b)",
        "^a{50}",
        "a*?b",
        "^ab|c$|b",
    ),
    *("[a-z]", "[^a-z]", "[abc-]", "[-a]", "[\\w.-]+", "[\\d]", "[ä-ö]", "\\d\\D\\w\\W\\s\\S", "\\.\\*\\\\\\-\\_", "."),
    *(
        "(?i)Ann",
        "(?i)[a-c]x",
        "(?i)[^k]",
        "(?i)\\W",
        "(?i)s",
        "(x{2})+y",
        "(ax+)+y",
        "^\\w+@\\w+\\.(com|org)$",
        "a.{3}b",
        "a'b",
    ),
    *("[[:alpha:]]+[[:digit:]]", "\\t|\\n", "(a|b)*a(a|b){3}c$", "^.$", "[一-龥]{2}", "a+a*a{2}", "b.*", "^[^ä]+$"),
    *("[\\s\\S]a", "^[\\d\\D]{2}$", "^[^a]b", "^(a|b)+c", "^(ab|a.c)x|^b"),
]
REFUSED = [
    *("", "(", ")", "a)", "[", "[]", "[a", "[z-a]", "[a-\\d]", "[^", "a**", "*a", "^*", "$+", "a{", "a{2", "a{3,2}"),
    *("a{0}", "a{51}", "a{01}", "a{,3}", "{2}", "\\q", "\\", "\\1", "(?=a)", "(?P<n>a)", "(?s)a", "a(?i)b", "\\pL"),
    *(
        "\\b",
        "]",
        "a|",
        "(|a)",
        "(a*)*",
        "[]]",
        "(x+)+",
        "(^a)",
        "a$b",
        "(?i)ä",
        "[[:foo:]]",
        "\\x41",
        "a{2}{3}",
        "[^\\x{0}]",
    ),
]
SLOW = ["a.{15}b", "(a|b)*a(a|b){8}c$", "[^q]*a[^q]{20}z$", "(a{50}b){50}", "(.a){20}.{20}", "^(a|b)*a.{9}$"]
SLOW += ["^(.*a.{15}c|.)", "^(?:.*a.{15}c|[ab])", "^.|^.*a.{15}c", "^(.*a.{15}c)?(a|b)"]  # found at once, and read on
LETTERS = "abckxKſKÄäé一龥😀 09_-.@\n]"


def texts(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices(chance.sample(LETTERS, 4), k=chance.randint(0, 9))) for _ in range(count)]


def agree(pattern: str, full: bool, given: list[str]) -> None:
    """What is written anew matches the same texts as what was typed."""
    patterns = read_pattern(pattern, full=full)
    for each in patterns:
        check_states(each)
    function = "regexp_full_match" if full else "regexp_matches"
    shown = [pattern, *map(spelled, patterns)]
    said = [function, *["regexp_matches"] * len(patterns)]
    shown = [each.replace("'", "''") for each in shown]
    columns = ", ".join(f"{name}(x, '{each}')" for name, each in zip(said, shown, strict=True))
    with duckdb.connect() as connection:
        connection.register("t", _table(given))
        found = connection.execute(f"SELECT {columns} FROM t").fetchall()
    for typed, *ours in found:
        assert typed == any(ours), (pattern, shown)


def _table(given):
    import pyarrow as pa

    return pa.table({"x": given})


@pytest.mark.parametrize("pattern", READ)
def test_what_is_read_here_matches_as_in_duckdb(pattern):
    for full in (False, True):
        agree(pattern, full, texts(random.Random(1), 200))


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_not_read_is_refused_with_a_reason(pattern):
    with pytest.raises(PatternError, match=r"\.$"):
        read_pattern(pattern)


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_texts_could_make_slow_is_refused(pattern):
    with pytest.raises(PatternError, match=r"too many states|written out|too large"):
        check_all(pattern)


def check_all(pattern: str) -> None:
    for each in read_pattern.__wrapped__(pattern):
        check_states.__wrapped__(each)


def test_whatever_signs_a_pattern_has_it_is_refused_or_means_what_duckdb_takes_it_for():
    chance, read = random.Random(5), 0
    given = texts(chance, 60)
    for _ in range(1500):
        pattern = "".join(chance.choices("abk0é.^$*+?()[]{}|\\-,2dwsDW:_ ", k=chance.randint(1, 9)))
        try:
            agree(chance.choice(("", "", "(?i)")) + pattern, chance.random() < 0.3, given)
        except PatternError:
            continue
        read += 1
    assert read > 100


def test_to_look_through_an_automaton_takes_little_time():
    start = time.thread_time()
    for pattern in ("\\w{50}[ab]{50}([^ä]|a[ä-ü]){1,9}[一-龥]{50}$", "[a-m]é{1,9}a{1,9}([ab]|[^ä]a)?$", "a.{15}b"):
        with contextlib.suppress(PatternError):
            check_all(pattern)
    assert time.thread_time() - start < 1


def slowest(shown: str, rows: list[str]) -> float:
    """Seconds of the processor, the least of three."""
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("given", _table(rows))
        connection.execute("CREATE TABLE t AS FROM given")
        found = []
        for _ in range(3):
            start = time.process_time()
            connection.execute(f"SELECT count_if(regexp_matches(x, '{shown}')) FROM t").fetchall()
            found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize("pattern", ["(a|b)*a(a|b){4}c$", "a.{3}b", "^(a|.b)*c.{2}$", "[^q]{3}a[^q]{2}z", "^(.*a.c|.)"])
def test_no_text_makes_a_pattern_slow(pattern):
    (found,) = read_pattern(pattern)
    check_states(found)
    chance = random.Random(2)
    hard = ["".join(chance.choices("abäx😀", k=200)) for _ in range(4000)]
    bytes_ = sum(len(each.encode()) for each in hard)
    plain = ["x" * (bytes_ // 4000)] * 4000
    assert slowest(spelled(found), hard) < 10 * slowest(spelled(found), plain) + 0.02
    assert slowest(spelled(found), hard) / bytes_ < 40e-9


def test_a_pattern_that_is_refused_would_have_been_slow():
    chance = random.Random(2)
    hard = ["".join(chance.choices("abx", k=200)) for _ in range(2000)]
    assert slowest("a.{15}b", hard) > 5 * slowest("a.{3}b", hard)

"""Texts: how their nodes of the syntax tree become expressions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.measuring.automata import check_states
from dalenius.measuring.expressions import Column, Expression, Type, number, text, walk
from dalenius.measuring.fairness import check_patience
from dalenius.measuring.function_values import values_of
from dalenius.measuring.pattern_reading import read_pattern
from dalenius.measuring.patterns import Pattern, PatternError, nullable, plain_texts, spelled
from dalenius.queries.rules.parse import place

if TYPE_CHECKING:
    from dalenius.queries.rules.aggregated import Aggregating

LONGEST_PATTERN = 100  # of what is looked for in others
_PLAIN = re.compile(r"(0|[1-9]\d*)(\.\d+)?", re.ASCII)  # numbers
_WORDS = re.compile(r"[^\W_]+")
MOST_CAPITALS = 1000  # keys
LONGEST_TRIMMED = 10  # characters that TRIM takes off


def match_like(reader: Aggregating, node: Any, function: str) -> Expression:
    """LIKE and ILIKE."""
    shown = short_text(reader, node, node.expression, "LIKE takes a pattern in quotes.", "Write a LIKE 'x%'.")
    if "\\" in shown:
        raise reader.refused(node, "A backslash in a pattern is not supported.", "Use CONTAINS.")
    # One form for one meaning, and runs of % cost the engine a look at the rest of the text each.
    pattern = re.sub("%+", "%", shown)
    if "_" in pattern and pattern.rstrip("%").count("%") > 1:
        raise reader.refused(
            node,
            "A pattern with _ and several % is not supported.",
            "Write two conditions: a LIKE '%x_y%' AND a LIKE '%z%'.",
        )
    found = reader.apply(node, function, reader.expression(node.this), text(pattern))
    return reader.apply(node, "not", found) if node.args.get("negate") else found


def short_text(reader: Aggregating, node: Any, written: Any, what: str, fix: str) -> str:
    """A text that is looked for in others: it stands there itself, and is short (`work`)."""
    from sqlglot import exp

    while isinstance(written, exp.Paren):
        written = written.this
    if not isinstance(written, exp.Literal) or not written.is_string:
        raise reader.refused(node, what, fix)
    if len(written.name) > LONGEST_PATTERN:
        raise reader.refused(
            node,
            "What is looked for in texts is too long.",
            f"Shorten it to {LONGEST_PATTERN} characters.",
        )
    return str(written.name)


def search(function: str) -> Callable[[Aggregating, Any], Expression]:
    """CONTAINS and the like."""

    def read(reader: Aggregating, node: Any) -> Expression:
        one, other = (node.this, node.expression) if not isinstance(node.this, str) else node.expressions
        what = f"{function.upper()} looks for a text in quotes."
        needle = text(short_text(reader, node, other, what, f"Write {function.upper()}(a, 'x')."))
        return reader.apply(node, function, reader.expression(one), needle)

    return read


def trim(reader: Aggregating, node: Any) -> Expression:
    """TRIM, LTRIM and RTRIM, of blanks or of given characters."""
    position = str(node.args.get("position") or "").upper()
    function = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(position, "trim")
    said, value = node.args.get("expression"), reader.expression(node.this)
    if said is None:
        return reader.apply(node, function, value)
    what = f"{function.upper()} takes the characters in quotes."
    needle = short_text(reader, node, said, what, f"Write {function.upper()}(a, '*').")
    if len(needle) > LONGEST_TRIMMED:
        raise reader.refused(node, f"{function.upper()} takes at most {LONGEST_TRIMMED} characters.", "Nest it.")
    return reader.apply(node, function, value, text("".join(sorted(set(needle)))))


def cut_end(reader: Aggregating, node: Any, function: str) -> Expression:
    """LEFT and RIGHT; of a negative number, all but so many."""
    count = reader.whole_number(node.expression, -1_000_000, 1_000_000)
    return reader.apply(node, function, reader.expression(node.this), number(count))


def position(reader: Aggregating, node: Any) -> Expression:
    """POSITION, STRPOS, INSTR, CHARINDEX: where a text begins in another, from 1; 0 where it is not there."""
    what, fix = "The text that is looked for stands in quotes.", "Write STRPOS(a, 'x')."
    needle = text(short_text(reader, node, node.args.get("substr"), what, fix))
    return reader.apply(node, "position", reader.expression(node.this), needle)


def match_expression(reader: Aggregating, node: Any) -> Expression:
    """REGEXP_MATCHES, ~, ~* and their likes look for a part of a text, REGEXP_FULL_MATCH and SIMILAR TO for all of it.

    What texts it stands for is looked for as such; for the rest there is an expression of the engine's, written anew
    (`patterns`), that no text can make slow (`automata`).
    """
    from sqlglot import exp

    ways = "Write REGEXP_MATCHES(a, 'x') for a part of a text, REGEXP_FULL_MATCH(a, 'x') for all of it."
    shown = short_text(reader, node, node.expression, "A regular expression stands in quotes.", ways)
    if isinstance(node, exp.SimilarTo) and set("%_") & set(shown):
        whole = "REGEXP_FULL_MATCH(a, '{}')".format(shown.replace("%", ".*").replace("_", "."))
        what = "% and _ are wildcards of SIMILAR TO elsewhere, and stand for themselves in DuckDB."
        raise reader.refused(node, what, f"Write {whole}, or LIKE.")
    flag = node.args.get("flag") or node.args.get("options")
    if flag is not None and (not isinstance(flag, exp.Literal) or flag.name not in {"i", "c", ""}):
        raise reader.refused(node, "Of the options of a regular expression only 'i' is read.", "Leave the others out.")
    folded = isinstance(node, exp.RegexpILike) or (flag is not None and flag.name == "i")
    try:
        check_patience()
        patterns = read_pattern(shown, folded=folded, full=isinstance(node, exp.RegexpFullMatch | exp.SimilarTo))
        value = reader.expression(node.this)
        found = [_look_for(reader, node, value, each) for each in patterns]
    except PatternError as error:
        way = "Use a simpler one, or LIKE, CONTAINS and STARTS_WITH; see docs/reference/sql.md."
        what = f"The regular expression '{shown}' cannot be used."
        raise QuestionRefusedError(what, why=str(error), fix=way, at=place(node, reader.text)) from None
    return found[0] if len(found) == 1 else reader.apply(node, "or", *found)


def _look_for(reader: Aggregating, node: Any, value: Expression, pattern: Pattern) -> Expression:
    if nullable(pattern.node) and not (pattern.start and pattern.end):
        return reader.apply(node, "starts_with", value, text(""))  # every text has it
    known = plain_texts(pattern.node)
    if known is not None and pattern.start and pattern.end:
        return reader.apply(node, "in", value, *map(text, known))
    if known is not None and (pattern.start or pattern.end or len(known) == 1):
        function = "starts_with" if pattern.start else "ends_with" if pattern.end else "contains"
        found = [reader.apply(node, function, value, text(each)) for each in known]
        return found[0] if len(found) == 1 else reader.apply(node, "or", *found)
    check_states(pattern)
    return reader.apply(node, "regexp", value, text(spelled(pattern)))


def split(reader: Aggregating, node: Any) -> Expression:
    """SPLIT_PART: a part between separators, from 1, or from the end where its number is negative."""
    fix = "Write SPLIT_PART(a, '-', 1)."
    separator = short_text(reader, node, node.args.get("delimiter"), "SPLIT_PART takes a separator in quotes.", fix)
    part = reader.whole_number(node.args.get("part_index"), -1000, 1000)
    if not separator or not part:
        raise reader.invalid(node, "SPLIT_PART has no such part.", "It counts from 1, between separators.", fix)
    return reader.apply(node, "split_part", reader.expression(node.this), text(separator), number(part))


def capitals(reader: Aggregating, node: Any) -> Expression:
    """INITCAP, of what has public values: CASE says what becomes of each. DuckDB has no such function.

    Words are runs of letters and digits, as in Postgres; or what lies between characters that are said, as in BigQuery.
    """
    words, between = _WORDS, node.args.get("expression")
    if between is not None and "\v" not in between.name:  # the parser's own list, where none was typed
        said = short_text(reader, node, between, "INITCAP takes what is between words in quotes.", "Write INITCAP(a).")
        words = re.compile(f"[^{re.escape(said)}]+") if said else re.compile(".+", re.DOTALL)
    inner = reader.expression(node.this)
    views, names = reader.all_columns(), {each.name for each in walk(inner) if isinstance(each, Column)}
    columns = {name: each[name] for each in reversed(views) for name in names if name in each}
    values = values_of(inner, columns) if inner.type is Type.TEXT and len(columns) == len(names) else None
    if values is None or len(values) > MOST_CAPITALS:
        raise reader.refused(
            node,
            "INITCAP takes a column whose keys are declared.",
            "Write UPPER(LEFT(a, 1)) || LOWER(SUBSTRING(a, 2)).",
            "What becomes of each key is worked out beforehand, as DuckDB has no such function.",
        )
    known = {str(each): words.sub(lambda word: word[0][:1].upper() + word[0][1:].lower(), str(each)) for each in values}
    changed = [(text(each), text(other)) for each, other in known.items() if each != other]
    if not changed:
        return inner
    pairs = (part for each, other in changed for part in (reader.apply(node, "eq", inner, each), other))
    return reader.apply(node, "case", *pairs, inner)


def substring(reader: Aggregating, node: Any, function: str, *places: Any) -> Expression:
    """SUBSTRING."""
    numbers = [number(reader.whole_number(each, 0, 1_000_000)) for each in places if each is not None]
    return reader.apply(node, function, reader.expression(node.this), *numbers)


def replace(reader: Aggregating, node: Any) -> Expression:
    """REPLACE."""
    said = [node.args.get(part) for part in ("expression", "replacement")]
    needles = [
        short_text(reader, node, each, "REPLACE takes two short texts in quotes.", "Write them out.") for each in said
    ]
    parts = [text(each) for each in needles]
    before, after = map(len, needles)
    if after > max(before, 10):  # one row's text must not grow much, or its length shows in the time it takes
        raise reader.refused(node, "REPLACE cannot put a long text in the place of a short one.", "Shorten it.")
    return reader.apply(node, "replace", reader.expression(node.this), *parts)


def concat(reader: Aggregating, node: Any) -> Expression:
    """CONCAT."""
    parts = [as_text(reader, each) for each in node.expressions]
    # CONCAT passes over NULL, unlike ||
    found = parts[0]
    for at, each in enumerate(parts):
        solid = reader.apply(node, "coalesce", each, text(""))
        found = solid if at == 0 else reader.apply(node, "concat", found, solid)
    return found


def join(reader: Aggregating, node: Any) -> Expression:
    """a || b: one of them may be a number, a date or a truth value."""
    parts = [reader.expression(each) for each in (node.this, node.expression)]
    if any(each.type is Type.TEXT for each in parts):
        sides = zip(
            (node.this, node.expression), parts, strict=True
        )  # each is read once: a || b || … nests to the left
        parts = [_put(reader, side, found) for side, found in sides]
    return reader.apply(node, "concat", *parts)


def as_text(reader: Aggregating, node: Any) -> Expression:
    """A value as DuckDB puts it into a text; a number of the question as it is written there."""
    return _put(reader, node, reader.expression(node))


def _put(reader: Aggregating, node: Any, found: Expression) -> Expression:
    from sqlglot import exp

    if isinstance(node, exp.Literal) and not node.is_string:
        if not _PLAIN.fullmatch(node.name):  # DuckDB writes 1e3 and 007 otherwise
            what = f"The number {node.name} is not put into a text as it is written."
            raise reader.refused(node, what, "Write it in quotes, as in 'x' || '0.5'.")
        return text(node.name)
    if found.type not in {Type.NUMBER, Type.DATE, Type.DATETIME, Type.BOOLEAN}:
        return found
    return reader.apply(node, "to_text", found)

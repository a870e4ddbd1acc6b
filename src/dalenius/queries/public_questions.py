"""Questions over public tables only: answered exactly, and for nothing.

No row of anyone is read, so nothing is charged and nothing is noisy. The analyst is hostile all the same: the text is
parsed, only what is on the lists passes, and what runs is written anew from the syntax tree. It runs where no other
file can be opened (`engines.confined`), within limits of memory, time and rows. Nothing of it comes near the ledger.

A subquery over public tables that stands for one value in a larger question is such a question as well: it is worked
out exactly before that one is planned (`public_value`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from dalenius.errors import EngineFailedError, Place, QuestionError, QuestionRefusedError
from dalenius.measuring.engines.duckdb import confined
from dalenius.measuring.engines.duckdb.public_checks import ARGUMENTS, FUNCTIONS, folded
from dalenius.measuring.engines.duckdb.statements.relation import scan_of_public
from dalenius.measuring.expressions import FALSE, NULL, TRUE, Literal, Type, number, text
from dalenius.measuring.public import public_table
from dalenius.queries.explaining import explain_public
from dalenius.queries.preview import Preview
from dalenius.queries.release import PUBLIC, Release
from dalenius.queries.rules.clause import check_nobody_named
from dalenius.queries.rules.parse import DIALECT, parse_sql, place
from dalenius.queries.rules.whole import check_whole, spell_formats, text_of
from dalenius.tables.registry import check_public_unchanged
from dalenius.tables.sources.fingerprint import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlglot import exp

    from dalenius.errors import Place
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.preview import Preview
    from dalenius.queries.release import Release
    from dalenius.tables.registry import Version

MOST_ROWS = 10_000
SECONDS = confined.SECONDS
# Neither time nor chance is in a question, so the same files give the same answer. A value in a larger question is
# worked out each time that one is planned; small answers are therefore kept.
_FEW, _SMALL, _MOST_KEPT = 100, 16_384, 256  # cells, bytes of an answer, answers
_NONE: frozenset[str] = frozenset()
_QUOTES = frozenset("\"'`[]\\")
_KEPT: dict[tuple[str, tuple[tuple[str, Fingerprint], ...]], confined.Outcome] = {}
_HOW = "See 'dalenius tables' for the public tables; the how-to about them says what may be asked."
_FIX = "Correct it; the outer part is DuckDB's SQL, over the columns of the release."
# Kinds of DuckDB's errors that are the question's own, in words; of all others nothing is said.
_MISTAKES = {
    "BinderException": "A column is not there, not unique, neither grouped nor aggregated, or a type does not fit.",
    "CatalogException": "A function or type that it names is not there.",
    "ParserException": "It cannot be read.",
    "SyntaxException": "It cannot be read.",
    "ConversionException": "A value cannot be converted; TRY_CAST gives NULL instead.",
    "InvalidInputException": "A function does not take what it is given, or a query for one value gives several rows.",
    "OutOfRangeException": "A number is too large for its type.",
    "TypeMismatchException": "A type does not fit.",
    "NotImplementedException": "The engine does not know how to compute it.",
    "DataError": "A value does not fit its type.",
}


@dataclass(frozen=True)
class PublicQuestion:
    """A question that reads public tables only.

    Attributes:
        text: As it was asked.
        tables: The names of those that it reads, in lower case.
        tree: Its syntax tree.
    """

    text: str
    tables: frozenset[str]
    tree: exp.Query


def public_question(text: str, known: Collection[str]) -> PublicQuestion | None:
    """The question, if every table that it reads is a known public one; else it is one for the usual way.

    Args:
        text: SQL.
        known: The names of the public tables, in lower case.
    """
    from sqlglot import exp

    if not _may_name(text, known):
        return None
    try:
        tree = parse_sql(text)
    except QuestionError:
        return None  # told there
    if not isinstance(tree, exp.Query):
        return None
    used = set()
    spell_formats(tree)
    _drop_schemas(tree, known)
    for table in tables_of(tree):
        name = folded(table.name)
        if not is_plain(table) or name not in known:
            return None
        used.add(name)
    return PublicQuestion(text, frozenset(used), tree) if used else None


def _may_name(text: str, known: Collection[str]) -> bool:
    """Whether one of these names can stand in a text at all: most questions name none, and are not parsed for it."""
    shown = folded(str(text))
    # A name with quotes in it, or letters that could be written otherwise, is left to the parser.
    return any(folded(each) in shown or not each.isascii() or not _QUOTES.isdisjoint(each) for each in known)


def _drop_schemas(tree: exp.Query, known: Collection[str]) -> None:
    """Takes away what stands before the name of a public table: there is one of that name, wherever it is said to be.

    Not where a WITH gives a query the same name: it would be read in its place.
    """
    from sqlglot import exp

    given = {folded(each.alias) for each in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table, exp.Column):
        name = folded(node.table if isinstance(node, exp.Column) else node.name)
        if node.args.get("db") and name in known and name not in given and isinstance(node.this, exp.Identifier):
            node.set("db", None)
            node.set("catalog", None)


def answer_public(question: PublicQuestion, tables: Sequence[PublicTable], *, seconds: float = SECONDS) -> Release:
    """The exact answer.

    Raises:
        QuestionRefusedError: The question has something in it that may not run, or that cannot be computed.
        EngineTimeoutError: It took too long.
        EngineFailedError: It needs more memory than it may have.
    """
    found = _run(question, tables, MOST_ROWS, seconds)
    size = len(found.columns)
    cut = f"Only the first {len(found.rows):,} rows are here: an answer has at most {MOST_ROWS:,}, and 4 MiB."
    return Release(
        columns=found.columns,
        keys=(True,) * size,
        rows=found.rows,
        noise_error=((None,) * size,) * len(found.rows),
        interval=((None,) * size,) * len(found.rows),
        confidence=1.0,
        guarantee={"kind": PUBLIC, "epsilon": 0.0, "delta": 0.0, "unit": None, "neighbors": None},
        charge={"epsilon": 0.0, "delta": 0.0, "rho": None},
        remaining={},
        free=True,
        receipt=None,
        question=question.text,
        notes=(cut,) if found.cut else (),
    )


def preview_public(question: PublicQuestion, tables: Sequence[PublicTable], confidence: float) -> Preview:
    """What asking would give: its columns, exactly and for nothing."""
    found = _run(question, tables, 0, SECONDS)
    names = sorted(each.name for each in tables)
    return Preview(
        columns=found.columns,
        groups=None,
        choices=(),
        confidence=confidence,
        plan=f"reads public tables only ({', '.join(names)}): exact, charges nothing",
        remaining={},
        public=True,
        explanation=explain_public(found.columns, names),
    )


def _run(question: PublicQuestion, tables: Sequence[PublicTable], most: int, seconds: float) -> confined.Outcome:
    # One row more shows that there are more; a preview needs none at all, and nothing is worked out for it.
    key = (rewrite(question, most + 1 if most else 0), tuple((table.name, table.fingerprint) for table in tables))
    kept = _KEPT.get(key)
    if kept is not None:
        return kept
    files = [path for table in tables for path in table.fingerprint.paths]
    columns = {name.lower() for table in tables for name in table.types}
    found = confined.run(
        key[0],
        {table.name: scan_of_public(table) for table in tables},
        list(dict.fromkeys(files)),
        columns,
        most=most,
        seconds=seconds,
    )
    if found.refused is not None:
        raise refuse_word(found.refused, question.text)
    if found.failed is not None:
        raise refuse_failed(found.failed, tables)
    if len(found.rows) * len(found.columns) <= _FEW and found.size + len(key[0]) <= _SMALL:
        for oldest in list(_KEPT)[: max(0, len(_KEPT) + 1 - _MOST_KEPT)]:
            _KEPT.pop(oldest, None)
        _KEPT[key] = found
    return found


def rewrite(question: PublicQuestion, most: int) -> str:
    """The SQL that runs: the tree, checked and written anew, with at most so many rows."""
    from sqlglot import exp

    tree = question.tree.copy()
    check_tree(tree, question.text)
    while isinstance(tree, exp.Subquery) and not any(tree.args.get(each) for each in ("with_", "order", "limit")):
        tree = tree.this
    _cut(tree, most, question.text)
    check_whole(tree, question.text)
    return str(tree.sql(dialect=DIALECT, comments=False))


def check_tree(tree: exp.Query, text: str) -> None:
    """Refuses what may not run whatever it reads: odd functions, samples, parameters, all but SELECT."""
    from sqlglot import exp

    for node in tree.walk():
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.ParameterizedAgg | exp.CombinedAggFunc):
            name = str(node.name).lower()
            if name not in FUNCTIONS:
                raise _refused(f"The function {name} cannot be used here.", node, text)
            if len(node.expressions) < ARGUMENTS.get(name, 0):
                raise _refused(f"The function {name} cannot be used here without all of its arguments.", node, text)
        elif isinstance(node, exp.Pivot | exp.TableSample | exp.Placeholder | exp.Parameter | exp.Into | exp.Lock):
            raise _refused(f"{node.key.upper()} cannot be used here.", node, text)
        elif isinstance(node, exp.Command | exp.DML | exp.DDL) and not isinstance(node, exp.Query):
            raise _refused("Only SELECT can be asked.", node, text)


def _cut(tree: exp.Query, most: int, text: str) -> None:
    """Puts a limit on the whole, or lowers the one that is there."""
    from sqlglot import exp

    limit = tree.args.get("limit")
    if limit is not None:
        count = limit.expression if isinstance(limit, exp.Limit) else limit.args.get("count")
        options = limit.args.get("limit_options")
        odd = options is not None and any(options.args.get(each) for each in ("percent", "with_ties"))
        if odd or not isinstance(count, exp.Literal) or not count.name.isdigit():
            raise _refused("The last LIMIT must be a number.", limit, text)
        most = min(most, int(count.name))
    tree.set("limit", exp.Limit(expression=exp.Literal.number(most)))


def _refused(message: str, node: exp.Expr | None = None, text: str = "") -> QuestionRefusedError:
    return QuestionRefusedError(
        message,
        why="Over public tables and released values, SELECT and functions of values are answered; none that reads "
        "files, settings, the clock or chance, or runs SQL.",
        fix=_HOW,
        at=place(node, text) if node is not None else None,
    )


def refuse_word(words: str, text: str) -> QuestionRefusedError:
    """The error about what of a statement may not run, as `public_checks` has it."""
    error = _refused(f"{words[0].upper()}{words[1:]} cannot be used here.")
    error.at = _place_of(words.rsplit(maxsplit=1)[-1], text)
    return error


def _place_of(word: str, text: str) -> Place | None:
    """Where a word stands in the question; what was written anew may have other words."""
    found = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    if found is None:
        return None
    before = text[: found.start()]
    return Place(before.count("\n") + 1, len(before) - before.rfind("\n"))


def refuse_failed(kind: str, tables: Sequence[PublicTable]) -> QuestionRefusedError | EngineFailedError:
    """The error about a statement that the engine could not run."""
    if kind not in _MISTAKES:
        return EngineFailedError(
            "The engine could not compute the answer.",
            why="Most likely the question needs more memory than it may have.",
            fix="Ask for less at once.",
        )
    known = "; ".join(f"{table.name} has {', '.join(table.types)}" for table in tables)
    return QuestionRefusedError(
        "The engine does not take this question.", why=_MISTAKES[kind], fix=f"Correct it. {known}." if known else _FIX
    )


# --- which names are tables, in sqlglot's tree; as `engines.duckdb.public_scopes`


def is_plain(table: exp.Table) -> bool:
    """Whether it is a name alone: no function, no text, nothing before it."""
    from sqlglot import exp

    return isinstance(table.this, exp.Identifier) and not table.args.get("db") and not table.args.get("catalog")


def tables_of(tree: exp.Expr) -> Iterator[exp.Table]:
    """The tables in sqlglot's tree that no WITH in sight gives: they must be public ones."""
    from sqlglot import exp

    waiting: list[tuple[exp.Expr, frozenset[str], str]] = [(tree, _NONE, "")]
    while waiting:
        node, seen, itself = waiting.pop()
        if isinstance(node, exp.Table) and not (is_plain(node) and folded(node.name) in seen):
            yield node
        for value in node.args.values():
            if isinstance(value, exp.With):
                parts, seen = _given(value, seen)
                waiting += parts
        # Of a WITH RECURSIVE, the part after UNION may speak of itself; the one before it may not.
        recursive = itself if isinstance(node, exp.SetOperation) else ""
        for key, value in node.args.items():
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, exp.Expr) and not isinstance(child, exp.With):
                    more = {recursive} if recursive and key == "expression" else _NONE
                    waiting.append((child, seen | more, ""))


def _given(with_: exp.With, seen: frozenset[str]) -> tuple[list[tuple[exp.Expr, frozenset[str], str]], frozenset[str]]:
    """The parts of a WITH, each with what it sees; and what is seen after it."""
    from sqlglot import exp

    parts: list[tuple[exp.Expr, frozenset[str], str]] = []
    for each in with_.iter_expressions():
        if not isinstance(each, exp.CTE):
            parts.append((each, seen, ""))
            continue
        name = folded(each.alias)
        itself = name if with_.args.get("recursive") else ""
        parts += [(child, seen, itself if child is each.this else "") for child in each.iter_expressions()]
        seen |= {name}
    return parts, seen


# --- as versions of tables declare them


def public_release(text: str, versions: Sequence[Version]) -> Release | None:
    """The answer to a question whose tables are all public ones of these versions; None: it is another question."""
    found = _planned(text, versions)
    if found is None:
        return None
    question, tables = found
    release = answer_public(question, tables)
    _check_unchanged(question, versions)  # what was read is what was declared
    return release


def is_public(text: str, versions: Sequence[Version]) -> bool:
    """Whether it is such a question; nothing is read."""
    known = _known(versions)
    return bool(known) and public_question(text, known) is not None


def public_preview(text: str, versions: Sequence[Version], confidence: float) -> Preview | None:
    """The same for `preview`."""
    found = _planned(text, versions)
    return None if found is None else preview_public(*found, confidence)


def _planned(text: str, versions: Sequence[Version]) -> tuple[PublicQuestion, list[PublicTable]] | None:
    known = _known(versions)
    question = public_question(text, known) if known else None
    if question is None:
        return None
    check_nobody_named(text)
    _check_unchanged(question, versions)
    declared = (known[name] for name in sorted(question.tables))
    return question, [public_table(version.policy.public[name], version.public[name]) for version, name in declared]


def _check_unchanged(question: PublicQuestion, versions: Sequence[Version]) -> None:
    known = _known(versions)
    for name in question.tables:
        version, spelled = known[name]
        check_public_unchanged(version, [spelled])


def _known(versions: Sequence[Version]) -> dict[str, tuple[Version, str]]:
    """All public tables by their names in lower case. Where several versions declare one, all mean the same."""
    return {name.lower(): (version, name) for version in versions for name in version.public}


# --- subqueries that stand for one value


def public_value(tree: Any, publics: Mapping[str, PublicTable], at: Place | None) -> Literal:
    """The value of a subquery; its tables are public, so it is a constant that anyone could write down.

    Raises:
        QuestionRefusedError: It reads protected rows, speaks of the question around it, or gives no single value.
    """
    spelled = {name.lower(): name for name in publics}
    tree = tree.copy()
    spell_formats(tree)
    question = public_question(text_of(tree), spelled.keys())
    if question is None:
        raise QuestionRefusedError(
            "A subquery inside an expression can only read public tables.",
            why="Its value would enter the question without a price, or be another one for every row.",
            fix="Ask for it first and write its value down, or join a subquery in FROM that groups by the unit.",
            at=at,
        )
    try:
        found = answer_public(question, [publics[spelled[name]] for name in sorted(question.tables)])
    except QuestionRefusedError as error:
        raise QuestionRefusedError(
            "The subquery cannot be worked out by itself.",
            why=f"{error.why} It must not speak of the rows around it.",
            fix="Write it so that it could be asked alone.",
            at=at,
        ) from None
    if len(found.columns) != 1 or len(found.rows) > 1:
        raise QuestionRefusedError(
            "A subquery inside an expression must give one value.",
            why=f"It gives {len(found.columns)} columns and {len(found.rows):,} rows.",
            fix="Select one aggregate.",
            at=at,
        )
    return _literal(found.rows[0][0] if found.rows else None, at)


def _literal(value: object, at: Place | None) -> Literal:
    match value:
        case None:
            return NULL
        case bool():
            return TRUE if value else FALSE
        case int() | float() | Decimal() if math.isfinite(value):
            return number(float(value))
        case str():
            return text(value)
        case datetime():
            return Literal(value.replace(tzinfo=None), Type.DATETIME)
        case date():
            return Literal(value, Type.DATE)
    raise QuestionRefusedError(
        "The value of a subquery cannot be used.",
        why="It is no number, text, date or truth value.",
        fix="Cast it.",
        at=at,
    )

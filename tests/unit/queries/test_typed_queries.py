"""Questions as people type them are answered, with DuckDB's own values, or refused in words that help."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from sqlglot import exp
from tests import typed
from tests.shop import Shop
from tests.typed import Typed

from dalenius.errors import DaleniusError
from dalenius.measuring.expressions import Key, walk
from dalenius.measuring.plan import Plan
from dalenius.queries.ask import Ask
from dalenius.queries.keys_alone import keys_planned
from dalenius.queries.outer.asking import OuterPlanned, plan_any
from dalenius.queries.planning import Planned

LONG = os.environ.get("DALENIUS_LONG") == "1"
SHARE = 0.92  # of the questions that are safe, as many are answered at least
ALL = [each for each in typed.typed() if not each.later]
# Of these, values are not DuckDB's to the digit: ε stands in the question; a quantile is one of its tree's; squares of
# values are added up in coarser steps.
NOISY = re.compile(r"OPTIONS|MEDIAN|QUANTILE|PERCENTILE", re.IGNORECASE)
COARSE = re.compile(r"VAR|STD|SEM|SKEW|KURT|CORR|REGR|POW|\^", re.IGNORECASE)
# What only plans and the parser call things: sources and columns of subqueries, nodes, types that are not known.
INTERNAL = re.compile(r"per unit\.|'per unit'|union\.c\d|#\d|USERDEFINED|public [a-z]+'")
CAMEL, CAPITALS = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b"), re.compile(r"\b[A-Z][A-Z0-9_]+\b")
PART = ALL if LONG else ALL[::15]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("typed"))


def planned(shop: Shop, text: str) -> Planned | OuterPlanned:
    """The plan as the curator has it: that of the question, or of what its outer part is computed from."""
    return keys_planned(shop.ana._asker, Ask(text)) or plan_any(shop.ana._asker, Ask(text))


def error_of(shop: Shop, question: Typed) -> DaleniusError | None:
    try:
        planned(shop, question.text)
    except DaleniusError as error:
        return error
    return None


def test_there_are_questions_in_every_manner():
    assert len(typed.typed()) >= 400
    manners = {each.manner for each in ALL}
    assert manners == {"smartnoise", "bigquery", "dpsql", "qrlew", "postgres", "tsql", "duckdb"}


def test_nine_in_ten_safe_questions_are_answered():
    safe = [each for each in ALL if not each.refused]
    assert sum(not each.not_yet for each in safe) >= SHARE * len(safe)


def test_what_is_said_to_be_answered_is_planned(shop):
    asked = [each for each in ALL if not each.words]
    found = {each.name: str(error) for each in (asked if LONG else asked[::3]) if (error := error_of(shop, each))}
    assert found == {}


@pytest.mark.parametrize("question", [each for each in ALL if each.words], ids=lambda each: each.name)
def test_a_refusal_has_its_words_and_no_names_of_our_own(shop, question):
    error = error_of(shop, question)
    assert error is not None
    said = f"{error.message} {error.why} {error.fix}"
    assert all(each in said for each in question.words), said
    assert not INTERNAL.search(said), said
    assert not {each for each in CAMEL.findall(said) if hasattr(exp, each)}, said
    named = {each for each in CAPITALS.findall(error.message) if each in exp.FUNCTION_BY_NAME}
    assert named <= set(CAPITALS.findall(question.text.upper())), said


@pytest.mark.parametrize("question", [each for each in PART if not each.words], ids=lambda each: each.name)
def test_without_noise_answers_are_what_duckdb_says(shop, question):
    if question.unlike or NOISY.search(question.text):
        return
    found_plan = planned(shop, question.text)
    keys = keys_of(found_plan)
    expected = typed.plain(question)
    release = shop.ana.ask(question.text, epsilon=1e16)
    found = [tuple(row) for row in release.rows]
    loose = 5e-3 if COARSE.search(question.text) else 1e-5
    if any(each.selection is not None for each in plans_of(found_plan)):  # keys that few people have are not found
        assert all(is_among(row, expected, loose) for row in found)
        return
    for row in expected:
        if any(row[at] is None for at in keys) and not is_among(row, found, loose):
            continue  # a row whose key is NULL is in no group
        assert is_among(row, found, loose), (row, found[:20])


def plans_of(found: Planned | OuterPlanned) -> list[Plan]:
    """What is asked of the data."""
    return [found.plan] if isinstance(found, Planned) else [each.plan for each in found.parts]


def keys_of(found: Planned | OuterPlanned) -> list[int]:
    """The columns of the answer that are keys of groups."""
    if isinstance(found, OuterPlanned):
        return [at for at, each in enumerate(found.split.outer.columns) if each.exact]
    outputs = found.plan.question.outputs
    return [at for at, each in enumerate(outputs) if any(isinstance(part, Key) for part in walk(each.expression))]


def is_among(row: Sequence[Any], found: Sequence[Sequence[Any]], loose: float) -> bool:
    return any(all(are_alike(one, two, loose) for one, two in zip(row, other, strict=True)) for other in found)


def are_alike(one: Any, other: Any, loose: float) -> bool:
    """Whether two values are one, whatever engines call it: 3 and 3.0, a date and its midnight, a boolean and 1."""
    if one is None or other is None:
        return one is other
    if isinstance(one, int | float | Decimal) and isinstance(other, int | float | Decimal):
        return math.isclose(one, other, rel_tol=loose, abs_tol=max(1e-3, 10 * loose))
    if isinstance(one, date | datetime) and isinstance(other, date | datetime):
        return one.isoformat()[:10] == other.isoformat()[:10] and _time(one) == _time(other)
    return str(one) == str(other)


def _time(moment: date) -> str:
    return moment.isoformat()[11:] if isinstance(moment, datetime) else "00:00:00"

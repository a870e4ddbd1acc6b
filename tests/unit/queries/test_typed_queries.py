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
from tests import typed
from tests.shop import Shop
from tests.typed import Typed

from dalenius.errors import DaleniusError
from dalenius.measuring.expressions import Key, walk
from dalenius.measuring.plan import Plan

LONG = os.environ.get("DALENIUS_LONG") == "1"
SHARE = 0.92  # of the questions that are safe, as many are answered at least
ALL = [each for each in typed.typed() if not each.later]
# Of these, values are not DuckDB's to the digit: ε stands in the question; a quantile is one of its tree's; squares of
# values are added up in coarser steps.
NOISY = re.compile(r"OPTIONS|MEDIAN|QUANTILE|PERCENTILE", re.IGNORECASE)
COARSE = re.compile(r"VAR|STD|CORR|REGR|POW|\^", re.IGNORECASE)
PART = ALL if LONG else ALL[::15]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return typed.protected(tmp_path_factory.mktemp("typed"))


def error_of(shop: Shop, question: Typed) -> DaleniusError | None:
    try:
        shop.plan(question.text)
    except DaleniusError as error:
        return error
    return None


def test_there_are_questions_in_every_manner():
    assert len(typed.typed()) >= 400
    manners = {each.manner for each in ALL}
    assert manners == {"smartnoise", "bigquery", "dpsql", "qrlew", "postgres", "tsql", "duckdb"}


def test_most_of_what_is_safe_is_answered(shop):
    safe = [each for each in ALL if not each.refused]
    part = safe if LONG else safe[::2]
    answered = sum(error_of(shop, each) is None for each in part)
    assert answered >= SHARE * len(part)


@pytest.mark.parametrize("question", [each for each in ALL if each.refused], ids=lambda each: each.name)
def test_what_is_not_safe_is_refused(shop, question):
    assert error_of(shop, question) is not None


@pytest.mark.parametrize("question", [each for each in PART if not each.refused], ids=lambda each: each.name)
def test_without_noise_answers_are_what_duckdb_says(shop, question):
    if question.unlike or NOISY.search(question.text) or error_of(shop, question) is not None:
        return
    plan = shop.plan(question.text)
    keys = keys_of(plan)
    expected = typed.plain(question)
    release = shop.ana.ask(question.text, epsilon=1e16)
    found = [tuple(row) for row in release.rows]
    loose = 5e-3 if COARSE.search(question.text) else 1e-5
    if plan.selection is not None:  # keys that few people have are not found
        assert all(is_among(row, expected, loose) for row in found)
        return
    for row in expected:
        if any(row[at] is None for at in keys) and not is_among(row, found, loose):
            continue  # a row whose key is NULL is in no group
        assert is_among(row, found, loose), (row, found[:20])


def keys_of(plan: Plan) -> list[int]:
    """The columns of the answer that are keys of groups."""
    return [
        at
        for at, each in enumerate(plan.question.outputs)
        if any(isinstance(part, Key) for part in walk(each.expression))
    ]


def is_among(row: Sequence[Any], found: Sequence[Sequence[Any]], loose: float) -> bool:
    return any(all(are_alike(one, two, loose) for one, two in zip(row, other, strict=True)) for other in found)


def are_alike(one: Any, other: Any, loose: float) -> bool:
    """Whether two values are one, whatever engines call it: 3 and 3.0, a date and its midnight, a boolean and 1."""
    if one is None or other is None:
        return one is other
    if isinstance(one, int | float | Decimal) and isinstance(other, int | float | Decimal):
        return math.isclose(one, other, rel_tol=loose, abs_tol=10 * loose)
    if isinstance(one, date | datetime) and isinstance(other, date | datetime):
        return one.isoformat()[:10] == other.isoformat()[:10] and _time(one) == _time(other)
    return str(one) == str(other)


def _time(moment: date) -> str:
    return moment.isoformat()[11:] if isinstance(moment, datetime) else "00:00:00"

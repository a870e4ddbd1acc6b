"""The domain follows from the policy; values become codes and codes values of the policy's types."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.synthesis.made import COLUMNS, MODELLED, POLICY, curator_of, some_rows

from dalenius.errors import InputError, NotAllowedError, UnknownColumnError
from dalenius.releasing.opened import Opened, tables_of
from dalenius.synthesis.policy_domain import CLASSES, Modelled, PolicyDomain, domain_of, modelled
from dalenius.tables.policy import Bounds, Column, Kind

CHANCE = np.random.default_rng(0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Any:
    curator = curator_of(tmp_path_factory.mktemp("domain"), some_rows(5))
    asker = curator.analyst("ana")._asker
    return tables_of(asker, Opened.of(asker).versions)["people"]


def test_a_domain_has_all_that_is_declared_and_names_the_rest(table: Any):
    found, left = domain_of(table)
    assert tuple(each.name for each in found.columns) == MODELLED
    assert left == {"note": "declare its keys"}
    sizes = dict(zip(MODELLED, found.domain.sizes, strict=True))
    # keys or classes, and one for absent values where there is no default
    assert sizes == {
        "sex": 3,
        "région": 4,
        "bmi": CLASSES + 1,
        "age": 101,
        "day": CLASSES + 1,
        "at": CLASSES + 1,
        "smoker": 3,
        "wave": 4,
        "country": 1,
    }


def test_a_domain_comes_back_as_it_was_stored(table: Any):
    found, _ = domain_of(table)
    assert PolicyDomain.of_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("chosen", "error", "word"),
    [
        (["note"], InputError, "declare its keys"),
        (["person"], NotAllowedError, "who somebody is"),
        (["nothing"], UnknownColumnError, "no column 'nothing'"),
        (["sex", "sex"], InputError, "twice"),
    ],
)
def test_what_cannot_be_chosen_is_named(table: Any, chosen: list[str], error: type[Exception], word: str):
    with pytest.raises(error, match=word):
        domain_of(table, chosen)


def test_a_table_without_any_declaration_is_refused(table: Any):
    only = replace(table.policy, columns={"note": table.policy.columns["note"]})
    with pytest.raises(InputError, match="no column that can be modelled"):
        domain_of(replace(table, policy=only))


def test_two_columns_with_very_many_keys_are_refused_together(table: Any):
    many = {name: Column(name, Kind.TEXT, keys=tuple(map(str, range(10_000)))) for name in ("a", "b")}
    with pytest.raises(InputError, match="'a' and 'b' have too many values"):
        domain_of(replace(table, policy=replace(table.policy, columns=many)))
    alone = replace(table.policy, columns={"a": many["a"]})
    assert domain_of(replace(table, policy=alone))[0].domain.sizes == (10_001,)
    more = replace(many["a"], keys=tuple(map(str, range(30_000))))
    with pytest.raises(InputError, match="at most 20,000 keys"):
        domain_of(replace(table, policy=replace(table.policy, columns={"a": more})), ["a"])


def back(column: Modelled, values: np.ndarray) -> list[Any]:
    codes = column.codes(values, np.zeros(len(values), bool))
    found: list[Any] = column.values(codes, CHANCE).to_pylist()
    return found


@given(st.integers(-(2**40), 2**40), st.integers(0, 127), st.data())
def test_few_whole_numbers_come_back_as_they_were(low: int, width: int, data: st.DataObject):
    column = modelled(Column("n", Kind.INTEGER, Bounds(low, low + width)))
    values = data.draw(st.lists(st.integers(low, low + width), min_size=1))
    assert back(column, np.array(values, np.float64)) == values
    assert column.column.size == width + 2


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**62), st.data())
def test_many_whole_numbers_come_back_near_and_within_their_bounds(low: int, width: int, data: st.DataObject):
    column = modelled(Column("n", Kind.INTEGER, Bounds(low, low + width), default=low))
    values = data.draw(st.lists(st.integers(low, low + width), min_size=1))
    found = back(column, np.array(values, np.float64))
    assert all(low <= each <= low + width and type(each) is int for each in found)
    slack = (width + 1) / column.column.classes * 1.01 + 2 ** (max(abs(low), abs(low + width)).bit_length() - 50)
    assert all(abs(each - value) <= slack for each, value in zip(found, values, strict=True))


def test_dates_and_times_come_back_within_their_class():
    year = Bounds(date(2024, 1, 1), date(2024, 12, 31))
    days = [date(2024, 1, 1) + timedelta(days=at) for at in range(366)]
    found = back(modelled(Column("d", Kind.DATE, year)), np.array(days, "datetime64[D]"))
    assert all(abs(each - day) <= timedelta(days=366 / CLASSES + 1) for each, day in zip(found, days, strict=True))
    week = modelled(Column("d", Kind.DATE, Bounds(days[0], days[6])))
    assert back(week, np.array(days[:7], "datetime64[D]")) == days[:7]
    start = datetime.fromisoformat("1969-12-31T23:00:00")
    hours = [start + timedelta(hours=at) for at in range(3)]
    moments = modelled(Column("t", Kind.DATETIME, Bounds(hours[0], hours[-1])))
    near = back(moments, np.array(hours, "datetime64[us]"))
    assert all(abs(each - hour) <= timedelta(hours=2 / CLASSES) for each, hour in zip(near, hours, strict=True))
    assert hours[0] <= min(near) and max(near) <= hours[-1]


def test_keys_of_all_kinds_come_back_and_absent_values_are_absent():
    texts = modelled(Column("k", Kind.TEXT, keys=("nörd", "北", "it's", "")))
    assert back(texts, np.array(["北", "", "it's"], object)) == ["北", "", "it's"]
    waves = modelled(Column("k", Kind.INTEGER, keys=(3, 1)))
    assert back(waves, np.array([1.0, 3.0])) == [1, 3]
    truths = modelled(Column("k", Kind.BOOLEAN))
    assert back(truths, np.array([True, False])) == [True, False]
    dates = modelled(Column("k", Kind.DATE, keys=(date(2025, 5, 1), date(1960, 1, 2))))
    assert back(dates, np.array(["1960-01-02", "2025-05-01"], "datetime64[D]")) == [date(1960, 1, 2), date(2025, 5, 1)]
    for column, values in ((texts, np.array(["", "x"], object)), (waves, np.array([0.0, 1.0]))):
        assert column.values(column.codes(values, np.ones(2, bool)), CHANCE).to_pylist() == [None, None]


def test_numbers_lie_on_their_step():
    column = modelled(Column("x", Kind.NUMBER, Bounds(0, 1), step=__import__("fractions").Fraction(1, 10)))
    found = column.values(np.full(100, CLASSES - 1, np.int32), CHANCE).to_pylist()
    assert set(found) <= {0.9, 1.0}


def test_the_policy_of_these_tests_has_every_kind():
    assert all(f'type = "{kind.value}"' in COLUMNS for kind in Kind) and "{columns}" in POLICY

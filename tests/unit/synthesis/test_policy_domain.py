"""The domain follows from the policy; values become codes and codes values of the policy's types."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.synthesis.made import COLUMNS, MODELLED, POLICY, curator_of, some_rows

from dalenius.errors import InputError, NotAllowedError, UnknownColumnError
from dalenius.releasing.opened import Opened, tables_of
from dalenius.synthesis.modelled import MOST_CLASSES, MOST_KEYS, Modelled
from dalenius.synthesis.policy_domain import PolicyDomain, domain_of
from dalenius.synthesis.position_classes import Classes
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
    # keys or classes, those that are sought at most; and one for absent values where there is no default
    assert sizes == {
        "sex": 3,
        "région": 4,
        "bmi": MOST_CLASSES + 1,
        "age": 101,
        "day": MOST_CLASSES + 1,
        "at": MOST_CLASSES + 1,
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


CLASSES = 32


def settled(column: Column) -> Modelled:
    """With equal classes, where they would be sought."""
    found = Modelled.of(column)
    return found.with_classes(Classes.equal(found.grid.size, CLASSES)) if found.sought and found.grid else found


def back(column: Modelled, values: np.ndarray) -> list[Any]:
    codes = column.codes(values, np.zeros(len(values), bool))
    found: list[Any] = column.values(codes, CHANCE).to_pylist()
    return found


@given(st.integers(-(2**40), 2**40), st.integers(0, 127), st.data())
def test_few_whole_numbers_come_back_as_they_were(low: int, width: int, data: st.DataObject):
    column = settled(Column("n", Kind.INTEGER, Bounds(low, low + width)))
    values = data.draw(st.lists(st.integers(low, low + width), min_size=1))
    assert back(column, np.array(values, np.float64)) == values
    assert column.column.size == width + 2


@given(st.integers(-(2**62), 2**62), st.integers(1, 2**62), st.data())
def test_many_whole_numbers_come_back_near_and_within_their_bounds(low: int, width: int, data: st.DataObject):
    column = settled(Column("n", Kind.INTEGER, Bounds(low, low + width), default=low))
    values = data.draw(st.lists(st.integers(low, low + width), min_size=1))
    found = back(column, np.array(values, np.float64))
    assert all(low <= each <= low + width and type(each) is int for each in found)
    slack = (width + 1) / column.column.classes * 1.01 + 2 ** (max(abs(low), abs(low + width)).bit_length() - 50)
    assert all(abs(each - value) <= slack for each, value in zip(found, values, strict=True))


def test_dates_and_times_come_back_within_their_class():
    year = Bounds(date(2024, 1, 1), date(2024, 12, 31))
    days = [date(2024, 1, 1) + timedelta(days=at) for at in range(366)]
    found = back(settled(Column("d", Kind.DATE, year)), np.array(days, "datetime64[D]"))
    assert all(abs(each - day) <= timedelta(days=366 / CLASSES + 1) for each, day in zip(found, days, strict=True))
    week = settled(Column("d", Kind.DATE, Bounds(days[0], days[6])))
    assert back(week, np.array(days[:7], "datetime64[D]")) == days[:7]
    start = datetime.fromisoformat("1969-12-31T23:00:00")
    hours = [start + timedelta(hours=at) for at in range(3)]
    moments = settled(Column("t", Kind.DATETIME, Bounds(hours[0], hours[-1])))
    near = back(moments, np.array(hours, "datetime64[us]"))
    assert all(abs(each - hour) <= timedelta(hours=2 / CLASSES) for each, hour in zip(near, hours, strict=True))
    assert hours[0] <= min(near) and max(near) <= hours[-1]


def test_keys_of_all_kinds_come_back_and_absent_values_are_absent():
    texts = settled(Column("k", Kind.TEXT, keys=("nörd", "北", "it's", "")))
    assert back(texts, np.array(["北", "", "it's"], object)) == ["北", "", "it's"]
    waves = settled(Column("k", Kind.INTEGER, keys=(3, 1)))
    assert back(waves, np.array([1.0, 3.0])) == [1, 3]
    truths = settled(Column("k", Kind.BOOLEAN))
    assert back(truths, np.array([True, False])) == [True, False]
    dates = settled(Column("k", Kind.DATE, keys=(date(2025, 5, 1), date(1960, 1, 2))))
    assert back(dates, np.array(["1960-01-02", "2025-05-01"], "datetime64[D]")) == [date(1960, 1, 2), date(2025, 5, 1)]
    for column, values in ((texts, np.array(["", "x"], object)), (waves, np.array([0.0, 1.0]))):
        assert column.values(column.codes(values, np.ones(2, bool)), CHANCE).to_pylist() == [None, None]


def test_numbers_lie_on_their_step():
    column = Modelled.of(Column("x", Kind.NUMBER, Bounds(0, 1), step=Fraction(1, 10)))
    tenths = [at / 10 for at in range(11)]
    assert not column.sought and column.column.size == 12
    assert back(column, np.array(tenths)) == tenths
    wide = settled(Column("x", Kind.NUMBER, Bounds(-5, 5000), step=Fraction(1, 4)))
    found = wide.values(np.arange(CLASSES).repeat(20), CHANCE).to_pylist()
    assert all(each * 4 == round(each * 4) and -5 <= each <= 5000 for each in found)


def test_what_is_sought_is_what_the_policy_leaves_open():
    sought = {
        "wide": Column("a", Kind.INTEGER, Bounds(0, 128)),
        "fine": Column("b", Kind.NUMBER, Bounds(0, 1), step=Fraction(1, 1000)),
        "open": Column("c", Kind.CATEGORY),
    }
    for each in map(Modelled.of, sought.values()):
        assert each.sought and Modelled.of_json(each.to_json()) == each
        with pytest.raises(RuntimeError):
            each.values(np.zeros(1, np.int32), CHANCE)
    assert Modelled.of(sought["open"]).column.size == MOST_KEYS + 2  # the rest, and absent values
    for column in (
        Column("d", Kind.INTEGER, Bounds(0, 127)),
        Column("e", Kind.BOOLEAN),
        Column("f", Kind.CATEGORY, keys=("a",)),
    ):
        assert not Modelled.of(column).sought


def test_keys_that_were_found_have_a_rest():
    found = Modelled.of(Column("city", Kind.CATEGORY)).with_keys(("北", "other"))
    values, absent = np.array(["北", "x", "other", "", "z"], object), np.array([False] * 3 + [True, False])
    assert found.codes(values, absent).tolist() == [0, 2, 1, 3, 2]
    assert found.values(np.array([0, 1, 2, 3]), CHANCE).to_pylist() == ["北", "other", "(other)", None]
    assert Modelled.of_json(found.to_json()) == found
    none = Modelled.of(Column("city", Kind.CATEGORY, default="")).with_keys(())
    assert none.column.size == 1 and none.codes(values[:2], absent[:2]).tolist() == [0, 0]
    assert none.values(np.zeros(2, np.int32), CHANCE).to_pylist() == ["other", "other"]


def test_the_policy_of_these_tests_has_every_kind():
    assert all(f'type = "{kind.value}"' in COLUMNS for kind in Kind) and "{columns}" in POLICY

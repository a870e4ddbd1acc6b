"""Whose a row is, in a policy: columns, or a path of keys."""

from __future__ import annotations

import pytest

from dalenius.errors import PolicyInvalidError
from dalenius.tables.policy import Hop, path_text
from dalenius.tables.reading import read_text

POLICY = """
[table]
name = "lineitem"
source = "lineitem.parquet"
unit = {unit}
dataset = "shop"
[budget]
epsilon = 1.0
delta = 1e-6
[columns.quantity]
type = "integer"
bounds = [0, 50]
[contribution]
rows = 10
"""


def read(unit):
    return read_text(POLICY.replace("{unit}", unit))


@pytest.mark.parametrize(
    ("path", "unit", "hops"),
    [
        (
            "l_orderkey -> orders.o_orderkey -> orders.o_custkey",
            ("o_custkey",),
            (Hop("l_orderkey", "orders", "o_orderkey"),),
        ),
        (
            "  part->items.id->items.order  -> orders.id -> orders.user ",
            ("user",),
            (Hop("part", "items", "id"), Hop("order", "orders", "id")),
        ),
        ("a b -> t.the key -> t.x.y", ("x.y",), (Hop("a b", "t", "the key"),)),
    ],
)
def test_a_path_goes_from_key_to_key_and_ends_at_the_unit(path, unit, hops):
    policy = read(f'{{ path = "{path}" }}')
    assert (policy.unit, policy.path) == (unit, hops)
    text = path_text(hops, unit)
    assert read(f'{{ path = "{text}" }}').path == hops  # as it is written, it is read again
    assert read(f'{{ path = "{text}" }}').unit == unit


def test_columns_are_units_without_a_path():
    assert (read('"user_id"').unit, read('"user_id"').path) == (("user_id",), ())
    assert read('["user_id", "day"]').unit == ("user_id", "day")


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ('{ path = "" }', "is empty"),
        ('{ path = "a" }', "no path"),
        ('{ path = "a -> t.k" }', "no path"),
        ('{ path = "a -> t.k -> t.b -> u.k" }', "no path"),
        ('{ path = " -> t.k -> t.b" }', "no path"),
        ('{ path = "a -> t.k -> u.b" }', "do not belong together"),
        ('{ path = "a -> k -> b" }', "do not belong together"),
        ('{ path = "a -> t. -> t.b" }', "do not belong together"),
        ('{ path = "a -> 1t.k -> 1t.b" }', "do not belong together"),
        ('{ path = "a -> lineitem.k -> lineitem.b" }', "comes to table 'lineitem' again"),
        ('{ path = "a -> LineItem.k -> LineItem.b" }', "comes to table 'LineItem' again"),
        ('{ path = "a -> t.k -> t.b -> t.c -> t.d" }', "comes to table 't' again"),
        ("{ path = 3 }", "must be"),
        ('{ way = "a -> t.k -> t.b" }', "no such key"),
        ("{ }", "missing"),
        ("[]", "a column or a list of columns"),
        ("3", "a column or a list of columns"),
        ('["a", "a"]', "there twice"),
    ],
)
def test_what_is_no_unit_is_told_with_its_place(unit, words):
    with pytest.raises(PolicyInvalidError) as refusal:
        read(unit)
    assert "table.unit" in str(refusal.value) and words in str(refusal.value)
    assert refusal.value.fix

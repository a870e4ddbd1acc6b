"""Functions give the values that public cells were listed by, to the bit, whichever engine works them out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.function_values import values_of

from dalenius.measuring.engines.duckdb.rendering import _TEMPLATES
from dalenius.measuring.engines.sources import reference
from dalenius.measuring.functions import FUNCTIONS


@pytest.fixture(scope="module")
def table(request):
    return json.loads((Path(request.config.rootpath) / "tests/data/function_values.json").read_text())


def test_every_function_is_in_the_table(table):
    assert {name.split("(")[0] for name in table} == set(FUNCTIONS)


def test_the_reference_gives_the_values_of_the_table(table):
    found = values_of(reference())
    assert found.keys() == table.keys()
    assert {name for name in found if found[name] != table[name]} == set()


def test_a_function_that_is_written_in_another_way_shows(table, monkeypatch):
    monkeypatch.setitem(_TEMPLATES, "sign", "CAST(CASE WHEN {1} > 0 THEN 1 WHEN {1} < 0 THEN -1 END AS DOUBLE)")
    found = values_of(reference())
    assert {name for name in found if found[name] != table[name]} == {"sign(number)"}

"""The policy of the visits table, as the manual has it."""

import pytest

VISITS = """
[table]
name = "visits"
source = "visits.parquet"          # files DuckDB reads: parquet, csv, globs
unit = "user_id"                   # a column or a list of columns (user_id, day); key paths come in a later issue
neighbors = "add-remove"           # or "substitute" (then the number of units is public)
[budget]
epsilon = 3.0
delta = 1e-6
accounting = "zcdp"                # or "pure"
[analysts.ana]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [18, 90]
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.amount]
type = "number"
bounds = [0, 5000]
step = 0.01
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[contribution]
rows = 300
groups = 8
totals = { amount = 20000 }
"""


@pytest.fixture
def visits() -> str:
    """Its text."""
    return VISITS

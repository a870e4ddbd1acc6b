"""The visits are the same for everyone, and some people have many."""

from collections import Counter
from datetime import date

from dalenius.samples.visits import MOST_AMOUNT, OLDEST, REGIONS, YOUNGEST, visits


def test_the_table_is_seeded_and_in_its_bounds():
    rows = visits()
    assert rows == visits() and rows != visits(seed=1)
    assert 18_000 < len(rows) < 22_000 and len({row.user_id for row in rows}) == 3000
    assert {row.region for row in rows} == set(REGIONS)
    assert all(YOUNGEST <= row.age <= OLDEST and 0 < row.amount <= MOST_AMOUNT for row in rows)
    assert min(row.when for row in rows) == date(2025, 1, 1) and max(row.when for row in rows) == date(2025, 12, 31)
    assert len({(row.user_id, row.age) for row in rows}) == 3000  # nobody has two ages


def test_visits_and_amounts_are_heavy_tailed():
    rows = visits()
    each = sorted(Counter(row.user_id for row in rows).values())
    assert each[-1] > 8 * len(rows) / 3000 and each[0] >= 1
    amounts = sorted(row.amount for row in rows)
    assert amounts[-1] > 15 * sum(amounts) / len(rows)

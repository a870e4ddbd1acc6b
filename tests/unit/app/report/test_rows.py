"""What the same counts would cost with noise: by the policy, where it prices them; else by formula."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.published import protected_in

from dalenius.anonymity.sources import table_rows
from dalenius.app.report.rows import noise_cost


def test_the_price_is_that_of_the_policy_where_it_has_one(tmp_path: Path):
    curator = protected_in(tmp_path)
    rows = table_rows("people", curator.registry)
    found = noise_cost(rows.read(), rows.roles, rows, curator)
    assert "does not price these columns together" in found.basis  # zip is not declared
    assert found.errors[-1] == pytest.approx((1.0, 2.9957), rel=1e-4)
    ages = replace(rows, section={"quasi": ["age"]})
    told = noise_cost(ages.read(), ages.roles, ages, curator)
    preview = curator.analyst("ana").preview("SELECT age, COUNT(*) AS n FROM people GROUP BY age", epsilon=0.5)
    assert told.basis.startswith("the preview") and dict(told.errors)[0.5] == preview.choices[0].noise_error[-1]
    assert told.useful is not None and told.useful > 1

"""What is asked, as one value that any client may write."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dalenius.errors import InputError
from dalenius.queries.ask import Ask, limits_of_json, limits_to_json


@pytest.mark.parametrize("total", [4000, 0.25, "99.95", "1e-3", "1999/20", 1.5e300, "1e300"])
def test_limits_come_back_from_json_as_they_were(total):
    limits = limits_of_json({"rows": 3, "totals": {"amount": total}, "search": 0.1})
    assert limits.totals == {"amount": Fraction(str(total))}
    assert limits_of_json(limits_to_json(limits)) == limits


@pytest.mark.parametrize(
    "total", ["1e60000000", "1e-60000000", "1E+4000", "9" * 5000, "1/" + "3" * 5000, "1/0", "nan", "inf", ""]
)
def test_a_total_is_a_number_of_sensible_size(total):
    """ "1e60000000" is a short text, and a fraction over which a server would sit for minutes."""
    with pytest.raises(InputError, match="no limits"):
        Ask.of({"question": "SELECT COUNT(*) FROM visits", "limits": {"totals": {"amount": total}}})

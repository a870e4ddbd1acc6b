"""Numbers as people write them."""

from __future__ import annotations

import math

_MOST, _LEAST = 1e15, 1e-6  # beyond these an exponent is easier to read
_SMALL = 0.001


def to_digits(value: float, digits: int) -> str:
    """A number to so many digits, with commas and without an exponent.

    >>> to_digits(26214.4, 6), to_digits(1234567.8, 3), to_digits(0.00012, 2), to_digits(10.0, 6), to_digits(1e20, 3)
    ('26,214.4', '1,230,000', '0.00012', '10', '1e+20')
    """
    near = float(f"{value:.{digits}g}")
    if near == 0 or not _LEAST <= abs(near) < _MOST:
        return f"{near:g}"
    text = f"{near:,.{max(0, digits - 1 - math.floor(math.log10(abs(near))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count_of(number: int, one: str) -> str:
    """So many of a thing whose plural ends in s.

    >>> count_of(1, "row"), count_of(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def to_percent(part: float) -> str:
    """A share in per cent; a small one is never shown as nothing.

    >>> to_percent(0.0625), to_percent(0.00004), to_percent(0.0)
    ('6.2%', 'less than 0.1%', 'less than 0.1%')
    """
    return "less than 0.1%" if part < _SMALL else f"{part:.1%}"


def about_percent(part: float) -> str:
    """An estimated share in per cent.

    >>> about_percent(0.0625), about_percent(0.00004)
    ('about 6.2%', 'less than 0.1%')
    """
    return ("" if part < _SMALL else "about ") + to_percent(part)

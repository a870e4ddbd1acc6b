"""What to write instead of functions that are not here: by the name that was typed, why, and another way."""

from __future__ import annotations

from collections.abc import Mapping

UNSHOWN = "It is not among what has been shown to be safe."
REFERENCE = "See docs/reference/sql.md for what can be asked."
_ONE_ROW = "One person's row could decide it."
_LATER = "The same question would mean another thing later."
_BITS = "Numbers are doubles here, which have no bits."

WAYS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("BOOL_AND", "BOOL_OR", "LOGICAL_AND", "LOGICAL_OR", "EVERY", "ANY_TRUE"),
        (_ONE_ROW, "Ask how many there are: COUNT_IF(p), or AVG(CASE WHEN p THEN 1 ELSE 0 END) for their share."),
    ),
    "MODE": (UNSHOWN, "Ask for COUNT(*) of each value: GROUP BY x ORDER BY COUNT(*) DESC LIMIT 1."),
    **dict.fromkeys(
        ("APPROX_TOP_COUNT", "APPROX_TOP_K", "TOPK", "HISTOGRAM"),
        (UNSHOWN, "Ask for COUNT(*) of each value: GROUP BY x ORDER BY COUNT(*) DESC LIMIT 3."),
    ),
    **dict.fromkeys(
        ("SKEWNESS", "KURTOSIS", "KURTOSIS_POP", "ENTROPY", "MAD"),
        (UNSHOWN, "Ask for AVG(POWER(x, 3)), AVG(POWER(x, 2)) and AVG(x), and put them together."),
    ),
    "INITCAP": ("DuckDB has no such function.", "Write UPPER(LEFT(a, 1)) || LOWER(SUBSTRING(a, 2))."),
    "TRANSLATE": (UNSHOWN, "Write REPLACE(a, 'x', 'y') for each character."),
    "REVERSE": (UNSHOWN, "Write ENDS_WITH(a, 'x'), RIGHT(a, 3) or SPLIT_PART(a, '-', -1)."),
    "REPEAT": (UNSHOWN, "Write the text out."),
    "OVERLAY": (UNSHOWN, "Write 'X' || SUBSTRING(a, 2)."),
    **dict.fromkeys(
        ("MD5", "SHA1", "SHA256", "HASH", "FARM_FINGERPRINT"),
        ("It would only rename values.", "Group by the value itself; keys that few people have do not appear."),
    ),
    **dict.fromkeys(
        ("REGEXP_REPLACE", "REGEXP_EXTRACT", "REGEXP_SUBSTR"),
        (UNSHOWN, "Write SPLIT_PART, REPLACE, or CASE WHEN REGEXP_MATCHES(a, 'x') THEN 'y' END."),
    ),
    **dict.fromkeys(
        ("ARRAY_LENGTH", "LIST_LENGTH", "CARDINALITY", "SPLIT", "STRING_SPLIT", "STRING_TO_ARRAY"),
        ("Lists are not supported.", "For a number of words, write LENGTH(a) - LENGTH(REPLACE(a, ' ', '')) + 1."),
    ),
    "BIT_COUNT": (_BITS, "Write x % 2, x // 2 % 2 and so on."),
    "ADD_MONTHS": ("Databases differ about the last day of a month.", "Write d + INTERVAL 1 MONTH."),
    "MONTHS_BETWEEN": ("Databases differ about parts of a month.", "Write DATE_DIFF('month', d, e)."),
    "AGE": (
        "It is there for full years between dates alone.",
        "Write EXTRACT(year FROM AGE(DATE '2025-01-01', CAST(t AS DATE))), or d < DATE '2025-01-01' - INTERVAL 9 YEAR.",
    ),
    **dict.fromkeys(
        ("MAKE_DATE", "DATEFROMPARTS", "DATE_FROM_PARTS"),
        (UNSHOWN, "Write numbers, as in MAKE_DATE(2024, 2, 29), or DATE_TRUNC('month', d)."),
    ),
    **dict.fromkeys(
        ("TO_CHAR", "FORMAT", "DATE_FORMAT"),
        (UNSHOWN, "Write STRFTIME(d, '%Y-%m'), with %Y, %m, %d, %H, %M, %S, %y, %j and the names %A, %a, %B, %b."),
    ),
    **dict.fromkeys(
        ("NOW", "GETDATE", "SYSDATE", "SYSDATETIME", "GETUTCDATE", "TODAY", "LOCALTIMESTAMP", "CURRENT_TIMESTAMP"),
        (_LATER, "Write the date: d >= DATE '2025-01-31'."),
    ),
}


def way_around(name: str) -> tuple[str, str]:
    """Why a function is not here, and what to write instead."""
    return WAYS.get(name.upper(), (UNSHOWN, REFERENCE))

"""What to write instead of functions that are not here: by the name that was typed, why, and another way."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from dalenius.measuring.functions import FUNCTIONS
from dalenius.measuring.statistics import FUNCTIONS as AGGREGATES
from dalenius.tables.mistakes import nearest

UNSHOWN = "It is not among what has been shown to be safe."
REFERENCE = "See docs/reference/sql.md for what can be asked."
_ONE_ROW = "One person's row could decide it."
_LATER = "The same question would mean another thing later."
_NAME = re.compile(r"([A-Z][A-Z0-9_]*)\(")
_BITS = "Numbers are doubles here, which have no bits."

WAYS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("BOOL_AND", "BOOL_OR", "LOGICAL_AND", "LOGICAL_OR", "EVERY", "ANY_TRUE"),
        (_ONE_ROW, "Ask how many there are: COUNT_IF(p), or AVG(CASE WHEN p THEN 1 ELSE 0 END) for their share."),
    ),
    **dict.fromkeys(
        ("APPROX_TOP_COUNT", "APPROX_TOP_K", "TOPK", "HISTOGRAM"),
        (UNSHOWN, "Ask for COUNT(*) of each value: GROUP BY x ORDER BY COUNT(*) DESC LIMIT 3."),
    ),
    **dict.fromkeys(
        ("GEOMEAN", "GEOMETRIC_MEAN", "PRODUCT"),
        (
            UNSHOWN,
            "Write EXP(AVG(LN(x))), with WHERE x > 0 where x may be 0; EXP(SUM(LN(x))) for a product.",
        ),
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
    "DATEADD": (
        "It moves by a number that stands in the question.",
        "Write d + INTERVAL 3 MONTH, or DATE_TRUNC('week', d) for the Monday before.",
    ),
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
    "ENTROPY": (UNSHOWN, "Ask for COUNT(*) of each value, with GROUP BY; what is computed from that is free."),
    "MAD": (UNSHOWN, "Ask for MEDIAN(x), then for MEDIAN(ABS(x - 3)) with that number."),
    **dict.fromkeys(("BIT_AND", "BIT_OR", "BIT_XOR", "XOR"), (_BITS, "Write x % 2, x // 2 % 2 and so on.")),
    **dict.fromkeys(
        ("STRPTIME", "PARSE_TIMESTAMP", "PARSE_DATETIME", "TO_TIMESTAMP"),
        (UNSHOWN, "Write CAST(a AS TIMESTAMP) for ISO 8601, or MAKE_DATE of parts."),
    ),
    **dict.fromkeys(
        ("SOUNDEX", "LEVENSHTEIN", "EDITDIST3", "JACCARD", "JARO_SIMILARITY", "SIMILARITY"),
        (UNSHOWN, "Compare texts: LOWER(a) = 'x', a LIKE 'x%', CONTAINS(a, 'x')."),
    ),
    **dict.fromkeys(
        ("JSON_EXTRACT", "JSON_VALUE", "JSON_EXTRACT_STRING", "JSON_EXTRACT_SCALAR", "GET_JSON_OBJECT"),
        ("Texts are not looked into as JSON.", "Ask the owner for a column of it, or write CONTAINS(a, '\"x\"')."),
    ),
    **dict.fromkeys(
        ("PRINTF", "FORMAT_NUMBER", "STR"), (UNSHOWN, "Write a || b, and ROUND(x, 2) for the digits of a number.")
    ),
    **dict.fromkeys(("ASCII", "UNICODE", "ORD", "CHR", "CHAR"), (UNSHOWN, "Compare texts: LEFT(a, 1) = 'x'.")),
    **dict.fromkeys(("SINH", "COSH", "TANH"), (UNSHOWN, "Write it with EXP: (EXP(x) - EXP(-x)) / 2 is SINH(x).")),
    "COT": (UNSHOWN, "Write 1 / TAN(x)."),
    **dict.fromkeys(("FACTORIAL", "GAMMA", "LGAMMA"), (UNSHOWN, "Write CASE x WHEN 1 THEN 1 WHEN 2 THEN 2 … END.")),
    **dict.fromkeys(("GCD", "LCM"), (UNSHOWN, "Write x % 3 = 0 for the divisors that matter.")),
    **dict.fromkeys(("ISNAN", "IS_NAN", "ISINF", "IS_INF", "ISFINITE"), ("Such values are NULL.", "Write x IS NULL.")),
    **dict.fromkeys(("TRY", "TRY_TO_NUMBER"), ("What has no value is NULL anyway.", "Leave it out.")),
    **dict.fromkeys(
        ("STRUCT_PACK", "ROW", "MAP", "LIST_VALUE", "ARRAY"),
        ("A cell holds one value.", "Name the columns one by one."),
    ),
}

# The same of what has no name: by the kind of node that the parser makes of it.
_CELL, _JSON = ("A cell holds one value.", "Name the columns one by one."), "Texts are not looked into as JSON."
OPERATORS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "BitwiseLeftShift", "BitwiseRightShift", "Xor"),
        (_BITS, "Write x % 2, x // 2 % 2 and so on; x * 2 shifts."),
    ),
    **dict.fromkeys(("Bracket", "Slice"), ("Texts and lists have no places here.", "Write SUBSTRING(a, 1, 1).")),
    **dict.fromkeys(("Struct", "Map", "ToMap"), _CELL),
    **dict.fromkeys(
        ("JSONExtract", "JSONExtractScalar", "JSONBExtract", "JSONBExtractScalar", "Arrow"),
        (_JSON, "Ask the owner for a column of it, or write CONTAINS(a, 'x')."),
    ),
    "Glob": (UNSHOWN, "Write LIKE: a LIKE 'x%'."),
    "LikeAny": (UNSHOWN, "Write a LIKE 'x%' OR a LIKE 'y%'."),
    "AtTimeZone": ("The zone of a column stands in its policy.", "Leave it out, or add INTERVAL 1 HOUR."),
    "Order": ("An aggregate does not depend on an order.", "Leave ORDER BY out."),
    "Limit": ("How many rows there are is not known before.", "Write a number of rows: LIMIT 10."),
    "Version": ("Questions are about the data as it is now.", "Leave it out."),
}


def way_around(name: str) -> tuple[str, str]:
    """Why a function is not here, and what to write instead."""
    found = WAYS.get(name.upper())
    if found is not None:
        return found
    meant = nearest(name, _known_names(), cutoff=0.75)
    return (UNSHOWN, REFERENCE) if meant is None else ("No function here has that name.", f"Did you mean {meant}?")


@cache
def _known_names() -> tuple[str, ...]:
    """Functions and aggregates that can be asked, as they are written."""
    functions = (_NAME.match(each.says) for each in FUNCTIONS.values())
    special = ("COUNT", "COUNT_IF", "MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT")
    names = [*special, *map(str.upper, AGGREGATES), *(each[1] for each in functions if each is not None)]
    return tuple(dict.fromkeys(names))

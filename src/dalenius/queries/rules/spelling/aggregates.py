"""Aggregates in other words: VAR, STD, MEAN, ANON_SUM, APPROX_COUNT_DISTINCT, and regressions as ratios of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dalenius.errors import QuestionRefusedError
from dalenius.queries.rules.spelling.choices import case, is_null

if TYPE_CHECKING:
    from dalenius.queries.rules.spelling import Known

# What other databases call aggregates that are here.
NAMES = {
    "VAR": "VAR_SAMP",
    "VARP": "VAR_POP",
    "VARIANCE_POP": "VAR_POP",
    "VARIANCE_SAMP": "VAR_SAMP",
    "STD": "STDDEV_SAMP",
    "STDEV": "STDDEV_SAMP",
    "STDEVP": "STDDEV_POP",
    "COVAR": "COVAR_SAMP",
    "MEAN": "AVG",
    "AVERAGE": "AVG",
    "COUNT_BIG": "COUNT",
    "COVARIANCE": "COVAR_SAMP",
    "CORRELATION": "CORR",
    **{f"ANON_{each}": each for each in ("COUNT", "SUM", "AVG", "VAR_POP", "STDDEV_POP", "PERCENTILE_CONT")},
    "APPROX_MEDIAN": "MEDIAN",
    "APPROX_PERCENTILE": "QUANTILE_CONT",
    "PERCENTILE_APPROX": "QUANTILE_CONT",
    "ANON_VAR": "VAR_POP",
    "ANON_STDDEV": "STDDEV_POP",
    **dict.fromkeys(("FSUM", "KAHAN_SUM", "SUMKAHAN", "SUM_NO_OVERFLOW"), "SUM"),
    "FAVG": "AVG",
    "COUNT_STAR": "COUNT",
    **dict.fromkeys(("ANON_QUANTILES", "QUANTILES"), "APPROX_QUANTILES"),  # ANON_ goes where it is clamped (`clause`)
    "APPROX_AVG": "AVG",
    "APPROX_SUM": "SUM",
}

_OF_TWO = frozenset({"COVAR_SAMP", "CORR", "PERCENTILE_CONT", "QUANTILE_CONT", "APPROX_QUANTILES"})


def rename(node: Any, _: Known) -> Any:
    """VAR(x) → VAR_SAMP(x) and so on."""
    from sqlglot import exp

    name, arguments = NAMES[str(node.this).upper()], node.expressions
    if name == "COUNT":
        most = 0 if str(node.this).upper() == "COUNT_STAR" else 1
        return (
            exp.Count(this=arguments[0] if arguments else exp.Star(), big_int=True) if len(arguments) <= most else None
        )
    takes = 2 if name in _OF_TWO else 1
    if len(arguments) != takes:
        return None
    return exp.func(name, *arguments, dialect="duckdb")


def count_distinct(node: Any, _: Known) -> Any:
    """APPROX_COUNT_DISTINCT(x) → COUNT(DISTINCT x)."""
    from sqlglot import exp

    return exp.Count(this=exp.Distinct(expressions=[node.this]), big_int=True)


def count_chosen(node: Any, known: Known) -> Any:
    """COUNT(DISTINCT CASE WHEN p THEN x END) → COUNT(DISTINCT x) FILTER (WHERE p)."""
    from sqlglot import exp

    inner = node.this
    if not isinstance(inner, exp.Distinct) or len(inner.expressions) != 1 or isinstance(node.parent, exp.Filter):
        return None
    chosen = inner.expressions[0]
    while isinstance(chosen, exp.Paren):
        chosen = chosen.this
    if isinstance(chosen, exp.Case) and chosen.this is None and len(chosen.args["ifs"]) == 1:
        branch, otherwise = chosen.args["ifs"][0], chosen.args.get("default")
    elif isinstance(chosen, exp.If):
        branch, otherwise = chosen, chosen.args.get("false")
    else:
        return None
    value = branch.args["true"]
    if not isinstance(value, exp.Column) or not (otherwise is None or isinstance(otherwise, exp.Null)):
        return None
    if value.name.lower() in known.values:  # it can be asked about as it is, and is another question then
        return None
    counted = exp.Count(this=exp.Distinct(expressions=[value]), big_int=True)
    counted.meta.update(node.meta)
    return exp.Filter(this=counted, expression=exp.Where(this=branch.this))


def error_of_mean(node: Any, _: Known) -> Any:
    """SEM(x) → STDDEV_POP(x) / SQRT(COUNT(x)), as DuckDB has it."""
    from sqlglot import exp

    if isinstance(node.parent, exp.Filter):
        return None
    (value,) = node.expressions
    spread, count = exp.func("STDDEV_POP", value.copy(), dialect="duckdb"), exp.Count(this=value.copy(), big_int=True)
    for each in (spread, count):
        each.meta.update(node.meta)
    return exp.Paren(this=exp.Div(this=spread, expression=exp.Sqrt(this=count), typed=False))


def mode_within(node: Any, _: Known) -> Any:
    """MODE() WITHIN GROUP (ORDER BY x) → MODE(x); which of equally frequent values is shown differs anyway."""
    from sqlglot import exp

    order = node.expression
    terms = order.expressions if isinstance(order, exp.Order) else []
    if not isinstance(node.this, exp.Mode) or node.this.this is not None or len(terms) != 1:
        return None
    found = exp.Mode(this=terms[0].this.copy())
    found.meta.update(node.this.meta)
    return found


def pick_quantile(node: Any, _: Known) -> Any:
    """APPROX_QUANTILES(x, 4)[OFFSET(1)] → QUANTILE_CONT(x, 0.25)."""
    from sqlglot import exp

    inner = node.this
    if not isinstance(inner, exp.ApproxQuantiles) or len(node.expressions) != 1:
        return None
    place, parts = node.expressions[0], inner.expression
    first = 0
    if isinstance(place, exp.Anonymous) and str(place.this).upper() in {"OFFSET", "ORDINAL"}:
        first = int(str(place.this).upper() == "ORDINAL")
        if len(place.expressions) != 1:
            return None
        (place,) = place.expressions
    else:
        raise QuestionRefusedError(
            "A place in a list without OFFSET or ORDINAL is not supported.",
            why="Some databases count from 0, others from 1.",
            fix="Write APPROX_QUANTILES(x, 4)[OFFSET(1)], which is QUANTILE_CONT(x, 0.25).",
        )
    if not (isinstance(place, exp.Literal) and isinstance(parts, exp.Literal)):
        return None
    if not (place.name.isdigit() and parts.name.isdigit() and int(parts.name)):
        return None
    share = (int(place.name) - first) / int(parts.name)
    return exp.func("QUANTILE_CONT", inner.this, exp.Literal.number(repr(share)), dialect="duckdb")


# --- regressions, over the rows in which both y and x are there


def regress(node: Any, _: Known) -> Any:
    """REGR_SLOPE(y, x) and its relatives → COVAR_POP(y, x) / VAR_POP(x) FILTER (WHERE NOT y IS NULL)."""
    from sqlglot import exp

    return None if isinstance(node.parent, exp.Filter) else _regressed(node, lambda each: each)


def regress_filtered(node: Any, _: Known) -> Any:
    """REGR_SLOPE(y, x) FILTER (WHERE p)."""
    from sqlglot import exp

    where = node.expression
    return _regressed(node.this, lambda each: exp.Filter(this=each, expression=where.copy()))


def _regressed(node: Any, over: Callable[[Any], Any]) -> Any:
    from sqlglot import exp

    name = type(node).__name__.removeprefix("Regr")
    if not type(node).__name__.startswith("Regr") or node.expression is None:
        return None
    y, x = node.this, node.expression

    def aggregate(function: str, value: Any, beside: Any) -> Any:
        there = exp.Not(this=is_null(beside.copy()))
        found = exp.func(function, case(None, [(there, value.copy())]), dialect="duckdb")
        found.meta.update(node.meta)
        return over(found)

    def both(function: str) -> Any:
        found = exp.func(function, y.copy(), x.copy(), dialect="duckdb")
        found.meta.update(node.meta)
        return over(found)

    def divided(one: Any, other: Any) -> Any:
        return exp.Paren(this=exp.Div(this=one, expression=other, typed=False))

    def times(one: Any, other: Any) -> Any:
        return exp.Paren(this=exp.Mul(this=one, expression=other))

    def slope() -> Any:
        return divided(both("COVAR_POP"), aggregate("VAR_POP", x, y))

    def count() -> Any:
        rows = case(None, [(exp.Not(this=is_null(x.copy())), y.copy())])
        return over(exp.Count(this=rows, big_int=True))

    match name:
        case "Slope":
            return slope()
        case "Intercept":
            less = times(slope(), aggregate("AVG", x, y))
            return exp.Paren(this=exp.Sub(this=aggregate("AVG", y, x), expression=less))
        case "R2":
            return exp.Pow(this=both("CORR"), expression=exp.Literal.number(2))
        case "Count":
            return count()
        case "Avgx":
            return aggregate("AVG", x, y)
        case "Avgy":
            return aggregate("AVG", y, x)
        case "Sxx":
            return times(count(), aggregate("VAR_POP", x, y))
        case "Syy":
            return times(count(), aggregate("VAR_POP", y, x))
        case "Sxy":
            return times(count(), both("COVAR_POP"))
    return None

"""What analysts may know of a table: in JSON's terms, and on a terminal, where one of a server looks as one at home.

What a server says is text from outside: shown, never obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from dalenius._numbers import about_percent, count_of, to_digits, to_percent
from dalenius.app.views import readable
from dalenius.errors import NotAllowedError, SourceError
from dalenius.ledger.publications import warning
from dalenius.ledger.tokens import Role

if TYPE_CHECKING:
    from rich.console import Console

    from dalenius.curator import Curator
    from dalenius.ledger.tokens import Token
    from dalenius.tables.policy import Policy
    from dalenius.tables.registry import Version

_SHOWN_KEYS = 8


def summary(
    version: Version, limits: Mapping[str, Any] | None = None, closed: str | None = None, published: str = ""
) -> dict[str, Any]:
    """What analysts may know of a table: not where the data is, nor who else may ask.

    Found limits are public, and so is that rows of the data set were published.
    """
    return {
        "name": version.table,
        **shape(version.policy),
        "limits": limits,
        "public": public_of(version),
        "version": version.version,
        "data_version": version.data_version,
        "closed": closed,
        "published": published or None,
    }


def datasets_open_to(curator: Curator, token: Token) -> list[str]:
    """The data sets that a token may know of: an analyst, those with an allotment; of others nobody is told."""
    ledger = curator.ledger
    everything = token.role is not Role.ANALYST
    return [name for name in ledger.datasets() if everything or token.analyst in ledger.allotments(name)]


def open_to(curator: Curator, token: Token) -> list[Version]:
    """The tables that a token may ask about, or see."""
    datasets = set(datasets_open_to(curator, token))
    return [each for each in curator.tables() if each.dataset in datasets]


def summary_of(curator: Curator, version: Version) -> dict[str, Any]:
    """One of them, with what is known of it now."""
    published = warning(curator.ledger.published(version.dataset))
    return summary(version, curator.registry.limits(version), curator.registry.closed(version.table), published)


def shape(policy: Policy) -> dict[str, Any]:
    """The part that the policy itself says: whose rows they are, which columns there are, what one unit adds."""
    tree = policy.to_dict()
    return {
        "dataset": policy.dataset,
        "unit": list(policy.unit),
        "path": policy.whose if policy.path else None,
        "neighbors": policy.neighbors.value,
        "columns": tree.get("columns", {}),
        "contribution": tree.get("contribution", {}),
    }


def public_of(version: Version) -> dict[str, dict[str, Any]]:
    """The public tables beside a table: what is unique in them, and columns with types; none where files changed."""
    from dalenius.measuring.public import public_table
    from dalenius.tables.registry import check_public_unchanged

    found = {}
    for name, spec in version.policy.public.items():
        try:
            check_public_unchanged(version, [name])
            columns = dict(public_table(spec, version.public[name]).types)
        except (SourceError, NotAllowedError):  # asking will tell
            columns = None
        found[name] = {"key": list(spec.key), "columns": columns}
    return found


def print_tables(console: Console, summaries: Sequence[Mapping[str, Any]]) -> None:
    """All tables: a line each."""
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("table", "data set", "unit", "columns"):
        table.add_column(title, overflow="fold")
    for each in summaries:
        cells = (each["name"], each["dataset"], each["path"] or ", ".join(each["unit"]), ", ".join(each["columns"]))
        table.add_row(*(Text(readable(cell)) for cell in cells))
    console.print(table)
    public = sorted({name for each in summaries for name in each["public"]})
    if public:
        console.print(Text(readable(f"public, read exactly and for nothing: {', '.join(public)}"), "dim"))
    for each in summaries:
        _print_closed(console, each)


def print_table(console: Console, summary: Mapping[str, Any]) -> None:
    """One table in full."""
    console.print(Text(readable(summary["name"]), "bold"))
    _print_closed(console, summary)
    print_shape(console, summary)
    for line in limit_lines(summary["limits"] or {}, summary["unit"]):
        _print_dim(console, line)
    for name, found in summary["public"].items():
        known = found["columns"] or {"its files changed": ""}
        columns = ", ".join(f"{column} {type_}".rstrip() for column, type_ in known.items())
        key = f"; unique: {', '.join(found['key'])}" if found["key"] else ""
        _print_dim(console, f"public {name}: {columns}{key}")


def print_shape(console: Console, shape: Mapping[str, Any]) -> None:
    """What may be asked: columns, types, bounds, keys, limits (`shape`)."""
    unit = ", ".join(shape["unit"])
    _print_dim(console, f"protects each {unit} ({shape['neighbors']}), data set {shape['dataset']}")
    if shape["path"]:
        _print_dim(console, f"whose a row is: {shape['path']}")
    table = Table(box=None, padding=(0, 2), header_style="dim")
    for title in ("column", "type", "bounds", "step", "keys", "default"):
        table.add_column(title, overflow="fold")
    for name, column in shape["columns"].items():
        keys, step = column.get("keys") or [], column.get("step")
        shown = ", ".join(map(str, keys[:_SHOWN_KEYS])) + (f", … ({len(keys):,})" if len(keys) > _SHOWN_KEYS else "")
        bounds = " to ".join(_literal(each) for each in column.get("bounds") or ())
        kind = column["type"] + (f" ({column['zone']})" if column.get("zone") else "")
        default = "" if column.get("default") is None else _literal(column["default"])
        cells = (name, kind, bounds.replace('"', ""), _literal(step) if step not in {None, 1} else "", shown, default)
        table.add_row(*(Text(readable(cell)) for cell in cells))
    console.print(table)
    limits = shape["contribution"]
    parts = [count_of(limits[name], name.removesuffix("s")) for name in ("rows", "groups") if limits.get(name)]
    parts += [f"total of {name} {_literal(total)}" for name, total in (limits.get("totals") or {}).items()]
    if limits.get("units"):
        _print_dim(console, f"groups whose keys have to be found: of {limits['units']:,} {unit} or more")
    _print_dim(console, f"limits for one {unit}, declared: {', '.join(parts) or 'none'}")


def search_words(search: Mapping[str, Any], *, done: bool) -> str:
    """That limits are found privately, and what that costs the data set, in the currency that its budget adds up."""
    adds_up = "ε" if search["rho"] is None else "ρ"
    cost = f"ε = {search['epsilon']:.2g}, {to_percent(search['part'])} of the budget's {adds_up}, once"
    return f"limits {'were' if done else 'will be'} found privately ({cost})"


def found_words(found: Mapping[str, Any], unit: Sequence[str]) -> str:
    """How many units and rows there are, as `protect` found: both numbers are noisy."""
    units, rows = count_of(found["units"], "unit"), count_of(found["row_count"], "row")
    return f"found: about {units} (unit: {', '.join(unit)}) and {rows}{left(found)}"


def limit_lines(found: Mapping[str, Any], unit: Sequence[str]) -> list[str]:
    """The limits that were found for one unit, with what lies beyond them, for people."""
    if not found:
        return []
    clipped, begin = found.get("clipped", {}), f"limits for one {', '.join(unit)}, found privately:"
    lines = [f"{begin} {count_of(found['rows'], 'row')}" + _beyond(clipped.get("rows"), "rows") + left(found)]
    for name, total in found["totals"].items():
        beyond = _beyond(clipped.get(f"total {name}"), f"total of {name}")
        lines.append(f"{begin} total of {name} {to_digits(float(Fraction(total)), 10)}" + beyond)
    return lines


def left(found: Mapping[str, Any]) -> str:
    """Says so of limits, units and rows that a refresh left as they were found for earlier data."""
    return f", in data version {found['data_version']}" if "data_version" in found else ""


def _beyond(share: float | None, what: str) -> str:
    """Says it only where it was estimated; an estimate of nothing means that the noise hides it."""
    if share is None:
        return ""
    return f"; {about_percent(share)} of the {what} {'lie' if what == 'rows' else 'lies'} beyond"


def _print_closed(console: Console, summary: Mapping[str, Any]) -> None:
    if summary["closed"] is not None:
        words = readable(f"{summary['name']} is closed to everyone: {summary['closed']}")
        console.print(words, style="yellow", markup=False, highlight=False)
    if summary.get("published"):
        console.print(readable(summary["published"]), style="bold yellow", markup=False, highlight=False)


def _print_dim(console: Console, words: str) -> None:
    console.print(f"    {readable(words)}", style="dim", markup=False, highlight=False)


def _literal(value: Any) -> str:
    """A value of a summary as a policy would write it: no exponents."""
    from dalenius.tables.policy import literal

    return literal(Fraction(repr(value)) if isinstance(value, float) else value)

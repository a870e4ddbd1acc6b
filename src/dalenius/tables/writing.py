"""A policy as a tree of exact values, as TOML, and as a hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from dalenius.accounting.parameters import SELECTION
from dalenius.tables.policy import Column, Policy, path_text
from dalenius.tables.values import WIDEST, decimal_text

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_tree(policy: Policy) -> dict[str, Any]:
    """Everything that the policy says, defaults included; what it leaves out is left out."""
    table = {
        "name": policy.name,
        "source": list(policy.source),
        "unit": {"path": path_text(policy.path, policy.unit)} if policy.path else list(policy.unit),
        "neighbors": policy.neighbors.value,
        "dataset": policy.dataset,
    }
    tree: dict[str, Any] = {"table": table}
    if policy.budget is not None:
        spec = policy.budget
        period = {"column": spec.period.column, "every": spec.period.every} if spec.period else None
        tree["budget"] = _drop_none(
            {
                "epsilon": spec.epsilon,
                "delta": spec.delta,
                "accounting": spec.accounting,
                "period": period,
                # as old policies have them: not said
                "share_answers": None if spec.share_answers else False,
                "selection": None if spec.selection == SELECTION else spec.selection,
            }
        )
    tree["analysts"] = {name: {"epsilon": epsilon} for name, epsilon in policy.analysts.items()}
    tree["columns"] = {name: _column(each) for name, each in policy.columns.items()}
    limits = policy.contribution
    tree["contribution"] = _drop_none(
        {"rows": limits.rows, "groups": limits.groups, "totals": dict(limits.totals) or None, "units": limits.units}
    )
    tree["time"] = _drop_none({"answer": policy.time.answer, "cap": policy.time.cap, "late": policy.time.late})
    tree["anonymity"] = dict(policy.anonymity)
    if policy.public:
        tree["public"] = {
            "tables": {
                name: _drop_none({"source": list(each.source), "key": list(each.key) or None})
                for name, each in policy.public.items()
            }
        }
    return {name: each for name, each in tree.items() if each}


def digest_policy(policy: Policy) -> str:
    """The hash of the tree."""
    text = json.dumps(to_tree(policy), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def to_plain(value: Any) -> Any:
    """The tree in JSON's terms; decimals become the nearest double."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [to_plain(each) for each in value]
    return value


def to_toml(policy: Policy) -> str:
    """The tree as TOML. Reading it gives an equal policy, without any other file."""
    tree, parts = to_tree(policy), []
    for name, section in tree.items():
        if name in {"analysts", "columns"}:
            parts += [_section(f"{name}.{toml_key(each)}", values) for each, values in section.items()]
        elif name == "public":
            parts += [_section(f"public.tables.{toml_key(each)}", values) for each, values in section["tables"].items()]
        else:
            parts.append(_section(name, section))
    return "\n".join(parts)


def literal(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case Fraction():
            text = decimal_text(value)
            return text if "." in text or abs(value) < WIDEST else f"{text}.0"
        case int() | float():
            return repr(value)
        case str():
            return _quote(value)
        case date():
            return f'"{value.isoformat()}"'
        case Mapping():
            return "{ " + ", ".join(f"{toml_key(key)} = {literal(each)}" for key, each in value.items()) + " }"
        case _:
            return "[" + ", ".join(literal(each) for each in value) + "]"


def _section(name: str, values: Mapping[str, Any]) -> str:
    return f"[{name}]\n" + "".join(f"{toml_key(key)} = {literal(each)}\n" for key, each in values.items())


def _column(column: Column) -> dict[str, Any]:
    return _drop_none(
        {
            "type": column.kind.value,
            "zone": column.zone,
            "bounds": [column.bounds.low, column.bounds.high] if column.bounds else None,
            "step": column.step,
            "keys": list(column.keys) if column.keys is not None else None,
            "default": column.default,
        }
    )


def _drop_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def toml_key(name: str) -> str:
    """A name as a key of TOML."""
    return name if _BARE.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    # Not json.dumps: TOML wants DEL escaped, and knows no surrogate pairs.
    def escape(letter: str) -> str:
        if letter in '"\\':
            return f"\\{letter}"
        return f"\\u{ord(letter):04x}" if letter < " " or letter == "\x7f" else letter

    return '"' + "".join(map(escape, text)) + '"'

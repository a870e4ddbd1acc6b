"""The reference page of the HTTP API: its tables are written from the routes and their OpenAPI description.

`python -m dalenius.app.http.reference docs/reference/http.md` renews them; a test compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from dalenius.app.http.responses import PROBLEMS
from dalenius.app.http.routes import ROUTERS
from dalenius.app.http.service import allowed
from dalenius.ledger.tokens import Role
from dalenius.queries.reference import renew, table

BEGIN = "<!-- generated: python -m dalenius.app.http.reference docs/reference/http.md -->"

# What comes back where the description says no more than "an object"; the top-level members are tested.
OBJECTS = {
    "GET /healthz": "`status`",
    "GET /readyz": "`status`; 503 if the ledger cannot be read",
    "GET /metrics": "Prometheus' text format",
    "GET /v1/openapi.json": "OpenAPI 3.1",
    "GET /v1/jobs/{id}/events": "server-sent events `status`, each a job; ends with the job",
    "POST /v1/workloads": "`releases`: a [Release](#release) for each question, in order; `charge`, `remaining`, "
    "`free`, `receipt`: of all of them; `epsilon`, `confidence`, `questions`, `strategy`, `one_by_one`: as in a "
    "preview; `kind`: workload",
    "POST /v1/workloads/preview": "`questions`: of each what is expected, also one by one; `strategy`: what is "
    "measured for them; `one_by_one`: what each would give alone; `epsilon`, `delta`, `confidence`, `remaining`, "
    "`known`, `notes`",
    "POST /v1/synthetic": "`table`, `method`, `columns`, `left_out`: of each column that cannot be modelled what to "
    "declare; `facts`: what rows keep to; `rows` (by noisy count), `rows_per_unit`, `units`: `column`, `count`; "
    "`guarantee`, `charge`, "
    "`remaining`, `free`, `receipt`, `notes`; `model`: what rows are drawn from; `kind`: synthetic; `request`: what "
    "was asked for",
    "POST /v1/synthetic/preview": "`epsilon`, `table`, `method`, `words`, `columns`: of each `name`, `values`, "
    "`margin`, `kind`; `left_out`, `rows`, `rows_per_unit`, `work`, `memory`, `seconds`, `remaining`, `known`, "
    "`release` (the "
    "analyst's best of the same, or null), `notes`",
    "GET /v1/synthetic/{id}": "as `POST /v1/synthetic` gives it, `free`",
    "GET /v1/synthetic/{id}/rows": "the rows as csv or parquet, at most 200,000",
    "GET /v1/synthetic/{id}/comparisons": "`comparisons`: of each what `POST /v1/synthetic/compare` gives",
    "GET /v1/synthetic/{id}/report": "what [the report](synthesize.md#the-report) has; with `format=html` the document",
    "POST /v1/synthetic/compare": "`table`, `release`, `method`, `rows`, `rows_per_unit`; `ways`: of tables of 1, 2, 3 "
    "columns `columns`, `tables`, `of`, `error`, `margin`, `each`, `margin_each`; `prediction`: `column`, `classes`, "
    "`table`, `sigma`, `accuracy`, `margin`, `most_frequent`, `synthetic`, or null; `guarantee`, `charge`, "
    "`remaining`, `free`, `receipt`, `notes`; `kind`: comparison; `request`: what was asked for",
    "POST /v1/synthetic/compare/preview": "`epsilon`, `release`, `table`, `margins`, `predict`, `work`, "
    "`seconds`, `remaining`, `known`, `notes`",
    "POST /v1/synthetic/{id}/open": "`name`, `file` (below the data folder), `table`: what `protect --json` has",
    "POST /v1/models": "`table`, `target`, `classes`, `features`, `model`, `method`; `training`: `people`, `counted`, "
    "`rows_per_unit`, `columns`, `steps`, `rate`, `batch`, `slots`, `clip`, `sigma`, `learning_rate`, `momentum`, "
    "`averaged`, `regularisation`; `held_out`; `alone`: ε of the training by itself, or null; `coefficients`: of each "
    "`output`, `feature`, `value`, `margin`; `left_out`, `guarantee`, `charge`, `remaining`, `free`, `receipt`, "
    "`notes`; `content`: what `weights.json` of a [model's folder](train.md#the-folder) holds; `kind`: model; "
    "`request`: what was asked for",
    "POST /v1/models/preview": "`epsilon`, `table`, `target`, `model`, `method`, `classes`, `features`, `left_out`, "
    "`columns`, `people` (by the released count, or null), `rows_per_unit`, `held_out`, `steps`, `rate`, `batch`, "
    "`sigma`, `clip`, `loss` (of accuracy, or null), `work`, `memory`, `seconds`, `remaining`, `known`, `release` (the "
    "analyst's best of the same, or null), `notes`",
    "GET /v1/models/{id}": "as `POST /v1/models` gives it, `free`",
    "POST /v1/models/score": "`release`; `score`: `of`, `count`, `accuracy`, `error`, `margin`; `guarantee`, `charge`, "
    "`remaining`, `free`, `receipt`, `notes`; `kind`: score; `request`: what was asked for",
    "POST /v1/models/score/preview": "`epsilon`, `release`, `table`, `margin`, `seconds`, `remaining`, `known`, "
    "`notes`",
    "POST /v1/publications": "what `dalenius anonymize run --json` has, and: `file` (where its rows are got), `curve` "
    "(loss by k), `kind` (publication), `guarantee` and all of `charge` (null, which is not zero)",
    "GET /v1/publications/{name}": "the bytes",
    "GET /v1/tables": "`tables`: of each what `dalenius tables --json` has; an analyst sees those of its data sets",
    "GET /v1/tables/{table}": "`tables`: this one",
    "GET /v1/budget": "`datasets`: [balances](ledger.md#balances-in-json), an analyst's own; all, for the others",
    "GET /v1/history": "`history`: charges, oldest first; `next`: give it as `after` for more, or null",
    "GET /v1/receipts/{id}": "the receipt; an analyst's own, any for the others",
    "GET /v1/releases/{id}": "a [Stored](#stored) with its `receipt`, and `content`: what is stored of it, as its kind "
    "reads it; an analyst's own, any for the others",
    "POST /v1/releases/{kind}": "what the kind tells; of questions, a [Release](#release)",
    "GET /v1/ledger": "`entries`: each with `number`, `kind`, `time`, `hash`, `data`; `next`",
    "GET /v1/ledger/verify": "`verified`, `entries`, `head`, `charges`, `releases`",
    "GET /v1/report": "what `dalenius ledger report --json` has but the file; "
    "with `format=html` [the document](ledger.md#the-report) as `text/html`",
    "GET /v1/alarms": "`alarms`: each with `entry`, `time`, `alarm` (`late`, `failed`, `index failed`, "
    "`source changed` or `suspended`), `charge`, `analyst`, and of those that were late `own`: whether it counts "
    "against the analyst",
    "POST /v1/protect": "`tables`: what `dalenius protect --json` has",
    "GET /v1/policies/{table}": "`table`, `version`, `policy` (TOML), `versions`",
    "GET /v1/policies/{table}/difference": "`table`, `from`, `to`, `difference`",
    "POST /v1/tables/{table}/refresh": "what `dalenius refresh --json` has",
    "GET /v1/analysts": "`analysts`: each with `analyst`, `dataset`, `epsilon`; "
    "`standings` and `datasets`: each a [Standing](#standing)",
    "PUT /v1/datasets/{dataset}/analysts/{analyst}": "the analyst's [balance](ledger.md#balances-in-json)",
    "DELETE /v1/datasets/{dataset}/analysts/{analyst}": "nothing",
    "GET /v1/tokens": "`tokens`: every token that was ever made, without secrets",
}


def describe_api() -> dict[str, Any]:
    """The OpenAPI description, without a home."""
    app = FastAPI(title="dalenius")
    for router in ROUTERS:
        app.include_router(router)
    return app.openapi()


def routes() -> Iterator[tuple[str, APIRoute]]:
    """Every route, by method and path."""
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute):
                yield f"{min(route.methods or ())} {route.path_format}", route


def roles(route: APIRoute) -> str:
    """Who may use it."""
    found = next((each for each in (allowed(one.call) for one in route.dependant.dependencies) if each), None)
    if found is None:
        return "no token"
    return "any" if set(found) == set(Role) else ", ".join(sorted(found))


def generated() -> str:
    """What stands between the marks."""
    told = describe_api()
    schemas: Mapping[str, Any] = told["components"]["schemas"]
    lines: list[str] = []
    for tag in dict.fromkeys(str(route.tags[0]) for _, route in routes()):
        rows = [_row(name, route, told) for name, route in routes() if route.tags[0] == tag]
        lines += ["", f"## {tag.capitalize()}", "", *table(("route", "role", "takes", "gives"), rows)]
    lines += ["", "## Objects"]
    for name, schema in schemas.items():
        if name == "ProblemOut":
            continue
        lines += ["", f"### {_shown(name)}", "", _line(schema.get("description", "")), ""]
        needed = schema.get("required", ()) if name.endswith("In") else ()  # answers have them all
        members = [(f"`{key}`", _type(each), _how(each, key in needed)) for key, each in schema["properties"].items()]
        lines += table(("member", "type", ""), members)
    lines += ["", "## Statuses of problems", ""]
    lines += table(("status", "means"), [(str(status), str(each["description"])) for status, each in PROBLEMS.items()])
    return "\n".join(lines).strip()


def _row(name: str, route: APIRoute, told: Mapping[str, Any]) -> tuple[str, str, str, str]:
    method, path = name.split(" ")
    operation = told["paths"][path][method.lower()]
    takes = [_parameter(each) for each in operation.get("parameters", ()) if each["in"] == "query"]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        takes.append(_type(content["application/json"]["schema"]) if "application/json" in content else "the bytes")
    gives = []
    for status, response in operation["responses"].items():
        if int(status) < 400:
            schema = response.get("content", {}).get("application/json", {}).get("schema", {})
            gives.append(f"{status}: {_type(schema) if '$ref' in schema else OBJECTS[name]}")
    return f"`{name}`<br>{_line(operation['description'])}", roles(route), "<br>".join(takes), "<br>".join(gives)


def _parameter(each: Mapping[str, Any]) -> str:
    schema = each["schema"]
    return f"`{each['name']}` ({', '.join(part for part in (_type(schema), _how(schema, needed=False)) if part)})"


def _shown(name: str) -> str:
    return f"{name.removesuffix('In')} request" if name.endswith("In") else name.removesuffix("Out")


def _type(schema: Mapping[str, Any]) -> str:
    """In words."""
    if "$ref" in schema:
        name = _shown(schema["$ref"].rpartition("/")[2])
        return "[Problem](errors.md#the-shape)" if name == "Problem" else f"[{name}](#{name.lower().replace(' ', '-')})"
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{each}`" for each in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(_type(each) for each in schema['prefixItems'])}]"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"object of {_type(values)}" if isinstance(values, Mapping) else "object"
    name = str(schema.get("type", "any"))
    return {"string": "text", "integer": "whole number"}.get(name, name)


def _how(schema: Mapping[str, Any], needed: bool) -> str:
    """Whether it is needed, its default, its limits and its description."""
    parts = ["needed"] if needed else []
    if not needed and schema.get("default") not in {None, ""}:
        parts.append(f"default {str(schema['default']).lower()}")
    items = schema.get("items", {})
    places = [schema, *schema.get("anyOf", ()), *(() if "prefixItems" in items else (items,))]
    for key, word in _LIMITS.items():
        parts += [f"{word} {each[key]:,g}" for each in places if key in each and each[key] != 2**53][:1]
    about = [_line(schema["description"]).rstrip(".")] if "description" in schema else []
    return "; ".join(part for part in (", ".join(parts), *about) if part)


_LIMITS = {
    "exclusiveMinimum": "above",
    "minimum": "from",
    "maximum": "to",
    "maxLength": "characters: up to",
    "maxItems": "items: up to",
}


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(renew(file.read_text(), BEGIN, generated()))

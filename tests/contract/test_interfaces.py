"""The promises to users that several parts share: error codes, exit codes, HTTP statuses, the error shape."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dalenius.errors import DaleniusError

# code: (exit code, HTTP status). A change here breaks users' scripts: write a decision first.
PROMISED = {
    "input.invalid": (2, 400),
    "policy.invalid": (2, 422),
    "policy.unknown-table": (3, 404),
    "policy.unknown-column": (3, 404),
    "policy.not-allowed": (3, 422),
    "sql.syntax": (2, 400),
    "sql.refused": (3, 422),
    "budget.exhausted": (4, 402),
    "ledger.corrupt": (6, 500),
    "ledger.unavailable": (5, 503),
    "source.unavailable": (5, 503),
    "source.changed": (5, 409),
    "engine.failed": (5, 503),
    "engine.timeout": (5, 503),
    "auth.missing": (3, 401),
    "auth.denied": (3, 403),
    "rate.limited": (3, 429),
    "report.invalid": (2, 400),
    "joint.refused": (6, 502),
    "internal": (1, 500),
}


def subclasses(cls: type[DaleniusError]) -> Iterator[type[DaleniusError]]:
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


def test_every_promised_code_has_its_exit_code_and_status():
    found = {each.code: (each.exit_code, each.status) for each in subclasses(DaleniusError) if "code" in vars(each)}
    assert found == PROMISED


def test_a_code_belongs_to_one_class():
    codes = [each.code for each in subclasses(DaleniusError) if "code" in vars(each)]
    assert len(codes) == len(set(codes))


@pytest.mark.parametrize("code", PROMISED)
def test_the_reference_lists_every_code(code: str, request: pytest.FixtureRequest):
    exit_code, status = PROMISED[code]
    page = (request.config.rootpath / "docs/reference/errors.md").read_text()
    assert f"| `{code}` | {exit_code} | {status} |" in page

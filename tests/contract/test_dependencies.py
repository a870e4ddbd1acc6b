"""The packages that `pyproject.toml` asks for are those that the code imports, no more and no fewer."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: asked for name, asked in PROJECT["optional-dependencies"].items() if name not in {"all", "dev"}}

# Imported where a caller hands in an object of theirs, so they are there when it happens.
BROUGHT_BY_THE_CALLER = {"dp-accounting"}
# The parts that a package is built of and shows: whoever has the one has the other.
PARTS = {"pydantic": "fastapi", "starlette": "fastapi", "python-socketio": "nicegui"}


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


@cache
def imported() -> set[str]:
    """The names of all packages that are imported anywhere in src, also inside functions."""
    modules: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                modules.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    known = packages_distributions()
    foreign = modules - set(sys.stdlib_module_names) - {"dalenius"}
    return {name_of(known[module][0]) for module in foreign}


def test_every_package_of_the_base_install_and_of_an_extra_is_imported():
    asked = {name_of(each) for each in (*PROJECT["dependencies"], *(each for some in EXTRAS.values() for each in some))}
    assert asked <= imported()
    assert all(EXTRAS.values()), "an extra without packages promises what is not there"


def test_all_means_all_extras():
    [everything] = PROJECT["optional-dependencies"]["all"]
    assert set(everything.removeprefix("dalenius[").removesuffix("]").split(",")) == set(EXTRAS)


def test_every_import_is_asked_for():
    asked = {name_of(each) for each in (*PROJECT["dependencies"], *(each for some in EXTRAS.values() for each in some))}
    assert {PARTS.get(name, name) for name in imported()} - BROUGHT_BY_THE_CALLER <= asked


def test_what_reads_questions_and_what_answers_them_have_upper_bounds():
    for package in ("sqlglot", "duckdb"):
        [requirement] = [each for each in PROJECT["dependencies"] if name_of(each) == package]
        assert re.search(r">=[0-9.]+,<[0-9]+$", requirement)


POLICY = """
[table]
name = "people"
source = "people.csv"
unit = "id"
[budget]
epsilon = 2.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [0, 110]
[contribution]
rows = 1
"""
PROGRAM = """
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"dp_accounting", "absl", "tree", "attr", "mpmath"}:
            raise ModuleNotFoundError(f"{name} was asked for", name=name)


sys.meta_path.insert(0, Absent())

from dalenius import Curator, account
from dalenius.accounting.events import Gaussian, PoissonSampled, Repeated, SampledWithoutReplacement
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError

Curator().protect("people.toml")
assert Curator().analyst("ana").ask("SELECT COUNT(*) AS n, AVG(age) AS age FROM people", epsilon=0.5).rows
for sampled in (
    PoissonSampled(0.01, Gaussian(1.0)),
    SampledWithoutReplacement(1, 100, Gaussian(1.0, Neighbors.SUBSTITUTE)),
):
    bounds = account(Repeated(sampled, 100), 1e-6).bounds
    assert 0 < bounds["pld"] <= bounds["rdp"] < 3
try:
    account(object(), 1e-6)
except InputError as error:
    print(error.message)
"""


@pytest.mark.integration
def test_questions_and_accounts_do_without_dp_accounting(tmp_path: Path):
    (tmp_path / "people.csv").write_text("id,age\n" + "".join(f"{n},{20 + n % 60}\n" for n in range(200)))
    (tmp_path / "people.toml").write_text(POLICY)
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "object cannot be accounted.\n"

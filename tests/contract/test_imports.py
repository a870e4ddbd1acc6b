"""Importing is cheap, and imports go down only."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HEAVY = (
    "numpy",
    "scipy",
    "dp_accounting",
    "typer",
    "rich",
    "cryptography",
    "duckdb",
    "pyarrow",
    "sqlglot",
    "matplotlib",
    "nicegui",
    "fastapi",
)

PROGRAM = """
import resource, sys
def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
start = cpu()
{statement}
print(cpu() - start, *sys.modules)
"""


def loaded_within(limit: float, statement: str) -> set[str]:
    """The modules that a statement loads in a fresh process, in fewer CPU seconds than that; the best of three."""
    for _ in range(3):
        program = PROGRAM.format(statement=statement)
        printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        seconds, *modules = printed.splitlines()[-1].split()
        if float(seconds) < limit:
            return set(modules)
    raise AssertionError(f"{statement} takes {seconds} s")


def test_import_dalenius_costs_next_to_nothing():
    assert loaded_within(0.3, "import dalenius").isdisjoint(HEAVY)


def test_the_error_tree_loads_nothing_heavy():
    assert loaded_within(0.3, "import dalenius.errors").isdisjoint(HEAVY)


def test_building_the_command_line_loads_no_numbers():
    modules = loaded_within(1.0, "from dalenius.app.cli import build; build()")
    assert modules.isdisjoint(set(HEAVY) - {"typer", "rich"})


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    done.stdout = re.sub(r"\x1b\[\d+m", "", done.stdout)  # older ones colour what nobody looks at
    return done


def test_the_contracts_hold(request: pytest.FixtureRequest):
    done = lint_imports(request.config.rootpath)
    assert done.returncode == 0, done.stdout


# The contracts name packages that come later. This tree has them all, so we know that the rules will bite.
ALLOWED = {
    "app/x.py": "import fastapi, nicegui\nfrom dalenius import audit, curator, samples, queries, accounting",
    "app/http/x.py": "",
    "app/console/x.py": "",
    "analyst.py": "",
    "audit/questions.py": "",
    "audit/synthetic.py": "",
    "audit/transcripts.py": "",
    "audit/x.py": "from dalenius.queries import _exact\nfrom dalenius import curator, samples",
    "curator.py": "from dalenius import queries, learning, samples",
    "queries/x.py": "import sqlglot\nfrom dalenius import owner, releasing, measuring, mechanisms, ledger, tables",
    "owner/x.py": "from dalenius import releasing, measuring, ledger, tables",
    "releasing/x.py": "from dalenius import measuring, ledger, tables",
    "measuring/x.py": "from dalenius import mechanisms, ledger, tables",
    "measuring/engines/x.py": "",
    "measuring/engines/duckdb/x.py": "import duckdb\nfrom dalenius.measuring.engines.duckdb import y",
    "measuring/engines/duckdb/y.py": "",
    "measuring/_exact.py": "",
    "anonymity/x.py": "from dalenius import tables",
    "synthesis/x.py": "import jax",
    "learning/x.py": "import jax\nfrom dalenius import mechanisms",
    "local/x.py": "from dalenius import mechanisms",
    "joint/x.py": "from dalenius import accounting",
    "mechanisms/x.py": "from dalenius import accounting",
    "ledger/x.py": "from dalenius import accounting, errors",
    "tables/x.py": "from dalenius import errors",
    "accounting/x.py": "from dalenius import errors, _extras",
    "samples/x.py": "import numpy",
    "_lazy.py": "",
    "_extras.py": "from dalenius import errors",
    "errors.py": "",
    "_version.py": "",
}
FORBIDDEN = [
    ("Imports go down only", "accounting", "dalenius.mechanisms"),
    ("Imports go down only", "queries", "dalenius.learning"),
    ("A mechanism describes", "ledger", "dalenius.mechanisms"),
    ("Sample tables are for", "queries", "dalenius.samples"),
    ("Sample tables hold no", "samples", "dalenius.mechanisms"),
    ("The app never reaches", "app", "dalenius.measuring._exact"),
    ("No server reaches", "app/http", "dalenius.audit.questions"),
    ("The SQL parser stays", "measuring", "sqlglot"),
    ("Each engine's library", "queries", "duckdb"),
    ("Each engine's library", "measuring", "duckdb"),
    ("DuckDB is behind the seam", "owner", "dalenius.measuring.engines.duckdb.y"),
    ("Imports go down only", "releasing", "dalenius.queries"),
    ("Imports go down only", "measuring", "dalenius.releasing"),
    ("jax stays", "queries", "jax"),
    ("Web libraries stay", "curator", "fastapi"),
]


def tree_of(folder: Path, root: Path) -> Path:
    """A tree with every package of the design, under the project's own contracts."""
    project = (root / "pyproject.toml").read_text()
    assert tomllib.loads(project)["tool"]["importlinter"]
    (folder / "pyproject.toml").write_text(project)
    for name, text in ALLOWED.items():
        path = folder / "dalenius" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    return folder


def test_the_contracts_allow_what_the_design_allows(tmp_path: Path, request: pytest.FixtureRequest):
    done = lint_imports(tree_of(tmp_path, request.config.rootpath))
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def broken(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> subprocess.CompletedProcess[str]:
    """What import-linter says of a tree that breaks every rule, each in a module of its own (or in `curator.py`)."""
    tree = tree_of(tmp_path_factory.mktemp("broken"), request.config.rootpath)
    for at, (_, where, imported) in enumerate(FORBIDDEN):
        path = tree / "dalenius" / (f"{where}.py" if f"{where}.py" in ALLOWED else f"{where}/y{at}.py")
        path.write_text(f"{ALLOWED.get(f'{where}.py', '')}\nimport {imported}\n")
    return lint_imports(tree)


@pytest.mark.parametrize("at", range(len(FORBIDDEN)), ids=[each[0] for each in FORBIDDEN])
def test_the_contracts_forbid_what_the_design_forbids(broken: subprocess.CompletedProcess[str], at: int):
    contract, where, imported = FORBIDDEN[at]
    assert broken.returncode != 0
    verdicts = [line for line in broken.stdout.splitlines() if line.startswith(contract)]
    assert any("BROKEN" in line for line in verdicts), broken.stdout
    # And for this very import, under the heading of this contract.
    (said,) = re.findall(
        rf"^{contract}[^\n]*\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", broken.stdout, re.DOTALL | re.MULTILINE
    )
    place = where.replace("/", ".")
    importer = f"dalenius.{place}" if f"{where}.py" in ALLOWED else f"dalenius.{place}.y{at}"
    assert re.search(rf"{re.escape(importer)} -> {re.escape(imported)}\b", said), said

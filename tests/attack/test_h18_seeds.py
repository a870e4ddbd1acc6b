"""H18: nothing public fixes the noise: no argument, no environment variable, no file, no other library's seed."""

from __future__ import annotations

import inspect
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.attack.hostile import nothing_charged, people, protected

import dalenius.mechanisms.noise as noise_package
from dalenius import Curator
from dalenius.analyst import Analyst
from dalenius.errors import DaleniusError
from dalenius.mechanisms import noise

SEED_LIKE = re.compile(r"seed|rng|random|state|generator|source|key|entropy|bits|nonce", re.IGNORECASE)

DRAW = """
from dalenius.mechanisms import noise
print([noise.discrete_laplace(2**51) for _ in range(3)], noise.uniform_int(2**62))
print(noise.discrete_gaussian(2**51, 100).tolist())
"""


@pytest.mark.parametrize("name", noise.__all__)
def test_no_public_function_takes_a_seed(name):
    signature = inspect.signature(getattr(noise, name))
    assert not [p for p in signature.parameters if SEED_LIKE.search(p)]
    assert not [p for p in signature.parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def test_no_source_file_reads_the_environment_or_a_file_or_another_generator():
    forbidden = re.compile(
        r"os\.environ|getenv|\bopen\(|read_(text|bytes)|np\.random|default_rng|import (random|secrets)"
    )
    for path in Path(noise_package.__file__).parent.glob("*.py"):
        assert not forbidden.search(path.read_text()), path.name


def test_seeds_of_other_libraries_change_nothing():
    results = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        results.append(noise.discrete_laplace(2**51, 100).tolist())
    assert results[0] != results[1]


def test_two_processes_with_one_environment_differ():
    names = ("SEED", "RANDOM_SEED", "DALENIUS_SEED", "DALENIUS_RANDOM_SEED", "NUMPY_SEED", "PYTHONSEED")
    seeds = dict.fromkeys(names, "1")
    environment = {**os.environ, **seeds, "PYTHONHASHSEED": "1", "DALENIUS_TEST": "1", "DALENIUS_LONG": "1"}
    runs = [
        subprocess.run([sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] != runs[1]
    assert len(runs[0]) > 100


def test_the_door_for_tests_is_not_public():
    assert not [name for name in noise.__all__ if "inject" in name or "always" in name]
    assert not hasattr(noise, "_injected")


# --- the same, through `ask`

# 4 regions, σ above 90: two releases are equal by chance with probability below 1/(2σ√π)⁴ < 10⁻⁹
ASKED = "SELECT region, COUNT(*) FROM visits GROUP BY region"
IN_ANOTHER_PROCESS = f"""
import random
import numpy as np
random.seed(1)
np.random.seed(1)
from dalenius import Curator
print(Curator().analyst("eve").ask({ASKED!r}, epsilon=1.0).rows)
"""


@pytest.fixture
def homes(tmp_path):
    """Two homes that are equal to the byte, over one file, before anything is asked."""
    protected(tmp_path, people(victim=True), analysts={"eve": 2.0})
    shutil.copytree(tmp_path / "home", tmp_path / "twin")
    for file in (tmp_path / "home").rglob("*"):
        if file.is_file():
            assert file.read_bytes() == (tmp_path / "twin" / file.relative_to(tmp_path / "home")).read_bytes()
    return [tmp_path / "home", tmp_path / "twin"]


@pytest.fixture(scope="module")
def curator(tmp_path_factory):
    return protected(tmp_path_factory.mktemp("h18"), people(victim=True))


def test_no_argument_of_ask_is_a_seed():
    for function in (Analyst.ask, Analyst.preview, Curator.__init__, Curator.analyst, Curator.protect):
        signature = inspect.signature(function)
        # An idempotency key only finds what was charged before: see below, and H19.
        names = set(signature.parameters) - {"idempotency_key"}
        assert not [name for name in names if SEED_LIKE.search(name)]
        assert not [each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD]


def test_equal_homes_draw_different_noise(homes):
    releases = [Curator(home).analyst("eve").ask(ASKED, epsilon=1.0) for home in homes]
    assert [row[0] for row in releases[0].rows] == [row[0] for row in releases[1].rows]
    assert releases[0].rows != releases[1].rows


def test_equal_homes_draw_different_noise_under_the_seeds_of_other_libraries(homes):
    rows = []
    for home in homes:
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        rows.append(Curator(home).analyst("eve").ask(ASKED, epsilon=1.0).rows)
    assert rows[0] != rows[1]


def test_equal_homes_in_processes_with_one_environment_draw_different_noise(homes):
    names = ("SEED", "RANDOM_SEED", "DALENIUS_SEED", "DALENIUS_RANDOM_SEED", "DUCKDB_SEED", "PYTHONHASHSEED")
    outputs = []
    for home in homes:
        environment = {**os.environ, **dict.fromkeys(names, "1"), "DALENIUS_HOME": str(home), "DALENIUS_TEST": "1"}
        run = subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS], env=environment, capture_output=True, text=True, check=True
        )
        outputs.append(run.stdout)
    assert "north" in outputs[0] and outputs[0] != outputs[1]


def test_no_file_in_the_home_or_beside_it_fixes_the_noise(homes):
    rows = []
    for home in homes:
        for name in ("seed", "seed.txt", "noise.key", ".seed", "random_state"):
            (home / name).write_text("1")
            (home.parent / name).write_text("1")
            (home / "keys").mkdir(exist_ok=True)
            (home / "keys" / name).write_bytes(b"\x01" * 32)
        rows.append(Curator(home).analyst("eve").ask(ASKED, epsilon=1.0).rows)
    assert rows[0] != rows[1]


def test_a_home_put_back_to_before_the_question_draws_anew_or_is_found_out(homes):
    """Who restores an old copy of the whole home gets no second look at the same noise."""
    home, twin = homes
    first = Curator(home).analyst("eve").ask(ASKED, epsilon=1.0)
    shutil.rmtree(home)
    shutil.copytree(twin, home)
    second = Curator(home).analyst("eve").ask(ASKED, epsilon=1.0)
    assert second.rows != first.rows and not second.free


@pytest.mark.parametrize(
    "question",
    [
        "SELECT SETSEED(0.5), COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE SETSEED(0.5) IS NULL",
        "SET seed = 1",
        "SELECT SETSEED(0.5); SELECT COUNT(*) FROM visits",
        "SELECT COUNT(*) + RANDOM() FROM visits",
        "SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.5",
        "SELECT COUNT(*) FROM visits ORDER BY RANDOM()",
        "SELECT COUNT(*) FROM visits TABLESAMPLE RESERVOIR (10 ROWS) REPEATABLE (1)",
        "SELECT COUNT(*) FROM visits USING SAMPLE 10% (BERNOULLI, 377)",
        "SELECT UUID(), COUNT(*) FROM visits",
        "SELECT GEN_RANDOM_UUID(), COUNT(*) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE HASH(note) % 2 = 0",
        "SELECT COUNT(*) FROM visits WHERE MD5(note) < '8'",
        "SELECT COUNT(*) FROM visits WHERE SHA256(note) < '8'",
    ],
)
def test_sql_neither_seeds_nor_draws_nor_hashes(curator, question):
    with nothing_charged(curator), pytest.raises(DaleniusError) as refusal:
        curator.analyst("eve").ask(question, epsilon=0.1)
    assert refusal.value.exit_code in (2, 3)


def test_the_wording_of_a_question_does_not_choose_its_noise(homes):
    """Equal texts in equal homes differ (above); so the noise is no function of text, table, policy and ledger."""
    rows = [Curator(home).analyst("eve").ask(f"{ASKED} -- {5}", epsilon=1.0).rows for home in homes]
    assert rows[0] != rows[1]


def test_a_fixed_source_of_bits_would_be_seen(homes, monkeypatch):
    """Teeth: with noise that is a function of the home, the twins agree."""
    from dalenius.queries import answering

    measured = answering.measure_plan

    def fixed(*arguments):
        content = json.loads(measured(*arguments))
        for each in content["measures"]:
            each["values"] = ["7"] * len(each["values"])
        return json.dumps(content).encode()

    monkeypatch.setattr(answering, "measure_plan", fixed)
    rows = [Curator(home).analyst("eve").ask(ASKED, epsilon=1.0).rows for home in homes]
    assert rows[0] == rows[1]


def test_an_idempotency_key_fixes_no_noise(homes):
    releases = [Curator(home).analyst("eve").ask(ASKED, epsilon=1.0, idempotency_key="1") for home in homes]
    assert releases[0].rows != releases[1].rows

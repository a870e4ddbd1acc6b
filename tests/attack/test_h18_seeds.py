"""H18: nothing public fixes the noise: no argument, no environment variable, no file, no other library's seed."""

from __future__ import annotations

import inspect
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dalenius.mechanisms.noise as noise_package
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

"""H17: draw, fork, compare. A child that repeats its parent's noise lets the two be subtracted."""

from __future__ import annotations

import os
import pickle
import threading
import warnings
from typing import Any

import pytest

from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import bits

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def draws() -> list[Any]:
    scalars: list[Any] = [noise.discrete_laplace(2**51) for _ in range(20)]
    scalars += [noise.discrete_gaussian(2**51) for _ in range(20)]
    return [*scalars, *noise.discrete_laplace(2**51, 100).tolist(), *bits.words(20).tolist()]


def in_child(work: Any) -> list[Any]:
    """What `work` returns in a forked process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads; that is the test
        child = os.fork()
    if child == 0:
        try:
            with os.fdopen(writing, "wb") as pipe:
                pickle.dump(work(), pipe)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        result: list[Any] = pickle.load(pipe)
    os.waitpid(child, 0)
    return result


def assert_all_differ(*lists: list[int]) -> None:
    together = [value for values in lists for value in values]
    assert len(set(together)) == len(together)  # by chance with probability below 2⁻³⁰


def test_children_differ_from_each_other_and_from_their_parent():
    draws()  # so that there are a key and stocks to inherit
    first, second, third = (in_child(draws) for _ in range(3))
    assert_all_differ(first, second, third, draws())


def test_grandchildren_differ():
    draws()
    child, grandchild = in_child(lambda: [draws(), in_child(draws)])
    assert_all_differ(child, grandchild, draws())


def test_a_child_of_another_thread_differs():
    draws()
    found: list[list[int]] = []

    def work() -> None:
        draws()
        found.extend([in_child(draws), draws()])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert_all_differ(*found, draws())


def test_the_process_id_alone_gives_a_new_key(monkeypatch):
    """A fork below Python (in C) runs no hook."""
    before = bits.current()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert bits.current() is not before


def test_the_hook_alone_gives_a_new_key(monkeypatch):
    """A process id can come again."""
    before = bits.current()
    monkeypatch.setattr(bits, "_forks", bits._forks + 1)
    assert bits.current() is not before

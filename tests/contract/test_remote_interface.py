"""A remote analyst is used as one at home: what both can do is called the same way and gives the same."""

from __future__ import annotations

import inspect

import pytest

from dalenius import Analyst, RemoteAnalyst

SHARED = [name for name in vars(Analyst) if not name.startswith("_")]


def test_a_remote_analyst_can_do_all_that_one_at_home_can():
    assert {"preview", "ask", "budget", "history"} <= set(SHARED) <= set(dir(RemoteAnalyst))
    assert "name" in vars(RemoteAnalyst)


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_method_has_one_signature(name: str):
    here, there = (inspect.signature(getattr(cls, name)) for cls in (Analyst, RemoteAnalyst))
    assert here == there

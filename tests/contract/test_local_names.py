"""Every public name of `dalenius.local` can be had, and stands on the page of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius import local
from dalenius.local.randomisers import RANDOMISERS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text()
COMMAND = (Path(__file__).parents[2] / "docs" / "reference" / "collect.md").read_text()


@pytest.mark.parametrize("name", local.__all__)
def test_a_name_of_local_is_documented(name: str) -> None:
    assert getattr(local, name) is not None
    part = PAGE.split("## Local privacy")[1]
    assert f"`{name}`" in part or f"`local.{name}`" in part


def test_every_randomiser_is_a_name_and_on_the_page_of_the_command() -> None:
    for cls in RANDOMISERS:
        assert cls.__name__ in local.__all__ and f"`{cls.name}`" in COMMAND

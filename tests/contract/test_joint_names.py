"""Every public name of `dalenius.joint` can be had, and stands on the page of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius import joint

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "python.md").read_text()


@pytest.mark.parametrize("name", joint.__all__)
def test_a_name_of_joint_is_documented(name: str) -> None:
    assert getattr(joint, name) is not None
    assert f"`{name}`" in PAGE.split("## Computing together")[1]

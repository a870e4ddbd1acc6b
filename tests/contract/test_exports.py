"""Every public name can be imported, is known to type checkers, and is documented."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import dalenius

PUBLIC = [name for name in dalenius.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("name", dalenius.__all__)
def test_a_public_name_can_be_imported(name: str):
    assert getattr(dalenius, name) is not None
    assert name in dir(dalenius)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_documented(name: str, request: pytest.FixtureRequest):
    pages = (request.config.rootpath / "docs").rglob("*.md")
    assert any(f"`{name}" in page.read_text() or f"dalenius.{name}" in page.read_text() for page in pages)


def test_the_three_lists_of_names_agree():
    tree = ast.parse(Path(dalenius.__file__).read_text())
    typed = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert typed == set(PUBLIC) == set(dalenius._EXPORTS)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'eps'"):
        _ = dalenius.eps

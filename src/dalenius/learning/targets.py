"""Which columns of a policy a model can predict: for who chooses one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from dalenius.errors import DaleniusError
from dalenius.learning.task import task_of

if TYPE_CHECKING:
    from dalenius.tables import policy as tables


def possible_targets(columns: Mapping[str, tables.Column], model: str, hidden: Collection[str] = ()) -> list[str]:
    """The columns that a model can predict from the others, in the policy's order."""
    return [name for name in columns if name not in hidden and _can(columns, name, model, hidden)]


def _can(columns: Mapping[str, tables.Column], name: str, model: str, hidden: Collection[str]) -> bool:
    try:
        task_of(columns, name, model, hidden=hidden)
    except DaleniusError:
        return False
    return True

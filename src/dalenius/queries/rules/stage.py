"""What the passes hand on: each fills in its own part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dalenius.measuring.plan import Limits

if TYPE_CHECKING:
    from sqlglot.expressions import Select

    from dalenius.measuring.plan import Plan, Question, Safe, Table
    from dalenius.measuring.public import PublicTable
    from dalenius.queries.rules.clause import Options


@dataclass(frozen=True, slots=True)
class Stage:
    """A question on its way to a plan."""

    text: str
    tables: Mapping[str, Table]
    limits: Limits = field(default_factory=Limits)
    publics: Mapping[str, PublicTable] = field(default_factory=dict)
    tree: Select | None = None
    question: Question | None = None
    safe: Safe | None = None
    plan: Plan | None = None
    options: Options | None = None

    def with_(self, **changes: Any) -> Stage:
        """The stage with some parts filled in."""
        return replace(self, **changes)

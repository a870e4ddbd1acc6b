"""What is asked for, when rows like those of a table are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dalenius.accounting import parameters
from dalenius.errors import InputError
from dalenius.synthesis.methods import AUTO, method_of

_KNOWN = ("table", "epsilon", "method", "columns", "target", "rows_per_unit", "time")


@dataclass(frozen=True)
class SynthesisAsk:
    """A request for a synthetic table. How many rows are drawn is no part of it: they are drawn afterwards.

    Attributes:
        table: Whose rows.
        epsilon: The price.
        method: The generator.
        columns: Those to model; none: all that can be.
        target: A column that will be predicted: what tells about it is measured more exactly, where the method can.
        rows_per_unit: So many rows of one unit count in full; None: the table's limit.
        time: Seconds that the work may take, as they are reckoned from public sizes (`effort`); None: what it takes.
    """

    table: str
    epsilon: float
    method: str = AUTO
    columns: tuple[str, ...] = ()
    target: str | None = None
    rows_per_unit: int | None = None
    time: float | None = None

    def __post_init__(self) -> None:
        parameters.epsilon(self.epsilon)
        method_of(self.method)
        if self.rows_per_unit is not None:
            parameters.count(self.rows_per_unit, "rows_per_unit")
        if self.time is not None:
            parameters.positive(self.time, "time", fix="Give a number of seconds.")

    @classmethod
    def of(cls, request: Any) -> SynthesisAsk:
        """From JSON; what is one already stays."""
        if isinstance(request, cls):
            return request
        if not isinstance(request, Mapping) or not isinstance(request.get("table"), str):
            raise InputError(
                "This is no request for a synthetic table.", why="It names no table.", fix='Give {"table": …}.'
            )
        unknown = [name for name in request if name not in _KNOWN]
        if unknown:
            raise InputError(
                f"There is no option {unknown[0]!r}.",
                why="Nothing that is asked for is passed over.",
                fix=f"Known are {', '.join(_KNOWN)}.",
            )
        columns = request.get("columns") or ()
        if isinstance(columns, str) or not isinstance(columns, Sequence) or not all(type(c) is str for c in columns):
            raise InputError("columns must be a list of names.", why="Each is a column.", fix='Write ["age", "sex"].')
        if request.get("epsilon") is None:
            raise InputError("The synthetic table has no price.", why="Its noise depends on it.", fix="Give epsilon.")
        method = request.get("method") or AUTO
        if not isinstance(method, str):
            raise InputError("method must be a name.", why="It says which generator.", fix='Write "auto".')
        target = request.get("target")
        if target is not None and not isinstance(target, str):
            raise InputError("target must be a name.", why="It is a column.", fix='Write "income".')
        more = request.get("rows_per_unit"), request.get("time")
        return cls(request["table"], request["epsilon"], method, tuple(columns), target, *more)

    def to_json(self) -> dict[str, Any]:
        """As HTTP has it."""
        return {
            "table": self.table,
            "epsilon": self.epsilon,
            "method": self.method,
            "columns": list(self.columns),
            "target": self.target,
            "rows_per_unit": self.rows_per_unit,
            "time": self.time,
        }

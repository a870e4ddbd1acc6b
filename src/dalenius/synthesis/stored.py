"""What is stored of a synthetic table: the fitted model and its domain, as JSON with a version. No row of anybody.

All of it is post-processing of what was measured with noise. Rows are drawn from it with ordinary randomness, as many
and as often as anybody likes.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.synthesis.fitting import Fit
from dalenius.synthesis.generators.adaptive import PoolModel
from dalenius.synthesis.generators.histogram import IndependentModel
from dalenius.synthesis.generators.privbayes import NetworkModel
from dalenius.synthesis.generators.tree import TreeModel
from dalenius.synthesis.measurer import Measured
from dalenius.synthesis.models.pool import Pool
from dalenius.synthesis.policy_domain import PolicyDomain
from dalenius.synthesis.sampling import Step
from dalenius.synthesis.sound import check_sound
from dalenius.synthesis.start import Start
from dalenius.synthesis.units import MadeUpUnits
from dalenius.synthesis.views import Groups, View

if TYPE_CHECKING:
    import pyarrow as pa

    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.model import Model
    from dalenius.tables.policy import Facts

FORMAT = "synthetic 1"
_STEPS = "steps"  # columns drawn one after another, each given some before it
_POOL = "pool"  # rows with weights
_NETWORK = "network"  # groups of values drawn one after another, then values
_TYPES = ("<f4", "<u1", "<u2")
MOST_ROWS = 100_000_000  # that are drawn at once
MOST_NUMBERS = 2**28  # of a model, unpacked: whoever sends one decides how much memory it takes here
_WIDER = 4  # as much memory does one take that has decimals


@dataclass(frozen=True, eq=False)
class StoredModel:
    """A model with what is needed to draw rows from it and to say what it is.

    Attributes:
        table: Whose rows it is like.
        method: The generator's name.
        epsilon: What was charged.
        rho: The same as ρ.
        limit: So many rows of one unit counted in full.
        domain: What the codes mean.
        model: Draws rows of codes.
        units: Whose made-up rows are; None: each is somebody else's.
        measured: The noisy tables that it was made from, and how well it fits them.
    """

    table: str
    method: str
    epsilon: float
    rho: float
    limit: int
    domain: PolicyDomain
    model: Model
    units: MadeUpUnits | None = None
    measured: tuple[Fit, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(each.name for each in self.domain.columns)

    @property
    def rows(self) -> int:
        """How many rows the table has, by noisy count: of its units where these were counted, else of its rows."""
        return self.counted if self.units is None else max(0, round(self.units.rows))

    @property
    def counted(self) -> int:
        """How many rows the model counts, those of units with many less each."""
        return max(0, round(self.model.rows))

    def draw(
        self, rows: int | None = None, seed: int | None = None, *, where: str | None = None, facts: Facts | None = None
    ) -> dict[str, pa.Array]:
        """Rows as columns of values.

        Args:
            rows: How many; as many as there are, by noisy count.
            seed: The same rows again; nothing secret depends on it.
            where: A condition that holds for all of them.
            facts: What everybody knows of all rows.
        """
        import pyarrow as pa

        from dalenius.synthesis.drawing import Drawing

        rng = np.random.default_rng(seed)
        drawn, units = Drawing(self, facts, where).rows(rows, rng)
        whose = {} if self.units is None else {self.units.name: pa.array(units)}
        columns = enumerate(self.domain.columns)
        return whose | {each.name: each.at(drawn.places[:, at], rng) for at, each in columns}

    def to_json(self) -> dict[str, Any]:
        """The stored tree."""
        return {
            "format": FORMAT,
            "table": self.table,
            "method": self.method,
            "epsilon": self.epsilon,
            "rho": self.rho,
            "limit": self.limit,
            "columns": self.domain.to_json(),
            "model": _model_json(self.model),
            "units": None if self.units is None else self.units.to_json(),
            "measured": [each.to_json() for each in self.measured],
        }

    def content(self) -> bytes:
        """The stored bytes."""
        return json.dumps(self.to_json(), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> StoredModel:
        """As `to_json` wrote it, or whoever sent it: what does not hold together is refused (`sound`)."""
        try:
            with np.errstate(all="ignore"):  # what comes of odd numbers is refused
                found = cls._of_tree(data)
                check_sound(found)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
            raise _unreadable("It does not hold together: some of it is not what a model has there.") from None
        return found

    @classmethod
    def _of_tree(cls, data: Mapping[str, Any]) -> StoredModel:
        if data.get("format") != FORMAT:
            raise _unreadable(f"It is not of the format {FORMAT!r}; a newer dalenius may have written it.")
        _check_size(sum(_numbers(each) * (_WIDER if each["type"] == "<f4" else 1) for each in _packs(data["model"])))
        domain = PolicyDomain.of_json(data["columns"])
        return cls(
            data["table"],
            data["method"],
            data["epsilon"],
            data["rho"],
            data["limit"],
            domain,
            _model_of(data["model"]),
            None if data.get("units") is None else MadeUpUnits.of_json(data["units"]),
            tuple(map(Fit.of_json, data.get("measured", ()))),
        )

    @classmethod
    def read(cls, content: bytes) -> StoredModel:
        """As `content` wrote it, and nobody has changed since: the ledger would know."""
        return cls._of_tree(json.loads(content.decode("utf-8", "surrogatepass")))


def check_rows(rows: int) -> None:
    """Refuses what is no number of rows."""
    if type(rows) is not int or not 0 <= rows <= MOST_ROWS:
        raise InputError(
            "This is no number of rows.",
            why=f"It is a whole number from 0 to {MOST_ROWS:,}.",
            fix="Give another; rows of a model that is paid for are free.",
        )


def _model_json(model: Model) -> dict[str, Any]:
    if isinstance(model, PoolModel):
        pool = model.pool
        return {
            "form": _POOL,
            "rows": float(model.rows),
            "columns": packed(pool.columns, _codes_type(pool.columns)),
            "weights": packed(pool.weights),
            "views": [_view_json(each) for each in pool.views],
        }
    if isinstance(model, NetworkModel):
        start = model.start
        return {
            "form": _NETWORK,
            "rows": float(model.rows),
            "steps": [_step_json(each) for each in model.steps],
            "shares": [packed(each) for each in start.shares],
            "groups": [packed(each[0], "<u2") for each in start.groups],
        }
    if isinstance(model, IndependentModel):
        model = model.as_tree
    if isinstance(model, TreeModel):
        return {"form": _STEPS, "rows": float(model.rows), "steps": [_step_json(each) for each in model.steps]}
    raise RuntimeError("A generator's model cannot be stored.")


def _model_of(data: Mapping[str, Any]) -> Model:
    match data.get("form"):
        case "steps":
            return TreeModel(data["rows"], list(map(_step_of, data["steps"])))
        case "pool":
            pool = Pool(unpacked(data["columns"]).T.astype(np.int32), data["rows"])
            pool.weights = unpacked(data["weights"]).astype(np.float64)
            # What was measured is in the weights; to draw rows takes the tables' cells alone.
            known = dict[tuple[int, str], Groups]()
            views = [_view_of(each, known) for each in data["views"]]
            _check_size(sum(each.cells for each in views))
            pool.add([Measured(each, np.zeros(each.cells), 1.0) for each in views], 1.0)
            return PoolModel(data["rows"], pool)
        case "network":
            shares = tuple(map(unpacked, data["shares"]))
            groups = tuple((unpacked(each).astype(np.int32),) for each in data["groups"])
            start = Start((), data["rows"], shares, groups)
            return NetworkModel(data["rows"], list(map(_step_of, data["steps"])), start)
    raise _unreadable("Its model has a form that is not known here.")


def _step_json(step: Step) -> dict[str, Any]:
    return {"column": step.column, "parents": list(step.parents), "table": packed(step.table)}


def _step_of(data: Mapping[str, Any]) -> Step:
    return Step(data["column"], tuple(data["parents"]), unpacked(data["table"]))


def _view_json(view: View) -> dict[str, Any]:
    return {"columns": list(view.columns), "groups": [packed(each, "<u2") for each in view.groups]}


def _view_of(data: Mapping[str, Any], known: dict[tuple[int, str], Groups]) -> View:
    """``known``: groups of columns that were read before, of which each is kept once."""
    groups = []
    for column, each in zip(data["columns"], data["groups"], strict=True):
        key = (column, each["data"])
        if key not in known:
            known[key] = unpacked(each).astype(np.int32)
        groups.append(known[key])
    return View(tuple(data["columns"]), tuple(groups))


def _codes_type(codes: Codes) -> str:
    return "<u1" if int(codes.max(initial=0)) < 256 else "<u2"  # no column has 2¹⁶ codes


def packed(table: NDArray[Any], kind: str = "<f4") -> dict[str, Any]:
    """Numbers as they are stored: in single precision, or as small whole numbers; compressed.

    >>> unpacked(packed(np.array([[0.25, 0.5]]))).tolist()
    [[0.25, 0.5]]
    """
    plain = np.ascontiguousarray(table, kind)
    data = base64.b64encode(zlib.compress(plain.tobytes(), 6)).decode("ascii")
    return {"shape": list(table.shape), "type": kind, "data": data}


def unpacked(data: Mapping[str, Any]) -> NDArray[Any]:
    """As `packed` wrote them. It grows to what the shape says and no further, whatever was packed."""
    if data["type"] not in _TYPES:
        raise _unreadable("Its numbers are of no kind that is known here.")
    size = _numbers(data) * np.dtype(data["type"]).itemsize
    reader = zlib.decompressobj()
    try:
        plain = reader.decompress(base64.b64decode(data["data"]), size + 1)
    except (ValueError, zlib.error):
        raise _unreadable("Its numbers are damaged.") from None
    if len(plain) != size:
        raise _unreadable("It holds other numbers than it says.")
    flat = np.frombuffer(plain, data["type"]).reshape(data["shape"])
    return flat.astype(np.float64) if data["type"] == "<f4" else flat


def _numbers(data: Mapping[str, Any]) -> int:
    """How many numbers are packed, by their shape."""
    shape = data["shape"]
    if not all(type(each) is int and each > 0 for each in shape):  # what is empty may be of any length
        raise _unreadable("The shape of its numbers is none.")
    return math.prod(shape)


def _check_size(numbers: int) -> None:
    """Refuses a model that would take very much memory, before it does."""
    if numbers > MOST_NUMBERS:
        raise _unreadable(f"It holds more than {MOST_NUMBERS:,} numbers.")


def _packs(data: Any) -> Iterator[Mapping[str, Any]]:
    """All packed numbers in a tree of JSON."""
    if isinstance(data, Mapping):
        if "shape" in data:
            yield data
            return
        data = list(data.values())
    if isinstance(data, list):
        for each in data:
            yield from _packs(each)


def _unreadable(why: str) -> InputError:
    return InputError("This synthetic table cannot be read.", why=why, fix="Use the version that made it.")

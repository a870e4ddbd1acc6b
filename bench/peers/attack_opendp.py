"""OpenDP under attack: its context over Polars frames and over lists, and the measurements below.

    python bench/peers/attack_opendp.py H1

In place of SQL an analyst writes Polars expressions. Only the feature "contrib" is on: with it the library says which
expressions it takes; "honest-but-curious" would let the analyst run functions of his own.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers import attacking
from bench.peers.attacking import DRAWS, PLAIN, ROWS, SPECIAL, Finding, attempt, report
from bench.peers.attacking_noise import forked, precision, timing

dp: Any = import_module("opendp.prelude")
pl: Any = import_module("polars")
dp.enable_features("contrib")
COLUMNS = {"id": pl.Int64, "name": pl.String, "s": pl.String, "x": pl.Float64}
VICTIM = (ROWS, "victim", "x", 0.5)


def table(*more: tuple[Any, ...]) -> Any:
    """The plain table and some rows."""
    rows = [*((unit, "a", "1", 0.5) for unit in range(ROWS)), *more]
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def context(frame: Any, epsilon: Any = 1.0, delta: Any = None) -> Any:
    """A session for one question."""
    loss = dp.loss_of(epsilon=epsilon) if delta is None else dp.loss_of(epsilon=epsilon, delta=delta)
    return dp.Context.compositor(
        data=frame.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=2 * ROWS)],
    )


def total(session: Any) -> float:
    """The private sum of x."""
    x = pl.col("x").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 1.0))
    return float(session.query().select(x).release().collect().item())


def listed(values: list[float], epsilon: float = 1.0) -> Any:
    """A session over a list, which is quick."""
    return dp.Context.compositor(
        data=values,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=epsilon),
        split_evenly_over=1,
        domain=dp.vector_domain(dp.atom_domain(T=float, nan=False)),
    )


def float_laplace(value: float) -> list[float]:
    """Many releases of one double."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
    found: list[float] = dp.m.make_laplace(*space, scale=1.0)([value] * DRAWS)
    return found


def float_gaussian(value: float) -> list[float]:
    """The same at ε = 1, δ = 1e-6."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    found: list[float] = dp.m.make_gaussian(*space, scale=5.0)([value] * DRAWS)
    return found


def samplers() -> dict[str, Callable[[], float]]:
    """One draw each."""
    whole = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    real = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    wide = dp.m.make_laplace(*whole, scale=10.0)
    fine = dp.m.make_laplace(*real, scale=1.0)
    normal = dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=float), scale=10.0)
    return {
        "integer Laplace": lambda: wide(0),
        "float Laplace": lambda: fine(0.0),
        "integer Gaussian": lambda: normal(0),
    }


def faults() -> dict[str, Any]:
    """Conditions that fail on the victim's row, if anything does."""
    victim, whole = pl.col("name") == "victim", pl.col("s").cast(pl.Int64)
    return {
        "when(victim).then(strict cast)": pl.when(victim).then(whole).otherwise(1) > 0,
        "a strict cast": whole > 0,
        "a parsed date": pl.col("s").str.to_date("%Y") > pl.date(2000, 1, 1),
        "a division by zero": (pl.lit(1) // (pl.col("id") - ROWS)) > 0,
    }


def data_errors() -> Finding:
    """H6."""
    conditions = faults()

    def status(name: str, victim: bool) -> str:
        session = context(table(*([VICTIM] if victim else [])))
        asked = session.query().filter(conditions[name]).select(dp.len(signed=True))
        return attempt(lambda: asked.release().collect().item())[1]

    return attacking.data_errors(conditions, status)


def free_failures() -> Finding:
    """H7: no expression fails, so a file does, in its last row; it is read when the release is collected."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.csv"
        file.write_text("x\n" + "0.5\n" * ROWS + "x\n")
        frame = pl.scan_csv(file, schema={"x": pl.Float64})

        def tried() -> tuple[str, float]:
            session = context(frame)
            error = attempt(lambda: total(session))[1]
            return error, 1.0 - sum(session.remaining_privacy_loss())

        return attacking.failures({"a broken row of a file": tried}, 1.0)


def special(value: str, aggregate: str) -> float:
    """One aggregate, at an ε that leaves hardly any noise."""
    frame = table(*([] if value == PLAIN else [(ROWS, "a", "1", SPECIAL[value])]))
    session = context(frame, 1e6)
    if aggregate == "SUM":
        return total(session)
    return float(session.query().select(dp.len(signed=True)).release().collect().item())


def fresh_budget() -> Finding:
    """H16."""
    values = [0.5] * ROWS

    def asked(session: Any) -> bool:
        return not attempt(lambda: session.query().clamp((0.0, 1.0)).sum().laplace().release())[1]

    session = listed(values)
    tricks = {"a new context": lambda: asked(listed(values)), "a copy of the table": lambda: asked(listed([*values]))}
    return attacking.fresh_budget(lambda: asked(session), lambda: asked(session), tricks)


def drawn() -> list[float]:
    """For H17: so wide that no value comes twice, and of a type that holds it (T=int has 32 bits)."""
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    found: list[float] = dp.m.make_laplace(*space, scale=1e12)([0] * 20)
    return found


if __name__ == "__main__":
    report(
        {
            "H1": lambda: precision({"Laplace": float_laplace, "Gaussian": float_gaussian}),
            "H3": lambda: timing(samplers()),
            "H6": data_errors,
            "H7": free_failures,
            "H8": lambda: attacking.special_values(special, ("COUNT", "SUM")),
            "H12": lambda: attacking.bad_epsilon(lambda epsilon: total(context(table(), epsilon))),
            "H13": lambda: attacking.bad_delta(lambda delta: total(context(table(), 1.0, delta))),
            "H16": fresh_budget,
            "H17": lambda: forked(drawn),
        },
        ("opendp", "polars"),
    )

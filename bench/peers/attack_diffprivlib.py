"""diffprivlib under attack.

    python bench/peers/attack_diffprivlib.py H1

It has no language, it takes arrays: in place of a CASE that fails, a value in the victim's row on which its tools and
models fail. Its accountant is the default one, which has no limit, but where budgets are attacked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers import attacking
from bench.peers.attacking import DRAWS, PLAIN, ROWS, SPECIAL, Finding, attempt, report
from bench.peers.attacking_noise import forked, precision, timing

dp: Any = import_module("diffprivlib")
np: Any = import_module("numpy")
TABLE = [0.5] * ROWS
BOUNDS = (0, 1)


def total(values: list[float], epsilon: Any = 1.0, accountant: Any = None) -> float:
    """The private sum."""
    return float(dp.tools.sum(values, epsilon=epsilon, bounds=BOUNDS, accountant=accountant))


def special(value: str, aggregate: str) -> float:
    """One aggregate, at an ε that leaves hardly any noise."""
    values = np.array(TABLE + ([] if value == PLAIN else [SPECIAL[value]]), dtype=float)
    if aggregate == "COUNT":
        return float(dp.tools.count_nonzero(values, epsilon=1e6))
    tool = {"SUM": dp.tools.sum, "AVG": dp.tools.mean, "VAR": dp.tools.var}[aggregate]
    return float(tool(values, epsilon=1e6, bounds=BOUNDS))


# Each releases something about a table in which the victim's value is the last.
WORK: dict[str, Callable[[Any, Any], Any]] = {
    "tools.sum": lambda x, accountant: dp.tools.sum(x, epsilon=1, bounds=BOUNDS, accountant=accountant),
    "tools.mean": lambda x, accountant: dp.tools.mean(x, epsilon=1, bounds=BOUNDS, accountant=accountant),
    "tools.median": lambda x, accountant: dp.tools.median(x, epsilon=1, bounds=BOUNDS, accountant=accountant),
    "tools.histogram": lambda x, accountant: dp.tools.histogram(x, epsilon=1, range=BOUNDS, accountant=accountant),
    "models.StandardScaler": lambda x, accountant: dp.models.StandardScaler(
        epsilon=1, bounds=BOUNDS, accountant=accountant
    ).fit(x.reshape(-1, 1)),
    "models.LinearRegression": lambda x, accountant: dp.models.LinearRegression(
        epsilon=1, bounds_X=BOUNDS, bounds_y=BOUNDS, accountant=accountant
    ).fit(x.reshape(-1, 1), np.linspace(0, 1, len(x))),
}
HOSTILE = {"NaN": float("nan"), "inf": float("inf")}


def status(question: str, victim: bool) -> str:
    """What becomes of one of `WORK` with a hostile value, or without it."""
    name, value = question.split(" with a ")
    table = np.array(TABLE + ([HOSTILE[value]] if victim else []))
    return attempt(lambda: WORK[name](table, None))[1]


def data_errors() -> Finding:
    """H6."""
    questions = [f"{name} with a {value}" for name in WORK for value in HOSTILE]
    return attacking.data_errors(questions, status)


def free_failures() -> Finding:
    """H7."""

    def tried(name: str, value: float) -> tuple[str, float]:
        accountant = dp.BudgetAccountant(5, 0)
        error = attempt(lambda: WORK[name](np.array([*TABLE, value]), accountant))[1]
        return error, float(accountant.total()[0])

    tries = {f"{name} with a {shown}": partial(tried, name, value) for name in WORK for shown, value in HOSTILE.items()}
    return attacking.failures(tries, 1.0)


def bad_delta() -> Finding:
    """H13."""
    return attacking.bad_delta(
        lambda delta: float(dp.mechanisms.GaussianAnalytic(epsilon=1, delta=delta, sensitivity=1).randomise(500.0))
    )


def fresh_budget() -> Finding:
    """H16."""
    kept = dp.BudgetAccountant(1, 0)

    def asked(accountant: Any, values: list[float] = TABLE) -> bool:
        return not attempt(lambda: total(values, 1.0, accountant))[1]

    tricks = {
        "a new accountant": lambda: asked(dp.BudgetAccountant(1, 0)),
        "the default accountant": lambda: asked(None),
        "a copy of the table": lambda: asked(dp.BudgetAccountant(1, 0), list(TABLE)),
    }
    return attacking.fresh_budget(lambda: asked(kept), lambda: asked(kept), tricks)


laplace = dp.mechanisms.Laplace(epsilon=1, sensitivity=1)
gaussian = dp.mechanisms.Gaussian(epsilon=1, delta=1e-6, sensitivity=1)
discrete = dp.mechanisms.GaussianDiscrete(epsilon=1, delta=1e-6, sensitivity=1)
geometric = dp.mechanisms.Geometric(epsilon=0.1, sensitivity=1)
SAMPLERS: dict[str, Callable[[], float]] = {
    "Laplace": lambda: laplace.randomise(0.0),
    "Gaussian": lambda: gaussian.randomise(0.0),
    "GaussianDiscrete": lambda: discrete.randomise(0),
    "Geometric": lambda: geometric.randomise(0),
}
PRECISE: dict[str, Callable[[float], list[float]]] = {
    "Laplace": lambda value: [laplace.randomise(value) for _ in range(DRAWS)],
    "Gaussian": lambda value: [gaussian.randomise(value) for _ in range(DRAWS)],
    "tools.sum": lambda value: [total([value]) for _ in range(DRAWS)],
}
if __name__ == "__main__":
    report(
        {
            "H1": lambda: precision(PRECISE),
            "H3": lambda: timing(SAMPLERS),
            "H6": data_errors,
            "H7": free_failures,
            "H8": lambda: attacking.special_values(special),
            "H12": lambda: attacking.bad_epsilon(lambda epsilon: total(TABLE, epsilon)),
            "H13": bad_delta,
            "H16": fresh_budget,
            "H17": lambda: forked(lambda: [float(laplace.randomise(0.0)) for _ in range(20)]),
        },
        ("diffprivlib", "numpy", "scikit-learn"),
    )

"""Training without the house around it: the numerics alone, at the price that the ledger would charge."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from bench.learned.tables import Learned

from dalenius.learning import rules, sgd
from dalenius.learning.features import WHOLE, Feature
from dalenius.learning.rules import Population, Price
from dalenius.learning.task import Task
from dalenius.learning.units import Units, encode, in_room
from dalenius.ledger.budgets import Budget
from dalenius.tables.policy import Kind

DELTA = 1e-5
COUNT_SIGMA = 5.0  # of the noise in the count that is released at `protect`


@lru_cache
def price(epsilon: float) -> Price:
    """By the ledger's own conversion: half of δ."""
    budget = Budget(epsilon, DELTA)
    return Price(budget.filter().price(epsilon).rho, budget.sampling_orders(epsilon))


def accuracy(table: Learned, epsilon: float, split: int, runs: int, *, rows: int = 1) -> dict[str, Any]:
    """The share of held-out rows that are told right, on average over runs, by the default rules."""
    train, held = table.split(split)
    mine, other = table.rows(train), table.rows(held)
    task, began, rows = table.task, time.process_time(), min(rows, rules.ENOUGH_ROWS)
    values = {name: (each[mine], np.zeros(len(mine), bool)) for name, each in table.values.items()}
    starts = np.searchsorted(table.owner[mine], [*train, table.units])
    population = Population.counted(len(train), COUNT_SIGMA, rows=rows, held=len(mine) / len(train))
    recipe = rules.plan(task, population, price(epsilon))
    units = encode(task, values, starts, rows=recipe.rows)
    room = in_room([units], task, capacity=recipe.capacity, rows=recipe.rows)
    tested = np.column_stack([table.numbers[other], np.ones(len(other))]).T
    found = list[float]()
    for _ in range(runs):
        weights = sgd.train(recipe, recipe.event(), room).values
        said = task.loss.predict(weights @ tested).argmax(axis=0)
        found.append(float((said == table.classes[other]).mean()))
    return {"accuracy": float(np.mean(found)), "steps": recipe.steps, "seconds": (time.process_time() - began) / runs}


def speed(steps: int = 2000) -> dict[str, float]:
    """Examples a CPU second: batch 256, 64 columns, 10 classes, exact noise, secure sampling of 51,200 units."""
    count, columns, classes, batch = 51_200, 64, 10, 256
    features = tuple(Feature(f"x{at}", Kind.NUMBER, False) for at in range(columns - 1))
    task = Task(Feature("y", Kind.INTEGER, False, tuple(range(classes))), features, "logistic")
    recipe = rules.plan(task, Population.counted(count, COUNT_SIGMA), price(3.0), batch=batch, steps=steps)
    chance = np.random.default_rng(0)
    numbers = np.zeros((recipe.capacity + 1, 1, columns), np.float32)
    numbers[:count, 0] = np.rint(chance.uniform(-1, 1, (count, columns)) * WHOLE)
    numbers[:count, 0, -1] = WHOLE
    aims = np.zeros((recipe.capacity + 1, 1))
    aims[:count, 0] = chance.integers(0, classes, count)
    units = Units(numbers, aims)
    event, best = recipe.event(), 0.0
    for _ in range(3):
        began = time.process_time()
        sgd.train(recipe, event, units)
        best = max(best, batch * steps / (time.process_time() - began))
    return {"examples": best, "slots": recipe.slots, "sigma": recipe.multiplier}

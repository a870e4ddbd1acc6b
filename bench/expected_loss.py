"""How much accuracy noise takes, against what is known before paying: fits the rule of `learning.expecting`.

Made-up tables (a teacher with normal weights, features uniform, classes drawn by its chances), trained with noise at
three prices and with hardly any; run: `python bench/expected_loss.py` (about 20 CPU seconds).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.accounting.filters import ZCDPFilter
from dalenius.accounting.orders import tight
from dalenius.learning import sgd
from dalenius.learning.expecting import SUPPOSED, lost_share, noise_length
from dalenius.learning.features import Feature
from dalenius.learning.recipe import Recipe
from dalenius.learning.rules import Population, Price, plan
from dalenius.learning.scoring import off_by
from dalenius.learning.task import Task
from dalenius.learning.units import Units, encode, in_room
from dalenius.tables.policy import Kind

SHAPES = ((5, 2, 3.0), (15, 2, 3.0), (60, 2, 3.0), (15, 2, 1.0), (30, 5, 4.0), (64, 10, 6.0))
PEOPLE, TESTED = (300, 1000, 4000, 16_000), 2000
PRICES, DELTA, ROUNDS = (0.3, 1.0, 3.0), 5e-6, 3


@dataclass(frozen=True)
class Table:
    """Features, classes, and how many rows are learned from."""

    features: np.ndarray
    classes: np.ndarray
    learned: int
    kinds: int

    @property
    def task(self) -> Task:
        features = (Feature(f"f{at}", Kind.NUMBER, False, None, 0.0, 1.0) for at in range(self.features.shape[1]))
        return Task(Feature("y", Kind.CATEGORY, False, tuple(map(str, range(self.kinds)))), tuple(features), "logistic")

    def encoded(self, part: slice) -> Units:
        nobody = np.zeros(len(self.classes[part]), bool)
        values = {f"f{at}": (self.features[part, at], nobody) for at in range(self.features.shape[1])}
        classes = np.array([str(each) for each in self.classes[part]], object)
        return encode(self.task, values | {"y": (classes, nobody)})


def taught(people: int, features: int, classes: int, sharp: float, rng: np.random.Generator) -> Table:
    weights = rng.normal(size=(features, classes))
    found = rng.random((people + TESTED, features))
    scores = (found - 0.5) @ weights * sharp * math.sqrt(12 / features)
    return Table(found, (scores + rng.gumbel(size=scores.shape)).argmax(1), people, classes)


def trained(table: Table, price: Price) -> tuple[float, Recipe]:
    """Accuracy on rows that were not learned from."""
    recipe = plan(table.task, Population.counted(table.learned, 10), price)
    room = in_room([table.encoded(slice(0, table.learned))], table.task, capacity=recipe.capacity)
    weights = sgd.train(recipe, recipe.event(), room)
    fresh = table.encoded(slice(table.learned, None))
    return 1 - float(off_by(recipe, weights, fresh.numbers[:, 0], fresh.aims[:, 0]).mean()), recipe


def main() -> None:
    rng, cap = np.random.default_rng(1), ZCDPFilter(3.0, 2 * DELTA)
    known, wanted, off = list[list[float]](), list[float](), list[float]()
    print("weights  people   ε   1/length  without  with   lost   told")
    for features, classes, sharp in SHAPES:
        for people in PEOPLE:
            if people * features * classes > 8e6:
                continue
            table = taught(people, features, classes, sharp, rng)
            base = float(np.mean([trained(table, Price(50.0, (Fraction(2),)))[0] for _ in range(2)]))
            chance = np.bincount(table.classes[people:]).max() / TESTED
            for epsilon in PRICES:
                price = Price(cap.price(epsilon).rho, (tight(epsilon, DELTA).order,))
                rounds = [trained(table, price) for _ in range(ROUNDS)]
                accuracy, recipe = float(np.mean([each for each, _ in rounds])), rounds[0][1]
                share = (base - accuracy) / (base - chance)
                told = lost_share(recipe) * SUPPOSED * (1 - 1 / classes)
                off.append(abs(told - (base - accuracy)))
                if 0.02 < share < 0.97:
                    known.append([1.0, math.log(recipe.dimension), math.log(noise_length(recipe))])
                    wanted.append(math.log(share / (1 - share)))
                print(
                    f"{recipe.dimension:7d} {people:7,} {epsilon:4} {1 / noise_length(recipe):9.1f} {base:8.3f} "
                    f"{accuracy:6.3f} {base - accuracy:+.3f} {told:+.3f}"
                )
    factor, by_weights, by_signal = np.linalg.lstsq(np.array(known), np.array(wanted), rcond=None)[0]
    print(f"fitted: {math.exp(factor):.1f}·D^{by_weights:.2f}/s^{by_signal:.2f}; told was off by {np.mean(off):.3f}")


if __name__ == "__main__":
    main()

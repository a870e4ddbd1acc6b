"""A model made to keep to what everybody knows of all rows: rules, columns that follow from others, known totals.

Facts stand in the policy and come from no row; so all of this is post-processing of a model, and costs nothing.

*Rules.* Rows that break one are drawn again: the model given that the rules hold. By itself that would shift columns:
where noise lets a stay end before it begins, what is kept begins earlier and ends later than it should. So every value
of every column gets a factor θ, and rows count by the product of their factors, which are such that each column by
itself is as it was in the model. That is the distribution nearest to the model, in relative entropy, among those that
keep to the rules and have the model's single columns (Csiszár, 1975); it is found by iterative proportional fitting.

*Columns that follow.* Which country goes with a city the policy says, or else it is what goes with it most often in
the model. Rows get that.

Where noise has left a model that has no row that keeps to the rules, all values are alike: such a model says nothing.

*Known totals.* A column's shares are those of the totals instead of the model's, in the same fitting.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError, UnknownColumnError
from dalenius.synthesis.conditional import Conditional
from dalenius.synthesis.generators.histogram import IndependentModel
from dalenius.synthesis.meaning import Meaning
from dalenius.tables.condition_reading import read_condition
from dalenius.tables.conditions import Condition, Every, allowing, columns_of
from dalenius.tables.policy import Facts, label_of

if TYPE_CHECKING:
    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.modelled import Modelled
    from dalenius.synthesis.policy_domain import PolicyDomain
    from dalenius.synthesis.stored import StoredModel

FITTED_ON = 100_000  # rows
ROUNDS = 30
SEEN = 20  # rows: the share of a value of fewer is not brought to anything
MOST = 1e6  # that a factor is from 1, where a total wants it
FARTHEST = 30.0  # that a factor is from 1: what rules nearly exclude takes nothing over

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Kept:
    """What is drawn from so that rows keep to the facts.

    Attributes:
        conditional: The model, the rules, the factors, and what follows from what.
        totals: Of a column (by its place) how many rows each of its codes has.
    """

    conditional: Conditional
    totals: Mapping[int, Floats]

    @property
    def rows(self) -> int | None:
        """How many rows there are, by the totals; None: there are none."""
        return round(max(float(each.sum()) for each in self.totals.values())) if self.totals else None


def kept(stored: StoredModel, facts: Facts) -> Kept:
    """A model with what is known. What is known of columns that it does not have is left out."""
    domain, chance = stored.domain, np.random.default_rng(1)
    codes = stored.model.sample(FITTED_ON, chance) if facts else np.zeros((0, len(domain.columns)), np.int32)
    follows = _follows(facts, domain, codes)
    plain = Conditional(stored.model, domain, rules_of(facts, domain), follows=follows)
    totals = _totals(facts, domain, codes, stored.rows)
    if not facts.rules and not follows and not totals:
        return Kept(plain, {})
    try:
        given = plain.rows(FITTED_ON, chance).codes
    except InputError:
        plain = replace(plain, model=_even(domain, stored.model.rows))
        given, codes = plain.rows(FITTED_ON, chance).codes, plain.model.sample(FITTED_ON, chance)
    places = range(len(domain.columns)) if facts.rules or follows else sorted(totals)
    wanted = {at: totals[at] if at in totals else _counted(codes[:, at], domain.columns[at]) for at in places}
    counts = _fitted(given, domain, wanted, totals)
    factors = [None if at in totals else each for at, each in enumerate(counts)]
    counts = [each if at in totals else None for at, each in enumerate(counts)]
    for at, (of, goes) in follows.items():
        # What counts for a country counts for its cities.
        factor = counts[at]
        if factor is not None:
            own = np.where(goes >= 0, factor[goes], 1.0)
            before = counts[of]
            counts[of], counts[at] = own if before is None else before * own, None
    weighed = factors if any(each is not None for each in factors) else ()
    return Kept(replace(plain, counts=counts, factors=weighed), totals)


def _even(domain: PolicyDomain, rows: float) -> IndependentModel:
    """All declared and found values alike: what is left to say where noise has made rows none of which is possible."""
    columns = [each.column for each in domain.columns]
    return IndependentModel(
        rows, tuple(np.where(np.arange(each.size) < each.known, 1 / each.known, 0) for each in columns)
    )


# --- rules


def rules_of(facts: Facts, domain: PolicyDomain) -> Condition:
    """All rules about columns that are modelled, as one condition. A rule is kept to where it is not false."""
    return Every(tuple(map(allowing, _about(facts, domain))))


def _about(facts: Facts, domain: PolicyDomain) -> list[Condition]:
    kinds = {each.name: each.kind for each in domain.columns}
    found = list[Condition]()
    for rule in facts.rules:
        with suppress(UnknownColumnError):  # one that is not modelled: the policy itself was checked when it was read
            found.append(read_condition(rule, kinds))
    return found


def check_possible(facts: Facts, domain: PolicyDomain) -> None:
    """Refuses rules that no row can keep to, as far as declarations tell: before anything is charged."""
    settled = {each.name for each in domain.columns if not each.sought or each.grid is not None}
    rules = tuple(allowing(each) for each in _about(facts, domain) if columns_of(each) <= settled)
    if not Meaning(domain, Every(rules)).alternatives:
        raise InputError(
            "No row can keep to the rules of this table.",
            why="They contradict one another, or the bounds and keys of its columns.",
            fix="Have the owner correct [synthetic] rules in the policy.",
        )


# --- columns that follow from others


def _follows(facts: Facts, domain: PolicyDomain, codes: Codes) -> dict[int, tuple[int, NDArray[np.int32]]]:
    """Of each such column what goes with each code of the other one: what most rows of the model have; −1: nothing."""
    names = [each.name for each in domain.columns]
    found = dict[int, tuple[int, NDArray[np.int32]]]()
    for name, of in facts.follows.items():
        if name in names and of in names:
            at, place = names.index(name), names.index(of)
            column, other = domain.columns[at].column, domain.columns[place].column
            cells = codes[:, place].astype(np.int64) * column.size + codes[:, at]
            table = np.bincount(cells, minlength=other.size * column.size)
            table = table.reshape(other.size, column.size)[:, : column.known]
            goes = table.argmax(axis=1).astype(np.int32)
            goes[table.sum(axis=1) == 0] = -1
            goes[other.known :] = -1  # of absent values and the rest of keys nothing follows
            labels = [
                [label_of(key) for key in each.keys or ()] for each in (domain.columns[place], domain.columns[at])
            ]
            for label, value in facts.values.get(name, {}).items():
                goes[labels[0].index(label)] = labels[1].index(value)
            found[at] = place, goes
    return found


# --- known totals


def _totals(facts: Facts, domain: PolicyDomain, codes: Codes, rows: int) -> dict[int, Floats]:
    """Of each column with totals the number of rows with each code; those that are not known, as the model has them."""
    names = [each.name for each in domain.columns]
    found = dict[int, Floats]()
    for name, totals in facts.totals.items():
        if name in names:
            at = names.index(name)
            column = domain.columns[at]
            numbers = _counted(codes[:, at], column) * (rows / max(1, len(codes)))
            for code, key in enumerate(column.keys or ()):
                numbers[code] = totals.get(label_of(key), numbers[code])
            found[at] = numbers
    whole = max((float(each.sum()) for each in found.values()), default=0.0)
    for at, numbers in found.items():  # columns agree about how many rows there are: what is not known makes up for it
        open_ = np.ones(len(numbers), bool)
        keys = domain.columns[at].keys or ()
        open_[: len(keys)] = [label_of(key) not in facts.totals[names[at]] for key in keys]
        rest, left = float(numbers[open_].sum()), whole - float(numbers[~open_].sum())
        if rest > 0:
            numbers[open_] *= left / rest
        else:
            numbers[:] *= whole / float(numbers.sum())
    return found


def _counted(codes: Codes, column: Modelled) -> Floats:
    return np.bincount(codes, minlength=column.column.size).astype(np.float64)


# --- factors


def _fitted(
    codes: Codes, domain: PolicyDomain, wanted: Mapping[int, Floats], totals: Collection[int]
) -> list[Floats | None]:
    """A factor for each code of these columns, so that rows that count by them have the wanted shares."""
    factors = {at: np.ones(domain.columns[at].column.size) for at in wanted}
    shares = {at: numbers / max(float(numbers.sum()), 1e-9) for at, numbers in wanted.items()}
    seen = {at: _counted(codes[:, at], domain.columns[at]) >= (0 if at in totals else SEEN) for at in wanted}
    weights = np.full(len(codes), 1 / max(1, len(codes)))
    for _ in range(ROUNDS):
        for at, share in shares.items():
            has = np.bincount(codes[:, at], weights, minlength=len(share))
            change = np.divide(share, has, out=np.ones(len(share)), where=seen[at] & (has > 0))
            most = MOST if at in totals else FARTHEST
            new = np.where(share > 0, np.clip(factors[at] * change, 1 / most, most), 0.0 if at in totals else 1.0)
            weights *= np.divide(new, factors[at], out=np.zeros(len(new)), where=factors[at] > 0)[codes[:, at]]
            factors[at] = new
            weights /= max(float(weights.sum()), 1e-300)
    return [factors.get(at) for at in range(len(domain.columns))]

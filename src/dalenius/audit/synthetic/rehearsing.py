"""A synthetic table made for a check alone, from some of the people: as a real one, in memory, and dropped."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dalenius.audit.synthetic.reading import People, read_people
from dalenius.errors import InputError
from dalenius.ledger.key_delta import Left
from dalenius.measuring.expressions import TRUE
from dalenius.synthesis.rows import UnitMeasurer
from dalenius.synthesis.seeking import Shares, key_places, seek_classes, seek_keys
from dalenius.synthesis.unit_counts import PART

if TYPE_CHECKING:
    from dalenius.measuring.engines.engine import Engine
    from dalenius.releasing.leaving import Asker
    from dalenius.synthesis.domain import Codes
    from dalenius.synthesis.kind import Planned
    from dalenius.synthesis.policy_domain import PolicyDomain

_SECONDS = 3600.0  # the owner waits


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What a synthetic table was made from, and its rows (columns × rows)."""

    domain: PolicyDomain
    real: People
    held: People
    synthetic: Codes


def rehearse(planned: Planned, owner: Asker, engine: Engine, salt: str, share: float) -> Rehearsal:
    """Makes one from the people who are not held out, with the steps and prices of a release (`Planned.look`).

    Only keys that nobody declared are found among all people.
    """
    epsilon, dataset = float(planned.ask.epsilon), planned.table.policy.dataset
    rho, shares = Fraction(planned.cost(epsilon).rho), Shares.of(planned.domain)
    delta = planned.delta(epsilon, Left.of(owner.remaining(dataset, planned.paying)))
    planned.event(epsilon, delta)
    keys = key_places(planned.domain)
    price = rho * shares.keys, delta / max(1, len(keys))
    domain = seek_keys(planned.table, planned.domain, TRUE, price, engine, salt, _SECONDS)
    real, held = read_people(planned.table, domain, engine, salt).split(share)
    if not real.rows or not held.rows:
        raise InputError("Too few people.", why="Nobody is on one of the two sides.", fix="Hold out another share.")
    weights, later = planned.limit.weigh(real.rows_of_units()), planned.noise_of_values(rho)
    settled, codes, spent = seek_classes(domain, real.codes, weights, planned.limit, rho * shares.classes, later)
    spent += len(keys) * price[0] + (rho * PART if planned.unit else 0)
    measurer = UnitMeasurer(settled.domain, codes, weights, planned.limit, rho - spent)
    model = planned.method.fit(measurer, planned.ask.target, planned.effort)
    made = model.sample(max(1, round(model.rows)), np.random.default_rng())
    return Rehearsal(
        settled,
        People(codes.astype(np.int32), real.tags),
        People(_coded(domain, settled, held.codes), held.tags),
        np.ascontiguousarray(made.T.astype(np.int32)),
    )


def _coded(before: PolicyDomain, after: PolicyDomain, codes: Codes) -> Codes:
    """The codes of rows of which some columns were read as positions."""
    columns = zip(before.columns, after.columns, codes, strict=True)
    return np.stack([(new.of_positions(own) if old.sought else own).astype(np.int32) for old, new, own in columns])

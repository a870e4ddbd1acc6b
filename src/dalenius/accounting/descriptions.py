"""Events as others write them: the list of mechanisms that `dalenius account` reads, and dp_accounting's events.

Each entry of the list names a mechanism and its parameters, with ``sensitivity`` 1 and ``times`` 1 unless given:

    [{"mechanism": "gaussian", "sigma": 30, "times": 1000},
     {"mechanism": "gaussian", "sigma": 1, "sampling": {"poisson": 0.01}, "times": 10000},
     {"parallel": [{"mechanism": "laplace", "scale": 10}, {"mechanism": "pure", "epsilon": 0.2}]}]

The list may stand in an object that names the relation: {"neighbors": "substitute", "events": [...]}.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.accounting import events, parameters
from dalenius.accounting.events import Event, Leaf
from dalenius.accounting.neighbors import Neighbors
from dalenius.accounting.parameters import Real
from dalenius.errors import InputError


@dataclass(frozen=True)
class Mechanism:
    """How one mechanism is written: its own parameters (with defaults) and the event they make."""

    required: tuple[str, ...]
    optional: Mapping[str, Any]
    event: Callable[..., Leaf]


def _noise_multiplier(noise: object, sensitivity: object, name: str) -> Real:
    top, bottom = parameters.positive(noise, name), parameters.positive(sensitivity, "sensitivity")
    if isinstance(top, int) and isinstance(bottom, int):
        return Fraction(top, bottom) if top % bottom else top // bottom
    return top / bottom


def _gaussian(neighbors: Neighbors, sigma: object, sensitivity: object) -> Leaf:
    return events.Gaussian(_noise_multiplier(sigma, sensitivity, "sigma"), neighbors)


def _laplace(neighbors: Neighbors, scale: object, sensitivity: object) -> Leaf:
    return events.Laplace(_noise_multiplier(scale, sensitivity, "scale"), neighbors)


def _discrete_gaussian(neighbors: Neighbors, sigma: object, sensitivity: object, dimension: object) -> Leaf:
    spread = Fraction(parameters.positive(sigma, "sigma"))
    squared = parameters.count(sensitivity, "sensitivity") ** 2
    return events.DiscreteGaussian(spread * spread, squared, parameters.count(dimension, "dimension"), neighbors)


def _discrete_laplace(neighbors: Neighbors, scale: object, sensitivity: object, dimension: object) -> Leaf:
    return events.DiscreteLaplace(
        parameters.positive(scale, "scale"),
        parameters.count(sensitivity, "sensitivity"),
        parameters.count(dimension, "dimension"),
        neighbors,
    )


def _by_epsilon(kind: Callable[[Real, Neighbors], Leaf]) -> Callable[..., Leaf]:
    def event(neighbors: Neighbors, epsilon: object) -> Leaf:
        return kind(parameters.positive(epsilon, "epsilon"), neighbors)

    return event


def _randomized_response(neighbors: Neighbors, epsilon: object, categories: object) -> Leaf:
    return events.RandomizedResponse(
        parameters.positive(epsilon, "epsilon"),
        parameters.count(categories, "categories", least=2),
        neighbors,
    )


def _approx(neighbors: Neighbors, epsilon: object, delta: object) -> Leaf:
    return events.Approx(parameters.positive(epsilon, "epsilon"), parameters.delta(delta), neighbors)


def _zcdp(neighbors: Neighbors, rho: object, delta: object) -> Leaf:
    return events.Zcdp(parameters.positive(rho, "rho"), parameters.delta(delta), neighbors)


MECHANISMS: dict[str, Mechanism] = {
    "gaussian": Mechanism(("sigma",), {"sensitivity": 1}, _gaussian),
    "laplace": Mechanism(("scale",), {"sensitivity": 1}, _laplace),
    "discrete_gaussian": Mechanism(("sigma",), {"sensitivity": 1, "dimension": 1}, _discrete_gaussian),
    "discrete_laplace": Mechanism(("scale",), {"sensitivity": 1, "dimension": 1}, _discrete_laplace),
    "exponential": Mechanism(("epsilon",), {}, _by_epsilon(events.Exponential)),
    "noisy_max": Mechanism(("epsilon",), {}, _by_epsilon(events.NoisyMax)),
    "randomized_response": Mechanism(("epsilon",), {"categories": 2}, _randomized_response),
    "pure": Mechanism(("epsilon",), {}, _by_epsilon(events.Pure)),
    "approx": Mechanism(("epsilon", "delta"), {}, _approx),
    "zcdp": Mechanism(("rho",), {"delta": 0}, _zcdp),
}


def read_events(data: object) -> Event:
    """The events of a parsed description.

    >>> read_events([{"mechanism": "laplace", "scale": 10, "times": 100}]).events[0].times
    100
    """
    neighbors = Neighbors.ADD_REMOVE
    if isinstance(data, dict) and "events" in data:
        _only(data, {"neighbors", "events"}, "the file")
        neighbors = Neighbors.of(data.get("neighbors", neighbors))
        data = data["events"]
    if not isinstance(data, list) or not data:
        raise InputError(
            "This is not a list of mechanisms.",
            why="It must be a JSON list with at least one entry.",
            fix='Write for example [{"mechanism": "laplace", "scale": 10, "times": 100}].',
        )
    return events.Composed(tuple(_entry(entry, f"entry {place}", neighbors) for place, entry in enumerate(data, 1)))


def _entry(entry: object, place: str, neighbors: Neighbors) -> Event:
    try:
        return _read_entry(entry, place, neighbors)
    except InputError as error:
        if error.message.startswith("In "):
            raise
        raise InputError(f"In {place}: {error.message}", why=error.why, fix=error.fix) from None


def _read_entry(entry: object, place: str, neighbors: Neighbors) -> Event:
    if not isinstance(entry, dict):
        raise InputError(
            "This is not a mechanism.",
            why="An entry is an object.",
            fix='Write for example {"mechanism": "gaussian", "sigma": 30}.',
        )
    if "parallel" in entry:
        _only(entry, {"parallel", "times"}, "parallel")
        parts = entry["parallel"]
        if not isinstance(parts, list) or not parts:
            raise InputError("parallel needs a list.", why="It joins several mechanisms.", fix="Give their list.")
        inside = tuple(_entry(part, f"{place}, part {i}", neighbors) for i, part in enumerate(parts, 1))
        return _repeat(events.Parallel(inside), entry)
    name = entry.get("mechanism")
    if not isinstance(name, str) or name not in MECHANISMS:
        raise InputError(
            f"Unknown mechanism {name!r}." if name is not None else "The mechanism is missing.",
            why=f"Known are: {', '.join(MECHANISMS)}.",
            fix=_nearest(str(name), MECHANISMS, 'Give one as "mechanism".'),
        )
    mechanism = MECHANISMS[name]
    _only(entry, {"mechanism", "times", "sampling", *mechanism.required, *mechanism.optional}, name)
    missing = [parameter for parameter in mechanism.required if parameter not in entry]
    if missing:
        raise InputError(
            f"{name} needs {missing[0]}.", why="It says how much noise there is.", fix=f"Add {missing[0]}."
        )
    given = {key: entry.get(key, default) for key, default in mechanism.optional.items()}
    given |= {key: entry[key] for key in mechanism.required}
    event: Event = mechanism.event(neighbors, **given)
    if "sampling" in entry:
        event = _sample(event, entry["sampling"])
    return _repeat(event, entry)


def _repeat(event: Event, entry: Mapping[str, object]) -> Event:
    return events.Repeated(event, parameters.count(entry["times"], "times")) if "times" in entry else event


def _sample(event: Event, sampling: object) -> Event:
    if isinstance(sampling, dict) and set(sampling) == {"poisson"}:
        return events.PoissonSampled(parameters.probability(sampling["poisson"], "poisson"), event)
    if isinstance(sampling, dict) and set(sampling) == {"sample", "population"}:
        sample, population = sampling["sample"], sampling["population"]
        return events.SampledWithoutReplacement(
            parameters.count(sample, "sample"), parameters.count(population, "population"), event
        )
    raise InputError(
        "Unknown kind of sampling.",
        why="Sampling is by Poisson, or without replacement.",
        fix='Write {"poisson": 0.01}, or {"sample": 100, "population": 10000} under "neighbors": "substitute".',
    )


def _only(entry: Mapping[str, object], known: set[str], what: str) -> None:
    unknown = [str(key) for key in entry if key not in known]
    if unknown:
        raise InputError(
            f"{what} has no parameter {unknown[0]!r}.",
            why=f"It takes {', '.join(sorted(known))}.",
            fix=_nearest(unknown[0], known, "Leave it out."),
        )


def _nearest(word: str, known: Mapping[str, object] | set[str], otherwise: str) -> str:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else otherwise


def from_dp_event(event: object, neighbors: Neighbors = Neighbors.ADD_REMOVE) -> Event:
    """Our event for one of dp_accounting's, under a relation (theirs do not carry one).

    That package is no dependency: whoever holds one of its events has it installed and loaded, so it is imported only
    when such an event comes in.

    >>> import dp_accounting
    >>> from_dp_event(dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(3.0), 5)).times
    5
    """
    if all(each.__module__.partition(".")[0] != "dp_accounting" for each in type(event).__mro__):
        raise _not_an_event(event)
    import dp_accounting

    match event:
        case dp_accounting.NoOpDpEvent():
            return events.Composed(())
        case dp_accounting.GaussianDpEvent():
            return events.Gaussian(event.noise_multiplier, neighbors)
        case dp_accounting.LaplaceDpEvent():
            return events.Laplace(event.noise_multiplier, neighbors)
        case dp_accounting.dp_event.DiscreteLaplaceDpEvent():
            return events.DiscreteLaplace(1 / event.noise_parameter, event.sensitivity, neighbors=neighbors)
        case dp_accounting.RandomizedResponseDpEvent():
            epsilon = math.log1p(event.num_buckets * (1 - event.noise_parameter) / event.noise_parameter)
            return events.RandomizedResponse(epsilon, event.num_buckets, neighbors)
        case dp_accounting.dp_event.ZCDpEvent(xi=0):
            return events.Zcdp(event.rho, neighbors=neighbors)
        case dp_accounting.SelfComposedDpEvent():
            return events.Repeated(from_dp_event(event.event, neighbors), event.count)
        case dp_accounting.ComposedDpEvent():
            return events.Composed(tuple(from_dp_event(part, neighbors) for part in event.events))
        case dp_accounting.PoissonSampledDpEvent():
            return events.PoissonSampled(event.sampling_probability, from_dp_event(event.event, neighbors))
        case dp_accounting.SampledWithoutReplacementDpEvent():
            inner = from_dp_event(event.event, Neighbors.SUBSTITUTE)
            return events.SampledWithoutReplacement(event.sample_size, event.source_dataset_size, inner)
        case _:
            raise _not_an_event(event)


def _not_an_event(event: object) -> InputError:
    return InputError(
        f"{type(event).__name__} cannot be accounted.",
        why="It is not an event, or not one that is differentially private and known here.",
        fix="Use the events of dalenius.accounting.events, or dp_accounting's.",
    )

"""Events: what a mechanism did, described for accounting. No data, no noise, no cost by themselves.

The vocabulary is dp_accounting's, and `descriptions` translates from it. The classes here are our own because
loading dp_accounting takes more than a CPU second, which every charge would pay, because they carry the
neighbouring relation, and because the exponential mechanism, noisy max and the discrete Gaussian are missing there.

Parameters may be ints, floats or Fractions and stay exactly what they are. Sensitivity is a matter of the
relation: a noise multiplier is the noise divided by the sensitivity *under that relation*.

How the ledger and receipts write them down: `event_json`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from dalenius.accounting import parameters
from dalenius.accounting.neighbors import Neighbors, common_neighbors
from dalenius.accounting.parameters import Real
from dalenius.errors import InputError

_ADD_REMOVE = Neighbors.ADD_REMOVE


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Gaussian noise of standard deviation σ on a vector of L2 sensitivity Δ; ``noise_multiplier`` is σ/Δ."""

    noise_multiplier: Real
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.noise_multiplier, "noise_multiplier")


@dataclass(frozen=True, slots=True)
class Laplace:
    """Laplace noise of scale b on a vector of L1 sensitivity Δ; ``noise_multiplier`` is b/Δ. It is Δ/b-DP."""

    noise_multiplier: Real
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.noise_multiplier, "noise_multiplier")


@dataclass(frozen=True, slots=True)
class DiscreteGaussian:
    """Discrete Gaussian noise, P(k) ∝ exp(−k²/2σ²), on an integer vector.

    Held as σ² and Δ² (the squared L2 sensitivity), both exact: ρ = Δ²/2σ² [Canonne, Kamath & Steinke (2020), Thm. 4].
    ``dimension`` is 1 for one number; only then is the exact loss distribution used.
    """

    variance: Real
    squared_sensitivity: int = 1
    dimension: int = 1
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.variance, "variance")
        parameters.count(self.squared_sensitivity, "squared_sensitivity")
        parameters.count(self.dimension, "dimension")


@dataclass(frozen=True, slots=True)
class DiscreteLaplace:
    """Discrete Laplace noise, P(k) ∝ exp(−|k|/b), on an integer vector of L1 sensitivity Δ. It is Δ/b-DP.

    Ghosh, Roughgarden & Sundararajan (2009). ``dimension`` as for `DiscreteGaussian`.
    """

    scale: Real
    sensitivity: int = 1
    dimension: int = 1
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.scale, "scale")
        parameters.count(self.sensitivity, "sensitivity")
        parameters.count(self.dimension, "dimension")


@dataclass(frozen=True, slots=True)
class Exponential:
    """The exponential mechanism (and Gumbel noisy max) at ε: its privacy loss has range ε, so ρ = ε²/8."""

    epsilon: Real
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")


@dataclass(frozen=True, slots=True)
class NoisyMax:
    """Report noisy max with exponential noise (permute and flip) at ε: pure ε, not of range ε, so ρ = ε²/2."""

    epsilon: Real
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """k-ary randomized response: the truth with probability e^ε/(e^ε+k−1), else one of the k−1 others.

    The loss is that of one value exchanged for another, also in a list that is otherwise about adding or
    removing units: a report that is there or not has no finite loss.
    """

    epsilon: Real
    categories: int = 2
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")
        parameters.count(self.categories, "categories", least=2)


@dataclass(frozen=True, slots=True)
class Pure:
    """Anything known to be ε-DP and nothing more."""

    epsilon: Real
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")


@dataclass(frozen=True, slots=True)
class Approx:
    """Anything known to be (ε, δ)-DP and nothing more."""

    epsilon: Real
    delta: Real
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.epsilon, "epsilon")
        parameters.delta(self.delta)


@dataclass(frozen=True, slots=True)
class Zcdp:
    """Anything known to be δ-approximate ρ-zCDP and nothing more."""

    rho: Real
    delta: Real = 0
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        parameters.positive(self.rho, "rho")
        parameters.delta(self.delta)


@dataclass(frozen=True, slots=True)
class PoissonSampled:
    """``event`` on a sample that each unit enters independently with probability ``rate``; add-remove only."""

    rate: Real
    event: Event

    def __post_init__(self) -> None:
        parameters.probability(self.rate, "rate")
        if self.event.neighbors is not _ADD_REMOVE:
            raise InputError(
                "Poisson sampling is accounted under add-remove.",
                why="The number of units in the sample is random, so a substitution shows less than it hides.",
                fix="Use add-remove, or sampling without replacement under substitute.",
            )
        if any(isinstance(single, RandomizedResponse) for single, _ in flatten(self.event)):
            raise InputError(
                "Randomized response is not amplified by Poisson sampling.",
                why="Whether there is a report shows who was sampled; only an exchange of values is hidden.",
                fix="Leave the sampling out, or sample without replacement under substitute.",
            )

    @property
    def neighbors(self) -> Neighbors:
        """The relation of what is inside."""
        return self.event.neighbors


@dataclass(frozen=True, slots=True)
class SampledGaussian:
    """``steps`` sums, each over units that enter it with probability ``rate``, each with discrete Gaussian noise.

    Every sum is an integer vector to which a unit adds one of squared L2 norm at most ``squared_sensitivity``, chosen
    after all sums before it; ``variance`` is σ² of the noise on each of its ``dimension`` numbers. The rate is a whole
    number of 2⁻³², as the sampler draws it. ``delta`` is what else may go wrong, such as more units drawn than there
    is room for. Add-remove only. It has no ρ: what it costs is a matter of the order (`sampled_discrete`).
    """

    rate: Fraction
    variance: Real
    squared_sensitivity: int = 1
    steps: int = 1
    dimension: int = 1
    delta: Real = 0
    neighbors: Neighbors = _ADD_REMOVE

    def __post_init__(self) -> None:
        _require_whole_rate(self.rate)
        parameters.positive(self.variance, "variance")
        parameters.count(self.squared_sensitivity, "squared_sensitivity")
        parameters.count(self.steps, "steps")
        parameters.count(self.dimension, "dimension")
        parameters.delta(self.delta)
        check_sampling(self.neighbors)

    @property
    def squared_multiplier(self) -> Fraction:
        """σ² over the squared sensitivity, exactly."""
        return Fraction(self.variance) / self.squared_sensitivity


@dataclass(frozen=True, slots=True)
class SampledWithoutReplacement:
    """``event`` on ``sample`` units drawn without replacement from ``population``; substitute only."""

    sample: int
    population: int
    event: Event

    def __post_init__(self) -> None:
        parameters.count(self.sample, "sample")
        parameters.count(self.population, "population")
        if self.sample > self.population:
            raise InputError(
                "The sample is larger than the population.",
                why="Units are drawn without replacement.",
                fix="Give a sample of at most the population.",
            )
        if self.event.neighbors is not Neighbors.SUBSTITUTE:
            raise InputError(
                "Sampling without replacement is accounted under substitute.",
                why="The sample has a fixed size, so the number of units is public.",
                fix="State the event under substitute, or use Poisson sampling under add-remove.",
            )

    @property
    def rate(self) -> Fraction:
        """The share of units that a sample has."""
        return Fraction(self.sample, self.population)

    @property
    def neighbors(self) -> Neighbors:
        """The relation of what is inside."""
        return self.event.neighbors


@dataclass(frozen=True, slots=True)
class Repeated:
    """``event``, ``times`` times, each question chosen after the answers before it."""

    event: Event
    times: int

    def __post_init__(self) -> None:
        parameters.count(self.times, "times")

    @property
    def neighbors(self) -> Neighbors:
        """The relation of what is inside."""
        return self.event.neighbors


@dataclass(frozen=True, slots=True)
class Composed:
    """Several events on the same units, one after another. An empty one is nothing done."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        common_neighbors(event.neighbors for event in self.events)

    @property
    def neighbors(self) -> Neighbors:
        """The relation of what is inside."""
        return common_neighbors(event.neighbors for event in self.events)


@dataclass(frozen=True, slots=True)
class Parallel:
    """Several events on disjoint sets of units. Add-remove only (see `guarantees.parallel`)."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        parameters.count(len(self.events), "number of parallel events")
        if common_neighbors(event.neighbors for event in self.events) is not _ADD_REMOVE:
            raise InputError(
                "Parallel events are accounted under add-remove.",
                why="A substituted unit may leave one part and enter another.",
                fix="State the events under add-remove.",
            )

    @property
    def neighbors(self) -> Neighbors:
        """The relation of what is inside."""
        return _ADD_REMOVE


Leaf = (
    Gaussian
    | Laplace
    | DiscreteGaussian
    | DiscreteLaplace
    | Exponential
    | NoisyMax
    | RandomizedResponse
    | Pure
    | Approx
    | Zcdp
)
Single = Leaf | PoissonSampled | SampledGaussian | SampledWithoutReplacement | Parallel
Event = Single | Repeated | Composed


RATE_BITS = 32  # a rate of sampling is a whole number of 2⁻³²


def check_sampling(neighbors: Neighbors) -> None:
    """Refuses sampled noise under a relation that it is not accounted for."""
    if neighbors is not _ADD_REMOVE:
        raise InputError(
            "Sampled noise is accounted under add-remove.",
            why="A substitution takes one unit out and puts another in, and sampling hides the two less than it seems.",
            fix='Use a method that adds its noise once, such as "output", or have the owner choose add-remove.',
        )


def _require_whole_rate(rate: object) -> None:
    """Refuses a rate that the sampler of units cannot draw exactly."""
    if not isinstance(rate, Fraction) or not 0 < rate <= 1 or (rate.numerator << RATE_BITS) % rate.denominator:
        raise InputError(
            "This is no rate of sampling.",
            why=f"It must be above 0, at most 1, and a whole number of 2^-{RATE_BITS}.",
            fix="Round it with sampled_discrete.sampling_rate.",
        )


def flatten(event: Event, times: int = 1) -> Iterator[tuple[Single, int]]:
    """The events of a composition with how often each happened, in order."""
    if isinstance(event, Repeated):
        yield from flatten(event.event, times * event.times)
    elif isinstance(event, Composed):
        for part in event.events:
            yield from flatten(part, times)
    else:
        yield event, times


def tally(event: Event) -> dict[Single, int]:
    """The distinct events of a composition with how often each happened.

    >>> tally(Composed((Laplace(10), Repeated(Laplace(10), 2))))[Laplace(10)]
    3
    """
    found: dict[Single, int] = {}
    for single, times in flatten(event):
        found[single] = found.get(single, 0) + times
    return found

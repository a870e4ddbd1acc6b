"""The attacks on noise itself: which values it reaches (H1), how long it takes (H3), whether a fork repeats it (H17).

Needs nothing but Python, like all that runs inside a peer's environment.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.peers.attacking import CHANCE, DRAWS, FELL, HELD, OUT, Finding

CHOSEN = 5  # events that are looked at twice
TIMING_SECONDS = 40.0  # for all samplers together

# --- H1


def precision(samplers: Mapping[str, Callable[[float], Sequence[float]]], epsilon: float = 1.0) -> Finding:
    """Mironov's attack: which doubles can noise reach from 0, and which from 1? The worst of all samplers counts.

    An event is a stretch of the line and the place of the lowest bit that is set, or one value that comes often. Half
    of the draws choose the five that differ most; the other half decide. Given the number of times that an event occurs
    on either side, its count on one of them is at most binomial with e^ε/(1+e^ε), if the release is ε-DP; a δ of 1e-6
    is far below one draw.
    """
    surprise, figure = max(_most_surprising(name, draws, epsilon) for name, draws in samplers.items())
    if surprise > -math.log(CHANCE / CHOSEN / len(samplers)):
        return Finding(FELL, "an event that ε = 1 does not allow", figure)
    return Finding(HELD, f"no event tells the sides apart by more than ε: {', '.join(samplers)}", figure)


def _most_surprising(name: str, draws: Callable[[float], Sequence[float]], epsilon: float) -> tuple[float, str]:
    sides = [list(draws(value)) for value in (0.0, 1.0)]
    learned = [_events(side[::2]) for side in sides]
    fresh = [_events(side[1::2]) for side in sides]
    pairs = [(event, one, other) for event in {*learned[0], *learned[1]} for one, other in ((0, 1), (1, 0))]
    chosen = sorted(pairs, key=lambda each: -_surprise(learned, each, epsilon))[:CHOSEN]
    worst = max(chosen, key=lambda each: _surprise(fresh, each, epsilon))
    event, one, other = worst
    many, few = fresh[one].get(event, 0), fresh[other].get(event, 0)
    counts = f"{many} of {len(sides[one]) // 2} from {one}, {few} from {other}"
    return _surprise(fresh, worst, epsilon), f"{name}: {event}, {counts}"


def _events(values: Iterable[float]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        for event in _events_of(float(value)):
            counts[event] = counts.get(event, 0) + 1
    return counts


def _events_of(value: float) -> Iterable[str]:
    if not math.isfinite(value):
        yield str(value)
        return
    stretch = next((f"in ({low:g}, {high:g})" for low, high in _STRETCHES if low < value < high), "elsewhere")
    # 2^-lowest divides the value, and no coarser power of two does
    lowest = value.as_integer_ratio()[1].bit_length() - 1
    yield f"odd multiple of 2^-{lowest} {stretch}"
    for bits in range(44, min(lowest, 80) + 1):
        yield f"finer than 2^-{bits - 1} {stretch}"
    if lowest < 8:
        yield f"exactly {value:g}"


_STRETCHES = ((-1.0, -0.5), (-0.5, 0.0), (0.0, 0.5), (0.5, 1.0), (1.0, 2.0), (-2.0, -1.0))


def _surprise(counts: Sequence[Mapping[str, int]], pair: tuple[str, int, int], epsilon: float) -> float:
    """−ln of the chance of so many on one side under ε-DP."""
    event, one, other = pair
    many, few = counts[one].get(event, 0), counts[other].get(event, 0)
    return -_log_tail(many, many + few, 1 / (1 + math.exp(-epsilon)))


def _log_tail(least: int, tries: int, chance: float) -> float:
    """ln P(X ≥ least) for a binomial X."""
    if least <= tries * chance:
        return 0.0
    logs = [
        math.lgamma(tries + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(tries - hits + 1)
        + hits * math.log(chance)
        + (tries - hits) * math.log1p(-chance)
        for hits in range(least, tries + 1)
    ]
    top = max(logs)
    return top + math.log(sum(math.exp(each - top) for each in logs))


# --- H3


def timing(samplers: Mapping[str, Callable[[], float]], *, truth: float = 0.0, whole: bool = False) -> Finding:
    """Does a draw take longer for larger noise? The worst of all samplers counts.

    Under independence the rank correlation of n pairs has standard deviation 1/√(n−1). Where fewer than 10,000 calls
    fit the time, the limit is five of those instead of 0.05. The least of up to three tries counts for each sampler,
    as in `tests/attack`; a sampler whose work grows is caught in each.

    Args:
        samplers: One release each, by name.
        truth: What they are releases of.
        whole: Whether other threads of the process work for it too.
    """
    clock = time.process_time_ns if whole else time.thread_time_ns
    found = [(*_least(draw, truth, TIMING_SECONDS / len(samplers), clock), name) for name, draw in samplers.items()]
    beyond, least, limit, calls, name = max(found)
    figure = f"{name}: rank correlation {least:.3f} over {calls:,} calls"
    if beyond < 0:
        return Finding(HELD, f"below {limit:.2f} for {', '.join(samplers)}", figure)
    return Finding(FELL, f"the time of a draw tells its size: not below {limit:.2f} in three tries", figure)


def _least(
    draw: Callable[[], float], truth: float, seconds: float, clock: Callable[[], int]
) -> tuple[float, float, float, int]:
    """By how much the least correlation is beyond its limit; it, the limit, the calls."""
    for _ in range(20):
        draw()
    found = []
    for _ in range(3):
        sizes, times = _timed(draw, truth, seconds / 3, clock)
        limit = max(0.05, 5 / math.sqrt(len(sizes)))
        least = abs(correlation(sizes, times))
        found.append((least - limit, least, limit, len(sizes)))
        if least < limit:
            break
    return min(found)


def _timed(
    draw: Callable[[], float], truth: float, seconds: float, clock: Callable[[], int]
) -> tuple[list[float], list[int]]:
    sizes: list[float] = []
    times: list[int] = []
    until = time.monotonic() + seconds
    while len(sizes) < DRAWS and time.monotonic() < until:
        started = clock()
        value = draw()
        times.append(clock() - started)
        sizes.append(abs(value - truth))
    return sizes, times


def correlation(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation; 0 where one of them never changes."""
    left, right = _ranks(one), _ranks(other)
    if min(statistics.pstdev(left), statistics.pstdev(right)) == 0:
        return 0.0
    return statistics.correlation(left, right)


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for at in range(start, end + 1):
            ranks[order[at]] = (start + end) / 2
        start = end + 1
    return ranks


# --- H17


def forked(draws: Callable[[], Sequence[float]], seconds: float = 20.0) -> Finding:
    """Draws, forks twice, draws in both children and in the parent: values that two of them share are repeated noise.

    The noise must be so wide that no value comes twice by chance; one that comes twice in one process (such as the end
    of a type's range) does not count.
    """
    draws()
    drawn = [in_child(draws, seconds) for _ in range(2)]
    drawn.append(list(draws()))
    if not drawn[0] or not drawn[1]:
        return Finding(OUT, "a forked child cannot draw: it fails or hangs")
    once = [{value for value in values if values.count(value) == 1} for values in drawn]
    shared = max(len(once[one] & once[other]) for one, other in ((0, 1), (0, 2), (1, 2)))
    figure = f"{shared} of {len(drawn[0])} draws repeated"
    if shared:
        return Finding(FELL, "a forked process repeats noise", figure)
    return Finding(HELD, "children and parent draw differently", figure)


def in_child(draws: Callable[[], Sequence[float]], seconds: float) -> list[float]:
    """What is drawn in a forked process; nothing if it fails or takes too long."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads; that is the attack
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as pipe:
                pipe.write(json.dumps([float(each) for each in draws()]))
        finally:
            os._exit(0)
    os.close(writing)
    said, until = b"", time.monotonic() + seconds
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        some = os.read(reading, 65536)
        if not some:
            break
        said += some
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return [float(each) for each in json.loads(said)]
    except ValueError:
        return []

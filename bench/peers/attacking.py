"""What the attacks on peers share; runs inside a peer's own environment, so it needs nothing but Python.

Each `attack_NAME.py` says how one system is asked; what counts as held or fallen is decided here, by the same rules for
all of them and for ours. One attack runs in one process: `python bench/peers/attack_NAME.py H1` prints one JSON object,
``{"verdict", "why", "figure", "seconds", "versions"}``. No verdict is written down: each follows from what came out.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

HELD, FELL, OUT = "held", "fell", "not applicable"
ATTACKS = {
    "H1": "precision",
    "H3": "sampler timing",
    "H6": "data-dependent errors",
    "H7": "free failures",
    "H8": "NULL, NaN, ±inf",
    "H12": "bad ε",
    "H13": "bad δ",
    "H16": "fresh budget",
    "H17": "fork",
}
DRAWS = 20_000  # of each side, for H1; at most so many calls for H3
ROWS = 1000  # of the plain table: units 0 to 999, x = ½, in the bounds 0 and 1
TOTAL = 500.0  # of its x
CHANCE = 1e-6  # of a false alarm, each time that chance decides


@dataclass(frozen=True)
class Finding:
    """What became of one attack."""

    verdict: str
    why: str
    figure: str = ""


Attack = Callable[[], Finding]


def report(attacks: Mapping[str, Attack], packages: Sequence[str]) -> None:
    """Runs the attack that the command line names, and prints what came out."""
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    found = asdict(attacks[sys.argv[1]]())
    found["seconds"] = time.perf_counter() - started
    found["versions"] = {package: version(package) for package in packages}
    print(json.dumps(found), flush=True)
    os._exit(0)  # engines that were forked with their threads may wait for them at the end


def worst(findings: Mapping[str, Finding]) -> Finding:
    """Of several ways to ask one system: one that fell, if any did."""
    name, found = min(findings.items(), key=lambda each: (FELL, HELD, OUT).index(each[1].verdict))
    same = [other for other, each in findings.items() if each.verdict == found.verdict]
    return Finding(found.verdict, f"{', '.join(same)}: {found.why}", f"{name}: {found.figure}")


def attempt(work: Callable[[], Any]) -> tuple[Any, str]:
    """What it returns, or None and the name of its error."""
    try:
        return work(), ""
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 (a panic of a Rust library is no Exception)
        return None, type(error).__name__


# --- H6 and H7

# In the columns x (a number, ½ everywhere) and s (a text, "1" but "x" for the victim).
FAULTS = (
    "CAST(s AS INTEGER)",
    "SQRT(x - 9)",
    "LN(x - x)",
    "EXP(x * 100000)",
    "POWER(x + 10, 1000)",
    "ABS(-9223372036854775807 - 1)",
    "1 / (x - x)",
    "1 % CAST(x AS INTEGER)",
)
SHAPES = (
    "SELECT COUNT(*) AS n FROM {table} WHERE CASE WHEN name = 'victim' THEN {fault} ELSE 1 END > 0",
    "SELECT SUM(CASE WHEN name = 'victim' THEN {fault} ELSE 1 END) AS n FROM {table}",
)


def faulting(table: str) -> list[str]:
    """Questions that fail on the victim's row, if anything does."""
    return [shape.format(table=table, fault=fault) for fault in FAULTS for shape in SHAPES]


def data_errors(questions: Iterable[str], status: Callable[[str, bool], str], more: str = "") -> Finding:
    """H6: is what becomes of a question the same with the victim's row as without it?

    Args:
        questions: Names or words of them.
        status: What an analyst sees of a question beside noise, without the victim and with it: "" if it is answered.
        more: What there is to know about this system.
    """
    told, answered, refused = [], 0, 0
    for question in questions:
        without, with_ = status(question, False), status(question, True)
        if without != with_:
            told.append(f"{_short(question)} → {with_ or 'answered'}")
        elif without:
            refused += 1
        else:
            answered += 1
    figure = f"{len(told)} of {len(told) + answered + refused} questions tell"
    if told:
        return Finding(FELL, f"{more}{told[0]}, only with the victim", figure)
    return Finding(HELD, f"{more}{answered} answered and {refused} refused, the same on neighbours", figure)


def _short(question: str) -> str:
    return next((fault for fault in FAULTS if fault in question), question)


def failures(tries: Mapping[str, Callable[[], tuple[str, float]]], price: float, more: str = "") -> Finding:
    """H7: each try asks a question that fails once it reached the data: the error's name, and what was charged."""
    free, paid = [], 0
    for name, work in tries.items():
        error, charged = work()
        if not error:
            continue  # it did not fail here
        if charged >= price * (1 - 1e-9):
            paid += 1
        else:
            free.append(f"{_short(name)} ({error}) cost {charged:g} of {price:g}")
    if not free and not paid:
        return Finding(OUT, f"{more}no question could be made to fail after it reached the data")
    figure = f"{len(free)} of {len(free) + paid} failures were free"
    return Finding(FELL if free else HELD, more + (free[0] if free else "failures cost what answers do"), figure)


# --- H8

SPECIAL = {"NULL": None, "NaN": math.nan, "inf": math.inf, "-inf": -math.inf}
PLAIN = "plain"
# How far one row with x in [0, 1] can move each, among 1,000; averages and variances by 1/n and a little.
MOVES = {"COUNT": 1.0, "SUM": 1.0, "AVG": 0.0015, "VAR": 0.0015}


def special_values(ask: Callable[[str, str], float], aggregates: Sequence[str] = tuple(MOVES)) -> Finding:
    """One more row whose x is NULL, NaN or infinite: is the answer finite, and moved by no more than one row can?

    ``ask`` takes `PLAIN` (no such row) or a name in `SPECIAL`, and an aggregate; noise should be small.
    """
    wrong, looked, largest = [], 0, 0.0
    for aggregate in aggregates:
        before = [attempt(lambda: ask(PLAIN, aggregate)) for _ in range(5)]  # noqa: B023 (called at once)
        numbers = [value for value, error in before if not error]
        if len(numbers) < len(before):
            continue  # this system does not have it
        middle, noise = statistics.median(numbers), max(numbers) - min(numbers)
        for name in SPECIAL:
            value, error = attempt(lambda: ask(name, aggregate))  # noqa: B023
            looked += 1
            if error:
                wrong.append(f"{aggregate} fails on {name} ({error})")
            elif value is None or not math.isfinite(value):
                wrong.append(f"{aggregate} becomes {value} with one {name}")
            else:
                moved = abs(value - middle)
                largest = max(largest, moved / MOVES[aggregate])
                if moved > MOVES[aggregate] * 1.1 + 4 * noise:
                    wrong.append(f"{aggregate} moves from {middle:.4g} to {value:.4g} with one {name}")
    if not looked:
        return Finding(OUT, "nothing was answered")
    figure = f"{len(wrong)} of {looked} cases; largest finite move {largest:.3g} sensitivities"
    return Finding(FELL if wrong else HELD, wrong[0] if wrong else "finite, within the sensitivity and noise", figure)


# --- H12 and H13

EPSILONS: tuple[Any, ...] = (-1, 0, -0.0, math.nan, math.inf, 1e-320, 1e-9, True, "1")
DELTAS = (-1.0, math.nan, 1.0, 2.0)
ONE = 7  # from there on the ε mean 1


def bad_epsilon(ask: Callable[[Any], float], *, near: float = 100.0, rounds: int = 12, more: str = "") -> Finding:
    """Refused, or answered soundly? ``ask`` releases `TOTAL` at that ε.

    An ε that is no price, or buys nearly nothing, must not bring an answer near the truth (the median of five). One
    that may be read as 1 must bring noise: a dozen answers that spread as those at ε = 1 do, if only by a third.
    """
    if attempt(lambda: ask(1.0))[1]:
        return Finding(OUT, "ε = 1 was refused too")
    wrong: list[str] = []
    sound: list[str] = []
    refused = 0
    for at, epsilon in enumerate(EPSILONS):
        answers = [attempt(lambda: ask(epsilon)) for _ in range(5 if at < ONE else rounds)]  # noqa: B023
        numbers = [value for value, error in answers if not error and value is not None and math.isfinite(value)]
        shown = repr(epsilon)
        if not numbers:
            refused += 1
        elif at < ONE:
            off = statistics.median(abs(value - TOTAL) for value in numbers)
            (wrong if off < near else sound).append(f"{shown}: {off:.3g} off the truth")
        else:
            spread = statistics.pstdev(numbers)
            (wrong if spread < 0.3 else sound).append(f"{shown} as 1, spread {spread:.2g}")
    figure = f"{refused} refused, {len(sound)} answered with noise, {len(wrong)} without"
    return Finding(
        FELL if wrong else HELD, more + ("; ".join(wrong) if wrong else "; ".join(sound) or "all refused"), figure
    )


def bad_delta(ask: Callable[[float], float]) -> Finding:
    """No answer may come for a δ that is no probability, or is 1."""
    if attempt(lambda: ask(1e-7))[1]:
        return Finding(OUT, "δ = 1e-7 was refused too")
    answered = []
    for delta in DELTAS:
        value, error = attempt(lambda: ask(delta))  # noqa: B023
        if not error:
            answered.append(f"δ = {delta:g}: {value if value is None else format(float(value), '.4g')}")
    figure = f"{len(answered)} of {len(DELTAS)} answered"
    return Finding(FELL if answered else HELD, "; ".join(answered) or "all refused", figure)


# --- H16


def fresh_budget(
    first: Callable[[], bool], again: Callable[[], bool], tricks: Mapping[str, Callable[[], bool]]
) -> Finding:
    """Can one ask on who has spent everything? Each call says whether a question of the whole ε is answered."""
    if not first():
        return Finding(OUT, "the first question was refused")
    own = "" if not again() else "no budget is kept: the same session answers on; "
    passed = [name for name, work in tricks.items() if attempt(work)[0]]
    figure = f"{1 + bool(own) + len(passed)} times the whole ε answered, {len(tricks)} ways tried"
    if own or passed:
        return Finding(FELL, f"{own}a fresh budget by: {', '.join(passed) or 'nothing else'}", figure)
    return Finding(HELD, f"the old balance is seen by: {', '.join(tricks)}", figure)

"""The membership game: somebody sees an output and guesses whether it came from the table with a unit or without it.

References:
    Wasserman & Zhou (2010), Thm. 2.4, and Kairouz, Oh & Viswanath (2015), Thm. 2.1 on tests; Humphries et al.,
    Investigating membership inference attacks under data dependencies (2023), on the advantage.
"""

from __future__ import annotations

import math

from dalenius.accounting import parameters
from dalenius.errors import InputError


def most_advantage(epsilon: float, delta: float = 0.0) -> float:
    """The most that TPR − FPR of any guess can be under (ε, δ)-DP: (e^ε − 1 + 2δ)/(e^ε + 1).

    Proof. Let t = TPR and f = FPR. (ε, δ)-DP of "guessed member" says t ≤ e^ε·f + δ, that of "guessed non-member", the
    other way round, 1 − f ≤ e^ε·(1 − t) + δ. Their sum is (1 + e^ε)·(t − f) ≤ e^ε − 1 + 2δ. ∎ Randomized response
    reaches it at δ = 0.

    >>> round(most_advantage(1.0), 4), most_advantage(0.0), round(most_advantage(1.0, 0.1), 4)
    (0.4621, 0.0, 0.5159)
    """
    given, failure = float(parameters.real(epsilon, "epsilon")), parameters.delta(delta)
    if not given >= 0:
        raise InputError("ε must not be negative.", why="It bounds a loss.", fix="Give an ε of at least 0.")
    return min(1.0, math.tanh(given / 2) + 2 * failure / (1 + math.exp(given)) if given < 700 else 1.0)


def least_epsilon(true_positives: float, false_positives: float, delta: float = 0.0) -> float:
    """The ε that a guess with these rates shows: e^ε ≥ max((TNR − δ)/FNR, (TPR − δ)/FPR) (SPEC, L7).

    Rates that are known exactly; from counts, use `confidence.epsilon_bound`.

    >>> round(least_epsilon(0.7310585786, 0.2689414214), 6), least_epsilon(0.5, 0.5), least_epsilon(0.2, 0.0)
    (1.0, 0.0, inf)
    """
    parameters.delta(delta)
    if not (0 <= true_positives <= 1 and 0 <= false_positives <= 1):
        raise InputError("A rate lies between 0 and 1.", why="It is a share of guesses.", fix="Check the rates.")
    found = 0.0
    for kept, lost in ((true_positives, false_positives), (1 - false_positives, 1 - true_positives)):
        if kept > delta:
            found = max(found, math.log((kept - delta) / lost) if lost > 0 else math.inf)
    return found

"""How private something is at most: lower bounds on ε from samples of what it gives on two neighbouring inputs.

    confidence   rates with Clopper–Pearson intervals, and the ε̂ that follows from them
    membership   the game that guesses which of two neighbours it was, and what ε allows in it
    claims       what is promised, as ε at a δ and as a trade-off curve
    features     what can be looked at in an output: values, magnitudes, low-order bits, whole outputs
    classifier   logistic regression over several of these, in the manner of DP-Sniper
    learning     the event that tells two sides apart best, found on the first half of the samples
    bounding     the whole: sample, learn, count on fresh samples
    charts       the claimed trade-off curve with the measured points

A lower bound shows that something is *not* as private as it claims. That no event was found proves nothing: proofs are
in the mechanisms' docstrings. Chance in this package that is not a mechanism's own is seeded: it is no noise.
"""

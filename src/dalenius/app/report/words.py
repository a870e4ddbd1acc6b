"""What the report says about mechanisms and words, for readers who know neither."""

from __future__ import annotations

from typing import NamedTuple


class Theorem(NamedTuple):
    """A mechanism: what it is called, what it does, and why that protects."""

    name: str
    does: str
    proved: str


class Word(NamedTuple):
    """A word of the report, and what it means."""

    word: str
    means: str


# By the kind of event that a charge names; the proofs are in the docstrings of dalenius.mechanisms.
THEOREMS = {
    "discrete-gaussian": Theorem(
        "Discrete Gaussian noise",
        "Adds whole-number noise from a bell curve to counts and sums.",
        "If one unit can move the numbers by at most Δ (as a length), noise of parameter σ² costs ρ = Δ²/2σ². "
        "Canonne, Kamath & Steinke, The discrete Gaussian for differential privacy (2020), Theorem 4 and its form for "
        "several numbers.",
    ),
    "gaussian": Theorem(
        "Gaussian noise",
        "Adds noise from a bell curve to numbers.",
        "If one unit can move the numbers by at most Δ (as a length), noise of variance σ² costs ρ = Δ²/2σ². Bun & "
        "Steinke, Concentrated differential privacy (2016), Proposition 1.6.",
    ),
    "discrete-laplace": Theorem(
        "Discrete Laplace noise",
        "Adds whole-number noise to counts and sums; small values are the likeliest, large ones fade at a fixed rate.",
        "If one unit can move the numbers by at most Δ in all, noise of scale Δ/ε makes no outcome more than e^ε times "
        "likelier. Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity (2006), Proposition 1; on whole "
        "numbers: Ghosh, Roughgarden & Sundararajan (2009).",
    ),
    "laplace": Theorem(
        "Laplace noise",
        "Adds noise to numbers; small values are the likeliest, large ones fade at a fixed rate.",
        "If one unit can move the numbers by at most Δ in all, noise of scale Δ/ε makes no outcome more than e^ε times "
        "likelier. Dwork, McSherry, Nissim & Smith, Calibrating noise to sensitivity (2006), Proposition 1.",
    ),
    "exponential": Theorem(
        "Exponential mechanism",
        "Picks one of several candidates at random, better ones likelier than worse ones.",
        "No candidate becomes more than e^ε times likelier because of one unit. McSherry & Talwar, Mechanism design "
        "via differential privacy (2007).",
    ),
    "noisy-max": Theorem(
        "Noisy maximum",
        "Adds noise to the score of every candidate and names the largest, not the scores.",
        "No candidate becomes more than e^ε times likelier because of one unit. McKenna & Sheldon, Permute-and-flip "
        "(2020), which is the same (Ding and others, 2021).",
    ),
    "randomized-response": Theorem(
        "Randomized response",
        "Each answer is, by chance, exchanged for another one.",
        "No report becomes more than e^ε times likelier for one true answer than for another. That somebody answered "
        "is not hidden. Warner, Randomized response (1965); for more than two answers: Kairouz, Bonawitz & Ramage "
        "(2016).",
    ),
    "zcdp": Theorem(
        "A step with a known cost ρ",
        "Finds which groups exist, or what limits fit, or tells numbers for groups or limits that were found that way.",
        "All of it is discrete Gaussian noise, whose costs ρ add up, also when a step is chosen after the one before "
        "(Bun & Steinke, Concentrated differential privacy, 2016). A group is shown only if its noisy "
        "weight is so high that groups of one unit alone are shown with a chance of at most δ (after Gopi and others, "
        "Differentially private set union, 2020).",
    ),
    "pure": Theorem(
        "A step with a known cost ε",
        "Finds what limits fit, or tells numbers for limits that were found that way; or any procedure that is proved "
        "as a whole.",
        "No outcome becomes more than e^ε times likelier because of one unit, and the ε of several steps add up. Dwork "
        "& Roth, The algorithmic foundations of differential privacy (2014), Theorem 3.14.",
    ),
    "approx": Theorem(
        "A step with a known cost (ε, δ)",
        "A procedure that is proved as a whole, such as one whose noise fits the data.",
        "No outcome becomes more than e^ε times likelier because of one unit, but for a chance of δ on top. Dwork, "
        "Kenthapadi, McSherry, Mironov & Naor, Our data, ourselves (2006).",
    ),
    "poisson-sampled": Theorem(
        "Sampling, each unit by chance",
        "Looks at a random part of the units; what is done with it stands in a row of its own.",
        "Who may not have been looked at is protected more: the smaller the part, the smaller the cost. Li, Qardaji & "
        "Su, On sampling, anonymization, and differential privacy (2012).",
    ),
    "sampled": Theorem(
        "Training steps with sampling and noise",
        "Draws units at random for each step, limits what each adds, and adds whole-number noise from a bell curve.",
        "Who may not have been drawn is protected more. What the steps cost is computed at one order, that of the "
        "budget that pays. Mironov, Talwar & Zhang, Rényi differential privacy of the sampled Gaussian mechanism "
        "(2019), shown for whole-number noise too; added up after Feldman & Zrnic, Individual privacy accounting via a "
        "Rényi filter (2021).",
    ),
    "sampled-without-replacement": Theorem(
        "Sampling, a fixed number of units",
        "Looks at a random part of the units; what is done with it stands in a row of its own.",
        "Who may not have been looked at is protected more: the smaller the part, the smaller the cost. Balle, Barthe "
        "& Gaboardi, Privacy amplification by subsampling (2018).",
    ),
}

GLOSSARY = (
    Word(
        "Differential privacy",
        "A promise about what leaves, not about how data is stored: every answer would be almost as likely if any "
        "one protected unit were not in the data, or had other data. What is true of many shows all the same.",
    ),
    Word(
        "Unit",
        "Whose data is protected as a whole: all rows that belong to one person, say.",
    ),
    Word(
        "ε (epsilon)",
        "How much likelier anything that leaves may become because of one unit: by a factor of e^ε, and δ on top. "
        "Near 0, hardly anything can be told; ε = 1 is a factor of 2.7, ε = 3 of 20. It bounds the worst case, also "
        "for an attacker who knows everybody else.",
    ),
    Word(
        "δ (delta)",
        "By how much any chance may be higher than the factor e^ε allows. Loosely, the chance that the factor does "
        "not hold. It should be far below one in the number of units.",
    ),
    Word(
        "ρ (rho)",
        "The currency in which losses are added up (zero-concentrated differential privacy); ε is computed from it. "
        "The sum of all ρ bounds any number of questions, also when each is chosen after the last answer "
        "(Whitehouse, Ramdas, Rogers & Wu, Fully-adaptive composition in differential privacy, 2023).",
    ),
    Word(
        "Budget",
        "The most that may be lost about one unit of a data set, by all answers together. What would go beyond it "
        "is refused. The owner can change it; every change is on record.",
    ),
    Word(
        "Allotment",
        "The part of a budget that one analyst may spend.",
    ),
    Word(
        "Charge",
        "What one question costs. It is written down before the data is looked at, and never refunded.",
    ),
    Word(
        "Noise",
        "Random numbers that are added to an answer, so that it hardly depends on any single unit.",
    ),
    Word(
        "Data version",
        "The data behind a table's name can change. All versions about the same people share one budget.",
    ),
    Word(
        "Epoch",
        "The owner declared that the people in a data set are new ones. Their budget begins afresh; if the "
        "declaration were wrong, the losses of both epochs would add up.",
    ),
    Word(
        "Head",
        "A fingerprint of the whole history. Who keeps it can tell later whether all that was there then is still "
        "there, unchanged.",
    ),
)

# What no reading of the history can tell (docs/sharp-edges.md).
UNSEEN = (
    "whether policies are right about the data: which column is the unit, which values and limits are public;",
    "whether the same people are also in another data set, under a budget of its own;",
    "what those who run the server, or can read its files or the data, see, and what they pass on;",
    "a history that somebody with the keys of the home wrote anew;",
    "what can be told from how long an answer takes, where it does not leave at a fixed time.",
)

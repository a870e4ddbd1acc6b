"""What the report says about mechanisms and words, for readers who know neither."""

from __future__ import annotations

from typing import NamedTuple


class Theorem(NamedTuple):
    """A mechanism: what it is called, what it does, and why that protects."""

    name: str
    does: str
    proved: str


# By the kind of event that a charge names; the proofs are in the docstrings of dalenius.mechanisms.
THEOREMS = {
    "discrete-gaussian": Theorem(
        "Discrete Gaussian noise",
        "Adds whole-number noise from a bell curve to counts and sums.",
        "If one person can move the numbers by at most Δ (as a length), noise of variance σ² costs exactly ρ = Δ²/2σ². "
        "Canonne, Kamath & Steinke (2020), Theorems 4 and 14.",
    ),
    "gaussian": Theorem(
        "Gaussian noise",
        "Adds noise from a bell curve to numbers.",
        "Noise of variance σ² on numbers that one person moves by at most Δ costs ρ = Δ²/2σ². Bun & Steinke (2016), "
        "Proposition 1.6.",
    ),
    "discrete-laplace": Theorem(
        "Discrete Laplace noise",
        "Adds whole-number noise to counts and sums; small values are the likeliest, large ones fade at a fixed rate.",
        "If one person can move the numbers by at most Δ in all, noise of scale Δ/ε makes no outcome more than e^ε "
        "times likelier. Dwork, McSherry, Nissim & Smith (2006), Proposition 1; Ghosh, Roughgarden & Sundararajan "
        "(2009).",
    ),
    "laplace": Theorem(
        "Laplace noise",
        "Adds noise to numbers; small values are the likeliest, large ones fade at a fixed rate.",
        "If one person can move the numbers by at most Δ in all, noise of scale Δ/ε makes no outcome more than e^ε "
        "times likelier. Dwork, McSherry, Nissim & Smith (2006), Proposition 1.",
    ),
    "exponential": Theorem(
        "Exponential mechanism",
        "Picks one of several candidates at random, good ones far likelier than bad ones.",
        "No candidate becomes more than e^ε times likelier because of one person. McSherry & Talwar (2007).",
    ),
    "noisy-max": Theorem(
        "Noisy maximum",
        "Adds noise to the score of every candidate and names the largest, not the scores.",
        "No candidate becomes more than e^ε times likelier because of one person. McKenna & Sheldon (2020).",
    ),
    "randomized-response": Theorem(
        "Randomized response",
        "Each answer is exchanged for another one at random, before it is collected.",
        "No report becomes more than e^ε times likelier for one true answer than for another. Warner (1965).",
    ),
    "zcdp": Theorem(
        "A measured step with a known cost ρ",
        "Finds which groups exist, or what limits fit, or tells numbers of groups that were found that way: with "
        "noise, and only what many people share.",
        "Groups that one person alone has are shown with a chance of at most δ (Gopi and others, 2020, Theorem 5.1); "
        "all else is Gaussian noise, whose costs ρ add up (Bun & Steinke, 2016, Proposition 1.6 and Lemma 1.7).",
    ),
    "pure": Theorem(
        "A step with a known cost ε",
        "A procedure that is proved as a whole, such as finding limits or comparing with a threshold.",
        "No outcome becomes more than e^ε times likelier because of one person, and the ε of several steps add up. "
        "Dwork, McSherry, Nissim & Smith (2006).",
    ),
    "approx": Theorem(
        "A step with a known cost (ε, δ)",
        "A procedure that is proved as a whole, such as one whose noise fits the data.",
        "No outcome becomes more than e^ε times likelier because of one person, but for a chance of at most δ. Dwork, "
        "Kenthapadi, McSherry, Mironov & Naor (2006).",
    ),
    "poisson-sampled": Theorem(
        "Sampling, each person by chance",
        "Looks at a random part of the people.",
        "Who may not have been looked at is protected more: the cost shrinks with the share. Li, Qardaji & Su (2012).",
    ),
    "sampled-without-replacement": Theorem(
        "Sampling, a fixed number of people",
        "Looks at a random part of the people.",
        "Who may not have been looked at is protected more: the cost shrinks with the share. Balle, Barthe & Gaboardi "
        "(2018).",
    ),
}

GLOSSARY = (
    (
        "Differential privacy",
        (
            "A promise about what leaves, not about how data is stored: every answer would be almost as "
            "likely if any one protected unit were not in the data."
        ),
    ),
    ("Unit", "Whose data is protected as a whole: all rows that belong to one person, say."),
    (
        "ε (epsilon)",
        (
            "How much likelier, at most, anything that leaves may become because of one unit: by a factor of "
            "e^ε. Near 0, nothing can be told; ε = 1 is a factor of 2.7, ε = 3 of 20. It bounds the worst case, for an "
            "attacker who knows everybody else."
        ),
    ),
    ("δ (delta)", "The chance that the bound ε does not hold. It should be far below one in the number of units."),
    (
        "ρ (rho)",
        (
            "The currency in which losses are added up (zero-concentrated differential privacy); ε is computed from "
            "it. Losses in ρ add up exactly, and the sum bounds any number of questions, also when each is chosen "
            "after the last answer."
        ),
    ),
    (
        "Budget",
        "The most that may be lost about one unit, by all answers together. What would go beyond it is refused.",
    ),
    ("Allotment", "The part of a budget that one analyst may spend."),
    ("Charge", "What one question costs. It is written down before the data is looked at, and never refunded."),
    ("Noise", "Random numbers that are added to an answer, so that no single unit shows."),
    ("Data version", "The data behind a table's name can change. All versions about the same people share one budget."),
    (
        "Epoch",
        (
            "The owner declared that the people in a data set are new ones. Their budget begins afresh; if the "
            "declaration were wrong, the losses of both epochs would add up."
        ),
    ),
    ("Head", "A fingerprint of the whole history. Who keeps it can show later that nothing was changed or removed."),
)

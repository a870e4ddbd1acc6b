"""Measures of privacy and of usefulness (SPEC, X1 and X2), as plain functions of numbers.

    privacy         what somebody who guesses still does not know, and how often the guess is right
    distances       how far apart two distributions, samples or intervals are
    classification  how good yes-or-no guesses are: accuracy, precision, recall, F1, area under the ROC curve

By numpy and scipy alone: what scikit-learn would add here are five formulas of counts, for a dependency of 30 MB. All
logarithms are natural unless a base is given. Nothing here reads data by itself, and none of it is a guarantee: these
describe an attack or an answer, they do not bound one (`lower_bounds` does).
"""

"""Digits and breast cancer from scikit-learn, in its own environment.

python learning_tables.py TABLES.npz
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits  # type: ignore[import-not-found]

if __name__ == "__main__":
    (digits_x, digits_y), (cancer_x, cancer_y) = load_digits(return_X_y=True), load_breast_cancer(return_X_y=True)
    np.savez(sys.argv[1], digits_x=digits_x, digits_y=digits_y, cancer_x=cancer_x, cancer_y=cancer_y)

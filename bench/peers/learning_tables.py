"""Digits, breast cancer, iris and made-up classes from scikit-learn, in its own environment.

python learning_tables.py TABLES.npz
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification  # type: ignore[import-not-found]

if __name__ == "__main__":
    tables = {
        "digits": load_digits(return_X_y=True),
        "cancer": load_breast_cancer(return_X_y=True),
        "iris": load_iris(return_X_y=True),
        "made": make_classification(3000, 30, n_informative=15, n_classes=5, random_state=1, class_sep=1.5),
    }
    np.savez(
        sys.argv[1], **{f"{name}_{part}": each[at] for name, each in tables.items() for at, part in enumerate("xy")}
    )

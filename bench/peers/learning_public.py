"""Logistic regression without privacy, by scikit-learn, in its own environment.

    python learning_public.py SPLITS.npz

Arrays: `x`, `y`, and for each split `train_0`, `held_0`, … Prints JSON.
"""

from __future__ import annotations

import json
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression  # type: ignore[import-not-found]

if __name__ == "__main__":
    given, found = np.load(sys.argv[1]), []
    x, y = given["x"], given["y"]
    for at in range(int(given["splits"])):
        train, held = given[f"train_{at}"], given[f"held_{at}"]
        model = LogisticRegression(C=10, max_iter=2000).fit(x[train], y[train])
        found.append(float(model.score(x[held], y[held])))
    print(json.dumps({"none": found}))

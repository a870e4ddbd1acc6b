"""diffprivlib's logistic regression (objective perturbation, pure ε), in its own environment.

python learning_diffprivlib.py SPLITS.npz
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
from diffprivlib.models import LogisticRegression  # type: ignore[import-not-found]

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    given, found = np.load(sys.argv[1]), {}
    x, y = given["x"], given["y"]
    longest = float(np.sqrt(x.shape[1]))  # of numbers from −1 to 1
    for epsilon in given["epsilons"].tolist():
        scores = []
        for at in range(int(given["splits"])):
            train, held = given[f"train_{at}"], given[f"held_{at}"]
            model = LogisticRegression(epsilon=epsilon, data_norm=longest, max_iter=1000).fit(x[train], y[train])
            scores.append(float(model.score(x[held], y[held])))
        found[str(epsilon)] = scores
    print(json.dumps(found))

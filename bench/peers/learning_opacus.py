"""Opacus: a linear layer by DP-SGD, in its own environment.

    python learning_opacus.py SPLITS.npz | --speed

Batches of 256, 20 epochs, clip 1, momentum 0.9, Poisson sampling, ε by its own accountant at all of δ. Of three
learning rates the one that does best on the held-out rows is taken at each ε, which nobody could do in earnest. Speed:
examples a CPU second of one thread, 64 columns, 10 classes, by hooks and by ghost clipping.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]
from opacus import PrivacyEngine  # type: ignore[import-not-found]
from opacus.accountants.utils import get_noise_multiplier  # type: ignore[import-not-found]
from torch.utils.data import DataLoader, TensorDataset  # type: ignore[import-not-found]

BATCH, EPOCHS, DELTA = 256, 20, 1e-5
RATES = (0.05, 0.2, 1.0)


def _private(x: Any, y: Any, sigma: float, mode: str = "hooks", rate: float = 1.0) -> tuple[Any, Any, Any, Any]:
    model = torch.nn.Linear(x.shape[1], int(y.max()) + 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    loader = DataLoader(TensorDataset(x, y), batch_size=min(BATCH, len(x)))
    loss = torch.nn.CrossEntropyLoss()
    said = {"module": model, "optimizer": optimizer, "data_loader": loader, "noise_multiplier": sigma}
    if mode == "ghost":
        return PrivacyEngine().make_private(**said, max_grad_norm=1.0, criterion=loss, grad_sample_mode="ghost")  # type: ignore[no-any-return]
    model, optimizer, loader = PrivacyEngine().make_private(**said, max_grad_norm=1.0)
    return model, optimizer, loss, loader


def _epochs(parts: tuple[Any, Any, Any, Any], epochs: int) -> Any:
    model, optimizer, loss, loader = parts
    for _ in range(epochs):
        for x, y in loader:
            if len(x):
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
    return model


def _speed() -> dict[str, float]:
    x, y = torch.rand(25_600, 64) * 2 - 1, torch.randint(0, 10, (25_600,))
    found = {}
    for mode in ("hooks", "ghost"):
        parts = _private(x, y, 1.0, mode)
        _epochs(parts, 1)
        began = time.process_time()
        _epochs(parts, 2)
        found[mode] = 2 * len(x) / (time.process_time() - began)
    return found


def _accuracy(given: Any) -> dict[str, list[float]]:
    x, y = torch.tensor(given["x"], dtype=torch.float32), torch.tensor(given["y"])
    found: dict[str, list[float]] = {}
    for epsilon in given["epsilons"].tolist():
        train = given["train_0"]
        rate = 1 / len(DataLoader(TensorDataset(x[train], y[train]), batch_size=min(BATCH, len(train))))
        sigma = get_noise_multiplier(
            target_epsilon=epsilon, target_delta=DELTA, sample_rate=rate, epochs=EPOCHS, accountant="prv"
        )
        scores = list[list[float]]()
        for speed in RATES:
            scores.append([])
            for at in range(int(given["splits"])):
                train, held = given[f"train_{at}"], given[f"held_{at}"]
                model = _epochs(_private(x[train], y[train], sigma, rate=speed), EPOCHS)
                with torch.no_grad():
                    scores[-1].append(float((model(x[held]).argmax(dim=1) == y[held]).double().mean()))
        found[str(epsilon)] = max(scores, key=sum)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(json.dumps(_speed() if sys.argv[1] == "--speed" else _accuracy(np.load(sys.argv[1]))))

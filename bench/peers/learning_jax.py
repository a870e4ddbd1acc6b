"""jax-privacy: clipped gradients of a linear layer plus noise, in its own environment. Examples a CPU second.

python learning_jax.py
"""

from __future__ import annotations

import json
import time
from typing import Any

import jax  # type: ignore[import-not-found]
import jax.numpy as jnp  # type: ignore[import-not-found]
import jax_privacy  # type: ignore[import-not-found]
import numpy as np

BATCH, STEPS = 256, 1000


def _loss(weights: Any, x: Any, y: Any) -> Any:
    return -jax.nn.log_softmax(x @ weights)[jnp.arange(len(y)), y].mean()


def main() -> None:
    """Prints JSON."""
    clipped = jax_privacy.clipped_grad(_loss, l2_clip_norm=1.0, normalize_by=BATCH)

    def noisy(weights: Any, key: Any, x: Any, y: Any) -> Any:
        noise = jax.random.normal(key, weights.shape) / BATCH
        return weights - 0.1 * (clipped(weights, x, y) + noise)

    step = jax.jit(noisy)
    chance = np.random.default_rng(0)
    x, y = chance.uniform(-1, 1, (51_200, 64)).astype(np.float32), chance.integers(0, 10, 51_200)
    weights, keys = jnp.zeros((64, 10)), jax.random.split(jax.random.key(0), STEPS + 1)
    places = np.arange(BATCH)
    weights = step(weights, keys[-1], x[places], y[places]).block_until_ready()
    began = time.process_time()
    for at in range(STEPS):
        drawn = np.flatnonzero(chance.random(51_200) < 0.005)
        places[: len(drawn)] = drawn[:BATCH]
        weights = step(weights, keys[at], x[places], y[places])
    weights.block_until_ready()
    print(json.dumps({"clipped_grad": BATCH * STEPS / (time.process_time() - began)}))


if __name__ == "__main__":
    main()

"""The sparse vector, many streams at once from its own laws, and key selection."""

from __future__ import annotations

import numpy as np

from dalenius.accounting.conversions import zcdp_rho
from dalenius.audit.lower_bounds.claims import Claim
from dalenius.audit.lower_bounds.features import Outputs
from dalenius.audit.mechanisms.subject import Subject
from dalenius.mechanisms import KeySelection, SparseVector

_STREAMS = ([0, 0, 0, 1, 1], [1, 1, 1, 0, 0])
_DELTA, _KEYS = 0.01, 4


def answers(above: np.ndarray[tuple[int, int], np.dtype[np.bool_]], hits: int) -> Outputs:
    """Streams of yes (1) and no (0) that end at the last hit (−1 from there on)."""
    before = above.cumsum(axis=1) - above
    return np.where(before >= hits, -1, above.astype(np.int64))


def _sparse_vector(epsilon: float) -> Subject:
    mechanism, width = SparseVector(epsilon, hits=2), len(_STREAMS[0])

    def draw(side: int, size: int) -> Outputs:
        threshold = mechanism.threshold_noise.draw(size)
        noise = mechanism.value_noise.draw(size * width).reshape(size, width)
        return answers(np.array(_STREAMS[side]) + noise >= threshold[:, None], mechanism.hits)

    def single(side: int) -> list[int]:
        found = [int(each) for each in mechanism.release(_STREAMS[side], threshold=0).value]
        return found + [-1] * (width - len(found))

    about = "which of 5 values are above a threshold, up to two"
    return Subject("sparse-vector", about, Claim(mechanism.event), draw, single)


def _key_selection(epsilon: float) -> Subject:
    """A unit with four keys, one of which nobody else has; the others are as heavy as the threshold with it."""
    mechanism = KeySelection(zcdp_rho(epsilon, _DELTA), _DELTA, cap=_KEYS)
    own = mechanism.weight(_KEYS)
    shared = mechanism.threshold
    sides = ([own] + [shared] * (_KEYS - 1), [shared - own] * (_KEYS - 1))  # on the other side its own key is not there

    def draw(side: int, size: int) -> Outputs:
        weights = np.tile(np.array(sides[side], dtype=np.int64), size)
        found = np.zeros(len(weights), dtype=np.int64)
        found[list(mechanism.release(weights).value)] = 1
        rows = found.reshape(size, -1)
        return rows if side == 0 else np.column_stack([np.zeros(size, dtype=np.int64), rows])

    about = f"which of 4 keys are released, one of them a single unit's; δ = {_DELTA:g}"
    return Subject("key-selection", about, Claim(mechanism.event), draw)


MADE = {"sparse-vector": _sparse_vector, "key-selection": _key_selection}

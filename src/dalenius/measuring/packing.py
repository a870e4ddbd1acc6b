"""Many noisy integers in few bytes, for the ledger."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.measuring.estimates import noise_variance

if TYPE_CHECKING:
    from dalenius.measuring.estimates import Noise
    from dalenius.mechanisms.interface import IntArray

_BITS = 10  # of the noise's standard deviation are kept: rounding adds 10⁻⁷ of its variance


def packed(values: Sequence[int] | IntArray, law: Noise) -> dict[str, Any]:
    """The integers, rounded to a small part of their noise: ``shift`` bits are dropped. That is post-processing.

    >>> from fractions import Fraction
    >>> from dalenius.mechanisms.laws import DiscreteGaussianLaw
    >>> unpacked(packed([3, -70000, 2**80], DiscreteGaussianLaw(Fraction(100))))
    (3, -70000, 1208925819614629174706176)
    """
    shift = max(0, int(noise_variance(law) ** 0.5).bit_length() - 1 - _BITS)
    # Of int64 as a whole; of larger integers one by one.
    exact = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
    short = exact >> (min(shift, 63) if exact.dtype == np.int64 else shift)
    if len(short) and max(-int(short.min()), int(short.max())) >= 2**62:
        return {"shift": shift, "texts": " ".join(map(str, short))}
    # The sign goes into the lowest bit, and bytes of one rank lie together: the upper ones are nearly all 0. Past level
    # 1 zlib is slow, and gains little.
    signed = short.astype("<i8")
    planes = ((signed << 1) ^ (signed >> 63)).view(np.uint8).reshape(-1, 8).T.tobytes()
    return {"shift": shift, "zlib": base64.b64encode(zlib.compress(planes, 1)).decode()}


def unpacked(stored: Mapping[str, Any]) -> tuple[int, ...]:
    """As `packed` wrote them; the middle of what was rounded."""
    shift = int(stored["shift"])
    half = 1 << shift >> 1
    if "texts" in stored:
        return tuple((int(each) << shift) + half for each in stored["texts"].split())
    planes = np.frombuffer(zlib.decompress(base64.b64decode(stored["zlib"])), np.uint8)
    mixed = np.ascontiguousarray(planes.reshape(8, -1).T).view("<i8").reshape(-1)
    short = (mixed >> 1) ^ -(mixed & 1)
    return tuple((value << shift) + half for value in short.tolist())

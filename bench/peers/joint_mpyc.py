"""MPyC: sums, products, inner products and comparisons of secure arrays; one JSON object from party 0.

    python joint_mpyc.py -M3

Starts the other parties itself, on the loopback without TLS, which is in its favour.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
from mpyc.runtime import mpc  # type: ignore[import-not-found]

SUM, PRODUCTS, INNER, COMPARISONS = 1_000_000, 100_000, 100_000, 2_000


async def timed(work: Any) -> float:
    await mpc.output(mpc.input(mpc.SecFld(101)(1))[0])  # all are here
    begin = time.perf_counter()
    await work()
    return time.perf_counter() - begin


async def main() -> None:
    await mpc.start()
    field = mpc.SecFld(2**61 - 1)
    integer = mpc.SecInt(32)
    generator = np.random.default_rng(26)

    def array(size: int) -> Any:
        return field.array(field.field.array(generator.integers(0, 2**31, size).astype(object)))

    async def sums() -> None:
        inputs = mpc.input(array(SUM))
        await mpc.output(sum(inputs[1:], inputs[0]))

    found = {"sum": await timed(sums)}
    a, b = mpc.input(array(PRODUCTS), 0), mpc.input(array(PRODUCTS), 0)
    await mpc.output(a[:3])
    await mpc.output(b[:3])

    async def products() -> None:
        await mpc.gather(a * b)

    found["products a second"] = PRODUCTS / await timed(products)

    async def inner() -> None:
        await mpc.output(a[:INNER] @ b[:INNER])

    found["inner"] = await timed(inner)
    values = integer.array(generator.integers(0, 2**31, COMPARISONS))
    x, y = mpc.input(values, 0), mpc.input(values, 0)
    await mpc.output(x[:3])

    async def comparisons() -> None:
        await mpc.gather(x < y)

    found["comparisons a second"] = COMPARISONS / await timed(comparisons)
    await mpc.shutdown()
    if mpc.pid == 0:
        print(json.dumps(found), flush=True)
        sys.stdout.flush()


if __name__ == "__main__":
    mpc.run(main())

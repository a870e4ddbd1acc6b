"""What t parties see of a joint computation does not depend on the others' inputs; planted leaks are caught.

Each protocol runs on thousands of copies of one input, in a field of seven (or eight) elements. A party's view is all
that reaches it, the random numbers it draws with others, and its own shares: a list of slots, each with as many
samples as there are copies. For two inputs with the same output, the distribution of each slot, and of each pair of
slots, must be the same (chi-square for two samples).

False alarm: each of M comparisons is made at 1e-7/M, so 1e-7 for each test.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2
from tests.conftest import LONG
from tests.parties import inputs, together

from dalenius.joint import bgw, bits, prss
from dalenius.joint.bgw import inner, multiply, reveal, reveal_product, share
from dalenius.joint.binary import Binary
from dalenius.joint.comparing import less, truncate
from dalenius.joint.fields import Mersenne
from dalenius.joint.run import Run
from dalenius.joint.shamir import Scheme
from dalenius.joint.shares import Shares

pytestmark = pytest.mark.statistical

FIELD = Mersenne(3)
COPIES = 64 * 60
FALSE_ALARM = 1e-7
MOST_PAIRS = 3000

Protocol = Callable[[Run, list[Shares]], Awaitable[Any]]
Slots = list[tuple[np.ndarray, int]]


def view(record: list[tuple[Any, np.ndarray]], copies: int) -> Slots:
    """What was seen, as slots: for each the samples, and how many values there can be."""
    slots: Slots = []
    for field, values in record:
        if isinstance(field, Binary):
            rows = values.reshape(field.degree, -1, values.shape[-1])
            for row in range(rows.shape[1]):
                planes = [
                    np.unpackbits(plane.view(np.uint8), count=copies, bitorder="little") for plane in rows[:, row]
                ]
                codes = np.zeros(copies, np.int64)
                for at, plane in enumerate(planes):
                    codes += plane.astype(np.int64) << at
                slots.append((codes, field.order))
        else:
            slots.extend((row.astype(np.int64), field.order) for row in values.reshape(-1, copies))
    return slots


def views(protocol: Protocol, secrets: list[int], count: int, threshold: int, copies: int) -> list[Slots]:
    """Each party's view of the protocol on copies of these secrets, which the last party shares."""

    async def program(run: Run) -> Slots:
        record: list[tuple[Any, np.ndarray]] = []
        run.observer = lambda _step, _party, field, values: record.append((field, values))
        shared = []
        for secret in secrets:
            array = np.full(copies, secret, np.uint64)
            shared.append((await share(run, FIELD, array, (copies,), (run.parties,)))[run.parties])
        await protocol(run, shared)
        return view(record, copies)

    return together(count, threshold, program)


def least_p_value(first: Slots, second: Slots) -> tuple[float, int]:
    """The least p-value of all slots and pairs of slots, and how many comparisons were made."""
    least, made = 1.0, 0
    assert len(first) == len(second)
    single = [(at,) for at in range(len(first))]
    pairs = list(combinations(range(len(first)), 2))
    if not LONG and len(pairs) > MOST_PAIRS:
        pairs = random.Random(26).sample(pairs, MOST_PAIRS)
    for places in [*single, *pairs]:
        counts = []
        for slots in (first, second):
            codes, size = np.zeros(slots[0][0].size, np.int64), 1
            for at in places:
                codes += slots[at][0] * size
                size *= slots[at][1]
            counts.append(np.bincount(codes, minlength=size))
        a, b = counts
        both = a + b
        cells = both > 0
        # equal sizes: (a − b)² / (a + b) is chi-square with one degree less than there are cells
        statistic = float(((a - b)[cells] ** 2 / both[cells]).sum())
        least = min(least, float(chi2.sf(statistic, max(1, int(cells.sum()) - 1))))
        made += 1
    return least, made


def coalition(found: list[Slots], members: tuple[int, ...]) -> Slots:
    return [slot for each in members for slot in found[each - 1]]


def leaks(
    protocol: Protocol, one: list[int], other: list[int], count: int = 3, threshold: int = 1, copies: int = COPIES
) -> bool:
    """Whether some coalition without the dealer of the inputs can tell two inputs apart."""
    first, second = (views(protocol, each, count, threshold, copies) for each in (one, other))
    for members in combinations(range(1, count), threshold):
        least, made = least_p_value(coalition(first, members), coalition(second, members))
        if least < FALSE_ALARM / made:
            return True
    return False


# --- the protocols. Inputs are told apart in all they do not open.


async def only_share(run: Run, shared: list[Shares]) -> None:
    pass


async def opened_sum(run: Run, shared: list[Shares]) -> None:
    await reveal(run, shared[0] + shared[1])


async def product(run: Run, shared: list[Shares]) -> None:
    await multiply(run, *shared)


async def opened_product(run: Run, shared: list[Shares]) -> None:
    await reveal(run, await multiply(run, *shared))


async def product_opened_at_once(run: Run, shared: list[Shares]) -> None:
    await reveal_product(run, FIELD, FIELD.multiply(shared[0].values, shared[1].values))


async def inner_product(run: Run, shared: list[Shares]) -> None:
    both = Shares(FIELD, np.stack([each.values for each in shared]))
    await reveal(run, await inner(run, both, both))


async def comparison(run: Run, shared: list[Shares]) -> None:
    await less(run, shared[0], shared[1], FIELD)


async def opened_sign(run: Run, shared: list[Shares]) -> None:
    await bits.open_bits(run, await bits.negative(run, shared[0] - shared[1], FIELD), shared[0].shape[0])


async def truncation(run: Run, shared: list[Shares]) -> None:
    await truncate(run, shared[0], FIELD, 1)


async def one_exchange_of_a_sort(run: Run, shared: list[Shares]) -> None:
    a, b = shared
    swap = await less(run, b, a, FIELD)
    await multiply(run, swap, a - b)


PROTOCOLS: list[tuple[Protocol, list[int], list[int]]] = [
    (only_share, [1], [6]),
    (opened_sum, [1, 4], [3, 2]),
    (product, [1, 4], [0, 6]),
    (opened_product, [1, 4], [2, 2]),
    (opened_product, [0, 0], [0, 5]),
    (product_opened_at_once, [0, 0], [0, 5]),
    (inner_product, [1, 1], [3, 0]),  # 1 + 1 = 9
    (comparison, [0, 1], [3, 0]),
    (opened_sign, [0, 1], [0, 3]),
    (truncation, [0], [1]),
    (one_exchange_of_a_sort, [0, 2], [2, 1]),
]


@pytest.mark.parametrize(
    ("protocol", "one", "other"), PROTOCOLS, ids=lambda each: each.__name__ if callable(each) else str(each)
)
def test_what_one_of_three_sees_does_not_depend_on_the_others_inputs(
    protocol: Protocol, one: list[int], other: list[int]
):
    assert not leaks(protocol, one, other)


@pytest.mark.parametrize(
    ("protocol", "one", "other"),
    [(opened_product, [1, 4], [2, 2]), (product_opened_at_once, [0, 0], [0, 5]), (opened_sign, [0, 1], [0, 3])],
    ids=lambda each: each.__name__ if callable(each) else str(each),
)
def test_what_two_of_five_see_does_not_depend_on_the_others_inputs(
    protocol: Protocol, one: list[int], other: list[int]
):
    assert not leaks(protocol, one, other, 5, 2, 64 * 20)


# --- planted leaks: each must be caught, or the tests above say nothing


def test_an_output_that_differs_is_seen():
    assert leaks(opened_sum, [1, 4], [3, 3])


def test_shares_of_a_lower_degree_are_caught(monkeypatch: pytest.MonkeyPatch):
    def deal(self: Scheme, dealer: int, secret: np.ndarray, keys: Any, scale: int = 1) -> dict[int, np.ndarray]:
        for each in keys.values():
            self.field.random(each, secret.shape)
        scaled = self.field.combine((scale,), (secret,))
        return dict.fromkeys((dealer, *self.sent_to(dealer)), scaled)  # degree t − 1 = 0

    monkeypatch.setattr(Scheme, "deal", deal)
    assert leaks(only_share, [1], [6])
    assert leaks(product, [1, 4], [0, 6])


def test_the_same_random_polynomial_twice_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = Scheme.deal

    def deal(self: Scheme, dealer: int, secret: np.ndarray, keys: Any, scale: int = 1) -> dict[int, np.ndarray]:
        kept = {}
        for party, stream in keys.items():
            if not hasattr(self, "drawn"):
                object.__setattr__(self, "drawn", {})
            drawn = self.drawn  # type: ignore[attr-defined]
            key = (dealer, party, secret.shape)
            drawn.setdefault(key, self.field.random(stream, secret.shape))
            kept[party] = drawn[key]

        class Again:
            def __init__(self, values: np.ndarray) -> None:
                self.values = values

            def words(self, count: int, kind: Any) -> np.ndarray:
                return self.values.astype(kind)

        return right(self, dealer, secret, {party: Again(each) for party, each in kept.items()}, scale)  # type: ignore[misc]

    monkeypatch.setattr(Scheme, "deal", deal)
    assert leaks(only_share, [1, 4], [1, 5])


def test_a_mask_used_twice_is_caught(monkeypatch: pytest.MonkeyPatch):
    right = bits.masks

    async def masks(run: Run, field: Mersenne, count: int) -> bits.Mask:
        if not hasattr(run, "kept_mask"):
            run.kept_mask = await right(run, field, count)  # type: ignore[attr-defined]
        return run.kept_mask  # type: ignore[attr-defined, no-any-return]

    monkeypatch.setattr(bits, "masks", masks)

    async def twice(run: Run, shared: list[Shares]) -> None:
        for each in shared:
            await bits.negative(run, each, FIELD)

    assert leaks(twice, [0, 1], [0, 3])
    monkeypatch.undo()
    assert not leaks(twice, [0, 1], [0, 3])


def test_products_that_are_not_shared_afresh_are_caught(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bgw, "zeros", lambda run, field, shape: field.zeros(shape))
    assert leaks(product_opened_at_once, [0, 0], [0, 5])


def test_masks_of_k_plus_kappa_bits_are_caught(monkeypatch: pytest.MonkeyPatch):
    right = Mersenne.random

    async def short(run: Run, field: Mersenne, count: int) -> bits.Mask:
        # numbers of one bit under masks of two: modulo 7, where three bits would be needed
        with pytest.MonkeyPatch.context() as patch:

            def random(self: Mersenne, stream: Any, shape: tuple[int, ...]) -> np.ndarray:
                found = right(self, stream, shape)
                return found & np.uint64(1) if stream is run.own else found

            patch.setattr(Mersenne, "random", random)
            return await masks_of(run, field, count)

    masks_of = bits.masks
    monkeypatch.setattr(bits, "masks", short)
    assert leaks(opened_sign, [0, 1], [0, 3])


def test_bits_opened_without_a_random_bit_over_them_are_caught():
    async def bare(run: Run, shared: list[Shares]) -> None:
        await bits.open_bits(run, await bits.decompose(run, shared[0], FIELD, 1), shared[0].shape[0])

    assert leaks(bare, [0], [1])


def test_a_zero_sharing_is_zero_and_otherwise_uniform():
    async def program(run: Run) -> Any:
        values = prss.zeros(run, FIELD, (COPIES,))
        got = await run.exchange_arrays("zeros", FIELD, (COPIES,), dict.fromkeys(run.others, values), run.others)
        return {**got, run.me: values}

    points = together(3, 1, program)[0]
    assert not Scheme(FIELD, 3, 1).reconstruct(points, 2).any()
    # two of the three points are uniform and independent; false alarm 1e-7
    found = np.bincount((points[1] * 7 + points[2]).astype(int), minlength=49)
    expected = COPIES / 49
    assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-7, 48)


def test_inputs_are_shared_for_these_tests_as_for_others():
    async def program(run: Run) -> Any:
        (a,) = await inputs(run, ([1, 2, 3],), FIELD)
        return await reveal(run, a)

    assert together(3, 1, program)[0].tolist() == [1, 2, 3]

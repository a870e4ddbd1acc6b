from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.parties import inputs, together

from dalenius.errors import InputError, PartyRefusedError
from dalenius.joint.bgw import inner, multiply, reveal, reveal_product, reveal_to, share
from dalenius.joint.fields import BIG, SHORT, Mersenne
from dalenius.joint.prss import random_numbers, zeros
from dalenius.joint.run import Run

COUNTS = [(3, 1), (5, 2), (4, 1)]
A = np.array([3, -4, 10**9, 0, 12345])
B = np.array([-7, -6, 10**8, 5, 54321])


@pytest.mark.parametrize(("count", "threshold"), COUNTS)
@pytest.mark.parametrize("field", [BIG, SHORT], ids=lambda each: each.name)
def test_sums_products_and_inner_products_are_those_in_the_clear(count: int, threshold: int, field: Mersenne):
    small = A % 30_000, B % 30_000
    x, y = (A, B) if field == BIG else small

    async def program(run: Run) -> list[Any]:
        a, b = await inputs(run, (x, y), field)
        total = await reveal(run, (a + b).plus(field.array([1])) - a.times(3))
        product = await reveal(run, await multiply(run, a, b))
        again = await reveal(run, await multiply(run, await multiply(run, a, b), (-b).scaled(field.array([1] * 5))))
        dotted = await reveal(run, await inner(run, a[:, None], b[:, None]))
        direct = await reveal_product(run, field, field.multiply(a.values, b.values))
        return [field.signed(each) for each in (total, product, again, dotted, direct)]

    p = field.order
    for total, product, again, dotted, direct in together(count, threshold, program):
        assert (total == y - 2 * x + 1).all()
        assert (product == direct).all()
        assert [int(each) % p for each in product] == [int(each) % p for each in x.astype(object) * y]
        assert [int(each) % p for each in again] == [int(each) % p for each in -(x.astype(object)) * y * y]
        assert int(dotted[0]) % p == int((x.astype(object) * y).sum()) % p


def test_everybody_shares_at_once_and_one_may_be_told_alone():
    async def program(run: Run) -> Any:
        mine = BIG.array(np.full(4, 10**run.me))
        shared = await share(run, BIG, mine, (4,))
        total = shared[1] + shared[2] + shared[3]
        return await reveal_to(run, total, 2)

    told = together(3, 1, program)
    assert told[0] is None and told[2] is None
    assert (told[1] == 1110).all()


def test_random_numbers_are_shared_without_a_word():
    async def program(run: Run) -> Any:
        rounds = run.rounds
        first, second = random_numbers(run, BIG, (3,)), random_numbers(run, BIG, (3,))
        nothing = zeros(run, BIG, (3,))
        assert run.rounds == rounds
        opened = [await reveal(run, first), await reveal(run, second)]
        got = await run.exchange_arrays("zeros", BIG, (3,), dict.fromkeys(run.others, nothing), run.others)
        got[run.me] = nothing
        scheme = run.scheme(BIG)
        assert scheme.agrees(got).any()  # of degree 2t, not t
        return [*opened, scheme.reconstruct(got, 2 * run.threshold)]

    for count, threshold in COUNTS:
        outcomes = together(count, threshold, program)
        for first, second, nothing in outcomes:
            assert (first == outcomes[0][0]).all()
            assert (first != second).all()
            assert not nothing.any()


def test_products_need_a_majority_that_does_not_collude():
    async def program(run: Run) -> Any:
        (a,) = await inputs(run, (A,))
        assert (BIG.signed(await reveal(run, a + a)) == 2 * A).all()
        with pytest.raises(InputError, match="cannot multiply"):
            await multiply(run, a, a)

    together(4, 2, program)


@pytest.mark.parametrize(("count", "threshold", "named"), [(3, 1, ""), (4, 1, "cleo"), (7, 2, "cleo")])
def test_a_wrong_share_opens_nothing_and_is_named_where_that_can_be(count: int, threshold: int, named: str):
    async def program(run: Run) -> Any:
        (a,) = await inputs(run, (A,))
        if run.me == 3:
            a = a.plus(BIG.array([0, 0, 1, 0, 0]))
        with pytest.raises(PartyRefusedError, match="nothing was opened") as caught:
            await reveal(run, a)
        return caught.value.party

    found = together(count, threshold, program)
    assert found == [named] * count


def test_who_has_less_to_share_than_was_agreed_is_told():
    async def program(run: Run) -> Any:
        if run.me == 1:
            with pytest.raises(InputError, match="another shape"):
                await share(run, BIG, BIG.array([1]), (2,), (1,))

    together(3, 1, program)

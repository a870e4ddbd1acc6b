"""Joint sums: nobody looks before all have shown their charge, and what is opened is the sum."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.parties import NAMES, laid, together

from dalenius.errors import DaleniusError, PartyRefusedError
from dalenius.joint.adding import add_up, show_charges
from dalenius.joint.run import Run
from dalenius.joint.statements import Statement

PARTS = ([5, -(2**58), 0], [7, 2**58 + 1, -3], [-20, 2, 2**57])


@pytest.mark.parametrize(("count", "threshold"), [(2, 1), (3, 1), (3, 2)])
def test_the_sum_is_opened_to_all(count: int, threshold: int):
    async def program(run: Run) -> list[int]:
        return await add_up(run, PARTS[run.me - 1])

    expected = [sum(each) for each in zip(*PARTS[:count], strict=True)]
    assert together(count, threshold, program) == [expected] * count


def said(run: Run) -> Statement:
    return Statement(bytes(16), run.names[run.me - 1], "t" * 64, f"{run.me:02}" * 32, 0.5)


def test_every_party_hears_of_every_charge():
    async def program(run: Run) -> list[Statement]:
        return await show_charges(run, laid(3)[run.me - 1], said(run))

    for me, heard in enumerate(together(3, 1, program), 1):
        assert {each.party: each.entry for each in heard} == {
            name: f"{at:02}" * 32 for at, name in enumerate(NAMES[:3], 1) if at != me
        }


def test_nobody_goes_on_where_one_has_charged_another_price():
    looked: list[int] = []

    async def program(run: Run) -> Any:
        own = replace(said(run), epsilon=0.1) if run.me == 3 else said(run)
        try:
            await show_charges(run, laid(3)[run.me - 1], own)
        except DaleniusError as error:
            await asyncio.sleep(0)
            return error
        looked.append(run.me)
        return None

    first, second, third = together(3, 1, program)
    assert looked == []
    for each in (first, second):
        assert isinstance(each, PartyRefusedError) and each.party == "cleo" and "another price" in str(each)
    assert isinstance(third, PartyRefusedError)

"""Previews while somebody types or moves a slider: few of them, and never an older one in the place of a newer one."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from dalenius.app.console.parts import latest as module
from dalenius.app.console.parts.latest import Latest


class Page:
    """Something that changes, and what is shown of it."""

    def __init__(self, pause=0.0):
        self.stands = 0
        self.looks: list[int] = []
        self.shown: list[int] = []
        self.gate = asyncio.Event()
        self.latest = Latest(self.look, self.shown.append, pause)

    async def look(self):
        found = self.stands
        self.looks.append(found)
        await self.gate.wait()
        return found

    def change(self):
        self.stands += 1
        return asyncio.create_task(self.latest.changed())

    async def until_looks(self, count):
        while len(self.looks) < count:
            await asyncio.sleep(0)


def test_what_was_found_of_an_earlier_state_is_never_shown():
    async def run():
        page = Page()
        first = page.change()
        await page.until_looks(1)
        others = [page.change() for _ in range(30)]
        await asyncio.gather(*others)  # at once: one look at a time
        assert (page.looks, page.shown) == ([1], [])
        page.gate.set()
        await asyncio.wait_for(first, 30)
        assert (page.looks, page.shown) == ([1, 31], [31])

    asyncio.run(run())


def test_nothing_is_looked_up_until_changes_pause(monkeypatch):
    async def run():
        page, slept = Page(pause=0.25), []
        page.gate.set()

        async def sleep(seconds):
            slept.append(seconds)
            if len(slept) < 40:  # a change in each pause, until there is one without
                await page.change()

        monkeypatch.setattr(module, "asyncio", SimpleNamespace(sleep=sleep))
        await page.change()
        assert page.looks == page.shown == [40]
        assert slept == [0.25] * 40

    asyncio.run(run())


def test_a_look_that_was_put_off_is_made_again():
    async def run():
        page, tries = Page(), []

        async def put_off_once():
            tries.append(page.stands)
            if len(tries) == 1:
                page.latest.look_again()
                return None
            return page.stands

        page.latest = Latest(put_off_once, page.shown.append, 0.0)
        await asyncio.wait_for(page.change(), 30)
        assert (tries, page.shown) == ([1, 1], [1])

    asyncio.run(run())


def test_a_look_that_failed_keeps_nobody_waiting_and_the_next_change_is_looked_at():
    async def run():
        page = Page()

        async def fail():
            raise ZeroDivisionError

        page.latest = Latest(fail, page.shown.append, 0.0)
        with pytest.raises(ZeroDivisionError):
            await page.change()
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(page.change(), 30)

    asyncio.run(run())

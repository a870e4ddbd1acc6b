from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from tests.parties import inputs, laid, together

from dalenius.errors import InputError, PartyRefusedError, SourceUnavailableError
from dalenius.joint import tasks
from dalenius.joint.auction import clear, clear_openly, hold, made_up_market
from dalenius.joint.bidding import BidderKey, open_answers, read_curve, write_bid
from dalenius.joint.bids import MOST, SealedBid, open_amount, open_part, seal, seal_bid, unseal
from dalenius.joint.meeting import Post
from dalenius.joint.run import Run
from dalenius.joint.serving import begin, serve
from dalenius.joint.tasks import Call, auction_folder, read_bids

PRICES = 50


def sealed(curves: np.ndarray, count: int = 3) -> tuple[list[SealedBid], list[X25519PrivateKey]]:
    cards = [each.card for each in laid(count)]
    keys = [X25519PrivateKey.generate() for _ in curves]
    bids = [seal_bid("beets", curve, cards, (count - 1) // 2, key) for curve, key in zip(curves, keys, strict=True)]
    return bids, keys


def test_the_price_is_that_of_the_clear_computation_on_many_markets(rounds: Callable[[int], int]):
    generator = np.random.default_rng(1_200)
    markets = [made_up_market(30, PRICES, generator) for _ in range(rounds(200))]
    markets[0][:] = np.abs(markets[0])[:, ::-1].cumsum(axis=1)[:, ::-1] + 1  # only buyers: nothing clears
    markets[1][:] = -np.abs(markets[1]).cumsum(axis=1)  # only sellers: the lowest price does

    async def program(run: Run) -> Any:
        found = []
        for market in markets:
            (excess,) = await inputs(run, (market.sum(axis=0),))
            found.append(await clear(run, excess))
        return found

    outcomes = together(3, 1, program)
    expected = [clear_openly(each) for each in markets]
    assert expected[0] is None and expected[1] == 0
    assert outcomes == [expected] * 3


@pytest.mark.parametrize("count", [3, 5])
def test_each_bidder_learns_its_own_amount_and_a_bad_bid_does_not_count(count: int):
    curves = made_up_market(12, PRICES, np.random.default_rng(26))
    bids, keys = sealed(curves, count)
    parts = bids[4].parts
    bids[4] = dataclasses.replace(bids[4], parts=(parts[0], parts[1][:-1] + bytes(1), *parts[2:]))
    bids[7] = dataclasses.replace(bids[7], prices=PRICES - 1)
    left = np.delete(curves, [4, 7], axis=0)

    async def program(run: Run) -> Any:
        return await hold(run, laid(count)[run.me - 1], "beets", PRICES, bids)

    outcomes = together(count, (count - 1) // 2, program)
    price = clear_openly(left)
    assert price is not None
    cards = [each.card for each in laid(count)]
    for outcome in outcomes:
        assert outcome.price == price
        assert [at for at, counts in enumerate(outcome.counted) if not counts] == [4, 7]
    for at in (0, 3, 11):
        answers = [each.amounts[at] for each in outcomes]
        assert open_amount("beets", answers, cards, (count - 1) // 2, keys[at]) == curves[at, price]
        with pytest.raises(InputError):  # another bidder's key
            open_amount("beets", answers, cards, (count - 1) // 2, keys[at - 1])
        with pytest.raises(InputError):  # another auction
            open_amount("swedes", answers, cards, (count - 1) // 2, keys[at])
    assert outcomes[0].amounts[4] == b""


def test_a_server_opens_its_own_part_alone_and_damage_shows():
    (bid,), _ = sealed(made_up_market(1, PRICES, np.random.default_rng(1)))
    ada, bea, _ = laid(3)
    assert open_part("beets", bid, ada.card, 1, ada.opener()) is not None
    assert open_part("beets", bid, bea.card, 1, bea.opener()) is None
    assert open_part("beets", bid, ada.card, 2, ada.opener()) is None
    assert open_part("beets", bid, ada.card, 9, ada.opener()) is None
    assert open_part("swedes", bid, ada.card, 1, ada.opener()) is None
    again = SealedBid.unpack(bid.pack())
    assert again == bid
    for data in (b"", bid.pack()[:-1], bid.pack() + b"x", b"X" + bid.pack()[1:]):
        with pytest.raises(InputError, match="no sealed bid"):
            SealedBid.unpack(data)
    assert unseal(seal(b"word", ada.card.box, b"here"), ada.opener(), b"there") is None
    assert unseal(b"short", ada.opener(), b"") is None


@pytest.mark.parametrize("curve", [[1, 2], [], [[1]], [MOST + 1], [-MOST - 1]])
def test_what_is_no_bid_is_refused(curve: list[Any]):
    cards = [each.card for each in laid(3)]
    with pytest.raises(InputError):
        seal_bid("beets", curve, cards, 1, X25519PrivateKey.generate())


def test_a_bid_in_files_comes_back_as_an_amount(tmp_path: Path):
    (tmp_path / "mine.csv").write_text("price,amount\n1,5\n2,3\n3,-4\n")
    cards = [each.card for each in laid(3)]
    key = BidderKey.read(write_bid(tmp_path / "mine.csv", "beets", cards, tmp_path / "mine.bid"))
    assert (tmp_path / "mine.key").stat().st_mode & 0o077 == 0
    bid = SealedBid.unpack((tmp_path / "mine.bid").read_bytes())

    async def program(run: Run) -> Any:
        return await hold(run, laid(3)[run.me - 1], "beets", 3, [bid])

    answers = []
    for at, outcome in enumerate(together(3, 1, program)):
        assert outcome.price == 2
        answers.append(tmp_path / f"{at}.amount")
        answers[-1].write_bytes(outcome.amounts[0])
    assert open_answers(key, answers[::-1]) == -4
    with pytest.raises(InputError, match="Too few"):
        open_answers(key, answers[:1])


@pytest.mark.parametrize(
    "text", ["", "price;amount\n1;2\n", "price,amount\n1,x\n", "price,amount\n2,1\n1,1\n", "price,amount\n1\n"]
)
def test_a_file_that_is_no_bid_is_refused(text: str, tmp_path: Path):
    file = tmp_path / "bid.csv"
    file.write_text(text)
    if text:
        with pytest.raises(InputError, match="no bid"):
            read_curve(file)
    (tmp_path / "x.key").write_text("{}")
    with pytest.raises(InputError, match="no bidder's key"):
        BidderKey.read(tmp_path / "x.key")


def lay_bids(bids: list[SealedBid], *, other_at: int | None = None) -> None:
    for at, party in enumerate(laid(3)):
        folder = auction_folder(party.folder.parent, "beets") / "bids"
        folder.mkdir(parents=True, exist_ok=True)
        for number, bid in enumerate(bids):
            data = bid.pack() if at != other_at or number else bids[1].pack()
            (folder / f"{number}.bid").write_bytes(data)


def hold_by_call(task: dict[str, Any]) -> Any:
    """Ada calls bea and cleo, who wait."""
    ada, bea, cleo = laid(3)
    told: list[Any] = []

    async def all_three() -> Any:
        loop = asyncio.get_running_loop()
        listening = [asyncio.Event(), asyncio.Event()]
        waiting = [
            loop.create_task(
                serve(each, lambda what, _call, outcome: told.append((what, outcome)), patience=3, ready=at.set)
            )
            for each, at in zip((bea, cleo), listening, strict=True)
        ]
        for event in listening:
            await event.wait()
        try:
            found = await begin(ada, ("bea", "cleo"), task, patience=3)
            while len([what for what, _ in told if what == "done"]) < 2:
                await asyncio.sleep(0.01)
            return found
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    return asyncio.run(all_three()), told


def test_servers_that_are_called_hold_an_auction_over_the_bids_they_have():
    curves = made_up_market(8, PRICES, np.random.default_rng(3))
    bids, keys = sealed(curves)
    lay_bids(bids)
    _, digest = read_bids(auction_folder(laid(3)[0].folder.parent, "beets"))
    task = {"name": "auction", "auction": "beets", "prices": PRICES, "bids": 8, "digest": digest}
    found, told = hold_by_call(task)
    assert found["price"] == clear_openly(curves)
    assert sorted(what for what, _ in told) == ["called", "called", "done", "done"]
    answers = [auction_folder(each.folder.parent, "beets") / "amounts" / "5.amount" for each in laid(3)]
    cards = [each.card for each in laid(3)]
    amount = open_amount("beets", [each.read_bytes() for each in answers], cards, 1, keys[5])
    assert amount == curves[5, found["price"]]


def test_other_bids_at_one_server_and_unknown_tasks_are_refused():
    curves = made_up_market(3, PRICES, np.random.default_rng(3))
    bids, _ = sealed(curves)
    for party in laid(3):
        for file in (auction_folder(party.folder.parent, "beets") / "bids").glob("*.bid"):
            file.unlink()
    with pytest.raises(SourceUnavailableError, match="no bids"):
        read_bids(auction_folder(laid(3)[0].folder.parent, "beets"))
    lay_bids(bids, other_at=2)
    _, digest = read_bids(auction_folder(laid(3)[0].folder.parent, "beets"))
    task = {"name": "auction", "auction": "beets", "prices": PRICES, "bids": 3, "digest": digest}
    with pytest.raises(PartyRefusedError, match="'digest'"):
        hold_by_call(task)
    with pytest.raises(InputError, match="cannot be the name of an auction"):
        hold_by_call({"name": "auction", "auction": "../beets", "prices": PRICES})
    with pytest.raises(InputError, match="takes part in trial"):
        hold_by_call({"name": "gossip"})


def test_two_servers_hold_no_auction():
    async def two() -> None:
        await begin(laid(3)[0], ("bea",), {"name": "auction", "auction": "beets", "prices": 3}, threshold=1)

    with pytest.raises(InputError, match="Name three servers"):
        asyncio.run(two())


def test_why_a_partner_will_not_take_part_reaches_who_called(monkeypatch: pytest.MonkeyPatch):
    async def trial(post: Post, call: Call) -> Any:
        if post.party.card.name == "cleo":
            raise SourceUnavailableError("The cellar is locked.", why="It is Sunday.", fix="Come again.")
        return await right(post, call)

    right = tasks.TASKS["trial"]
    monkeypatch.setitem(tasks.TASKS, "trial", trial)
    with pytest.raises(PartyRefusedError, match="cellar is locked") as caught:
        hold_by_call({"name": "trial"})
    assert caught.value.party == "cleo"


def test_a_bug_at_a_partner_ends_the_run_and_tells_nothing(monkeypatch: pytest.MonkeyPatch):
    async def trial(post: Post, call: Call) -> Any:
        if post.party.card.name == "bea":
            raise RuntimeError("row 7 is Smith")
        return await right(post, call)

    right = tasks.TASKS["trial"]
    monkeypatch.setitem(tasks.TASKS, "trial", trial)
    with pytest.raises(PartyRefusedError, match="unexpected RuntimeError") as caught:
        hold_by_call({"name": "trial"})
    assert caught.value.party == "bea" and "Smith" not in str(caught.value)


def test_a_trial_shows_that_all_reach_one_another():
    found, told = hold_by_call({"name": "trial"})
    assert found["parties"] == ["ada", "bea", "cleo"]
    assert [what for what, _ in told].count("done") == 2

"""What can go wrong between parties: nothing of it is used, and the error says whose fault it is."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.parties import inputs, laid, together

from dalenius.errors import (
    AuthDeniedError,
    DaleniusError,
    InputError,
    PartyGoneError,
    PartyRefusedError,
    SourceUnavailableError,
)
from dalenius.joint.bgw import multiply, reveal
from dalenius.joint.config import Party
from dalenius.joint.fields import BIG
from dalenius.joint.frames import DATA, HEADER, HELLO, LIMIT, Header, MalformedFrameError
from dalenius.joint.meeting import Post, new_run_id
from dalenius.joint.rehearsal import lay
from dalenius.joint.run import Run
from dalenius.joint.streams import fresh_seed

VALUES = np.arange(20_000)


Blamed = (PartyRefusedError, PartyGoneError)


async def squares(run: Run) -> np.ndarray:
    (a,) = await inputs(run, (VALUES,))
    return BIG.signed(await reveal(run, await multiply(run, a, a)))


async def attacked(run: Run) -> None:
    await ready(run)
    await squares(run)


async def ready(run: Run) -> None:
    """Returns when all have met."""
    await run.exchange("ready", dict.fromkeys(run.others, b"."), dict.fromkeys(run.others, 1))


def outcome_of(run: Run, error: type[DaleniusError]) -> Any:
    """Multiplies; returns who is blamed."""

    async def attempt() -> str:
        with pytest.raises(error) as caught:
            await attacked(run)
        return getattr(caught.value, "party", "")

    return attempt()


def link(run: Run, party: int) -> Any:
    return run._links[party]


# --- connections that break


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_broken_connection_is_made_again_and_nothing_is_lost(rounds: int):
    async def program(run: Run) -> Any:
        found = []
        for _ in range(rounds):
            if run.me == 1:
                link(run, 2)._wire.transport.abort()  # so the other side calls again
            if run.me == 3:
                link(run, 2)._wire.transport.abort()  # this side does
            found.append(await squares(run))
        return found

    for found in together(3, 1, program):
        assert all((each == VALUES**2).all() for each in found)


def test_a_connection_that_ends_within_a_frame_is_made_again():
    async def program(run: Run) -> Any:
        if run.me == 3:
            wire = link(run, 1)._wire
            header = Header(DATA, 3, link(run, 1)._run, 1, link(run, 1)._sent, 0, bytes(8), 5000).pack()
            wire.transport.write(header + bytes(100))
            await asyncio.sleep(0.05)
            wire.lose(None)
            link(run, 1)._lost(None)
        return await squares(run)

    for found in together(3, 1, program):
        assert (found == VALUES**2).all()


def test_who_leaves_is_named_at_once():
    async def program(run: Run) -> Any:
        if run.me == 2:
            await ready(run)
            return ""  # and `together` closes its links
        return await outcome_of(run, PartyGoneError)

    began = time.monotonic()
    assert together(3, 1, program) == ["bea", "", "bea"]
    assert time.monotonic() - began < 20  # far below its patience of 30 s


def test_who_is_silent_is_named():
    async def program(run: Run) -> Any:
        if run.me == 2:
            await ready(run)
            await asyncio.sleep(3)
            return ""
        return await outcome_of(run, PartyGoneError)

    found = together(3, 1, program, patience=1.0)
    assert found == ["bea", "", "bea"]


def test_who_never_comes_is_named():
    async def alone() -> None:
        async with Post(laid(3)[2], patience=0.5) as post:
            await post.meet(new_run_id(), ["ada", "bea", "cleo"], 1, {})

    with pytest.raises(PartyGoneError, match="'ada'"):
        asyncio.run(alone())


# --- parties that deviate


def test_a_frame_that_comes_twice_is_refused():
    async def program(run: Run) -> Any:
        if run.me == 3:
            await ready(run)
            wire = link(run, 1)._wire
            payload = bytes(BIG.pack(np.zeros(3, np.uint64)))
            header = Header(DATA, 3, link(run, 1)._run, 1, 0, 0, bytes(8), len(payload)).pack()
            wire.write(header, payload)  # number 0 was the keys
            await asyncio.sleep(0.3)
            return ""
        return await outcome_of(run, (PartyRefusedError if run.me == 1 else PartyGoneError))

    assert together(3, 1, program)[0] == "cleo"


@pytest.mark.parametrize(
    "change",
    [
        {"length": LIMIT + 1},
        {"length": 1 << 60},
        {"run": bytes(16)},
        {"sender": 2},
        {"round": 99},
        {"step": b"anything"},
        {"kind": 77},
        {"kind": HELLO},
        {"length": 8},
    ],
    ids=str,
)
def test_a_frame_that_does_not_belong_is_refused(change: dict[str, Any]):
    async def program(run: Run) -> Any:
        if run.me == 3:
            await ready(run)
            for party in run.others:
                own = link(run, party)
                right = Header(DATA, 3, own._run, run.rounds + 1, own._sent, 0, bytes(8), 16)
                wrong = dataclasses.replace(right, **change)
                own._wire.transport.write(wrong.pack() + bytes(min(wrong.length, 16)))
            await asyncio.sleep(0.3)
            return PartyGoneError, ""
        try:
            await attacked(run)
        except Blamed as error:
            return type(error), error.party
        return None, ""

    found = together(3, 1, program)
    assert [party for _, party in found] == ["cleo", "cleo", ""]
    assert PartyRefusedError in {kind for kind, _ in found}  # who refuses first tells the other why it leaves


def test_bytes_that_are_no_frame_are_refused():
    async def program(run: Run) -> Any:
        if run.me == 3:
            await ready(run)
            link(run, 1)._wire.transport.write(b"GET / HTTP/1.1\r\n" * HEADER)
            await asyncio.sleep(0.3)
            return ""
        return await outcome_of(run, (PartyRefusedError if run.me == 1 else PartyGoneError))

    assert together(3, 1, program)[0] == "cleo"
    with pytest.raises(MalformedFrameError):
        Header.unpack(bytes(HEADER))


def test_numbers_outside_the_field_are_refused():
    async def program(run: Run) -> Any:
        shape = (4,)
        wrong = np.full(shape, 2**61 - 1, np.uint64)
        sent = dict.fromkeys(run.others, wrong if run.me == 2 else BIG.zeros(shape))
        if run.me == 2:
            await run.exchange_arrays("test", BIG, shape, sent, run.others)
            return ""
        with pytest.raises(PartyRefusedError, match="outside the field") as caught:
            await run.exchange_arrays("test", BIG, shape, sent, run.others)
        return caught.value.party

    assert together(3, 1, program) == ["bea", "", "bea"]


def test_other_steps_are_refused():
    async def program(run: Run) -> Any:
        step = "one" if run.me == 1 else "another"
        try:
            await run.exchange(step, dict.fromkeys(run.others, b"1"), dict.fromkeys(run.others, 1))
        except Blamed as error:
            return type(error), error.party
        return None, ""

    found = together(3, 1, program)
    assert found[0] == (PartyRefusedError, "bea")
    assert found[1] == (PartyRefusedError, "ada")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"task": {"name": "sum", "high": 100}}, "'high'"),
        ({"threshold": 2}, "threshold"),
        ({"names": ["bea", "ada", "cleo"]}, "parties"),
    ],
)
def test_another_task_threshold_or_order_is_refused_and_named(change: dict[str, Any], told: str):
    parties = laid(3)
    plan: dict[str, Any] = {"names": ["ada", "bea", "cleo"], "threshold": 1, "task": {"name": "sum", "high": 10}}

    async def one(party: Party, run: bytes) -> Any:
        async with Post(party, patience=2.0) as post:
            with pytest.raises(Blamed) as caught:
                await post.meet(run, **(plan | (change if party.card.name == "cleo" else {})))
            await asyncio.sleep(0.3)
            return caught.value

    async def all_three() -> list[Any]:
        run = new_run_id()
        return list(await asyncio.gather(*(one(each, run) for each in parties)))

    found = asyncio.run(all_three())
    refusals = [each for each in found if isinstance(each, PartyRefusedError)]
    assert refusals and all(told in str(each) for each in refusals)
    assert {each.party for each in refusals} <= {"cleo", "ada", "bea"}
    assert isinstance(found[0], PartyRefusedError) and found[0].party == "cleo"


def test_a_stranger_and_an_impostor_are_kept_out(tmp_path: Path):
    ada, bea, cleo = laid(3)
    stranger = Party.create(tmp_path / "stranger", "cleo", "127.0.0.1:9")  # cleo's name, another key
    stranger = stranger.add(ada.card).add(bea.card)

    async def meets(party: Party, run: bytes) -> Any:
        async with Post(party, listen=party is not stranger, patience=1.0 if party is stranger else 2.0) as post:
            with pytest.raises(DaleniusError) as caught:
                await post.meet(run, ["ada", "bea", "cleo"], 1, {})
            return caught.value

    async def all_three() -> list[Any]:
        run = new_run_id()
        return list(await asyncio.gather(meets(ada, run), meets(bea, run), meets(stranger, run)))

    found = asyncio.run(all_three())
    assert [type(each) for each in found] == [PartyGoneError] * 3
    assert found[0].party == "cleo"
    # and who answers in another's place is told apart before a word is said
    fake = dataclasses.replace(bea.card, port=ada.card.port)

    async def calls() -> None:
        async with Post(ada):
            await Post(cleo, listen=False).call(fake)

    with pytest.raises(AuthDeniedError, match="not 'bea'"):
        asyncio.run(calls())


@pytest.mark.parametrize("names", [["bea", "cleo"], ["ada", "bea", "bea"], ["ada", "nobody"], ["ada"]])
def test_a_run_that_a_party_cannot_join_is_refused(names: list[str]):
    async def alone() -> None:
        async with Post(laid(3)[0], patience=0.5) as post:
            await post.meet(new_run_id(), names, 1, {})

    with pytest.raises(InputError):
        asyncio.run(alone())


def test_an_address_in_use_is_told():
    async def twice() -> None:
        async with Post(laid(3)[0]), Post(laid(3)[0]):
            pass

    with pytest.raises(SourceUnavailableError, match="Nobody can listen"):
        asyncio.run(twice())


# --- what is promised to who writes things down


def test_the_same_seed_sends_the_same_bytes_and_they_are_shown_before_they_leave():
    seeds = {each: fresh_seed() for each in ("ada", "bea", "cleo")}

    def once() -> dict[str, list[tuple[int, int, str, bytes]]]:
        told: dict[str, list[tuple[int, int, str, bytes]]] = {each: [] for each in seeds}

        async def one(party: Party, run_id: bytes) -> Any:
            name = party.card.name
            async with Post(party) as post:
                run = await post.meet(
                    run_id,
                    list(seeds),
                    1,
                    {},
                    seed=seeds[name],
                    outgoing=lambda *frame: told[name].append(frame),
                )
                sent = link(run, run.others[0])._sent
                assert sent == len([each for each in told[name] if each[0] == run.others[0]])
                found = await squares(run)
                await run.close()
                return found

        async def all_three() -> Any:
            run_id = new_run_id()
            return await asyncio.gather(*(one(each, run_id) for each in laid(3)))

        for found in asyncio.run(all_three()):
            assert (found == VALUES**2).all()
        return told

    assert once() == once()


@pytest.mark.parametrize("step", range(5))
def test_a_party_that_lost_everything_but_its_seed_goes_on_where_it_was(step: int):
    names = ["ada", "bea", "cleo"]
    run_id, seed = new_run_id(), fresh_seed()

    async def stays(party: Party) -> Any:
        async with Post(party) as post:
            run = await post.meet(run_id, names, 1, {}, keep=True)
            found = await squares(run)
            await run.close(linger=20)
            return found

    class CrashError(Exception):
        pass

    async def begins(party: Party) -> None:
        sent = 0

        def crash(*_frame: object) -> None:
            nonlocal sent
            sent += 1
            if sent > step:
                for each in post._runs[run_id].links.values():
                    wire, each._wire = each._wire, None  # a crash says no goodbye
                    if wire is not None:
                        wire.on_lost = lambda _error: None
                        wire.lose(None)
                raise CrashError

        async with Post(party) as post:
            run = await post.meet(run_id, names, 1, {}, seed=seed, outgoing=crash)
            await squares(run)

    async def crashes(party: Party) -> Any:
        with pytest.raises(CrashError):
            await begins(party)
        async with Post(party) as post:
            run = await post.meet(run_id, names, 1, {}, seed=seed)
            found = await squares(run)
            await run.close()
            return found

    async def all_three() -> list[Any]:
        ada, bea, cleo = laid(3)
        return list(await asyncio.gather(stays(ada), crashes(bea), stays(cleo)))

    for found in asyncio.run(all_three()):
        assert (found == VALUES**2).all()


def test_a_message_longer_than_a_frame_is_refused_before_it_is_sent():
    async def program(run: Run) -> Any:
        with pytest.raises(InputError, match="smaller batches"):
            await run.exchange("long", {}, {2 if run.me == 1 else 1: LIMIT + 1})

    together(3, 1, program)


# --- cards


def test_a_card_comes_back_and_a_damaged_one_is_refused(tmp_path: Path):
    (party,) = lay(tmp_path, ["clinic"])
    file = tmp_path / "clinic.toml"
    file.write_text(party.card.text())
    from dalenius.joint.config import Card

    assert Card.read(file) == party.card
    text = file.read_text()
    for old, new, why in (
        ("box =", "bax =", "missing"),
        ("-----BEGIN", "-----BEGUN", "damaged"),
        ('box = "', 'box = "AA', "damaged"),
        ('name = "clinic"', 'name = "../clinic"', "cannot be"),
        ('"""', '"', "TOML"),
    ):
        file.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=why):
            Card.read(file)
    with pytest.raises(SourceUnavailableError):
        Card.read(tmp_path / "absent.toml")


def test_one_name_or_certificate_twice_is_refused(tmp_path: Path):
    clinic, lab = lay(tmp_path, ["clinic", "lab"])
    other = Party.create(tmp_path / "other", "lab", "127.0.0.1:9")
    with pytest.raises(InputError, match="the same name: lab"):
        clinic.add(other.card)
    with pytest.raises(InputError, match="the same name: clinic"):
        clinic.add(Party.create(tmp_path / "double", "clinic").card)
    with pytest.raises(InputError, match="the same certificate"):
        clinic.add(dataclasses.replace(lab.card, name="registry"))
    with pytest.raises(InputError, match="party already"):
        Party.create(tmp_path / "clinic", "clinic")


def test_secret_keys_are_for_the_owner_alone(tmp_path: Path):
    (party,) = lay(tmp_path, ["clinic"])
    for name in ("tls.key", "box.key"):
        assert (party.folder / name).stat().st_mode & 0o077 == 0
    assert (party.folder.stat().st_mode | party.folder.parent.stat().st_mode) & 0o077 == 0
    (party.folder / "tls.key").write_text("nonsense")
    with pytest.raises(SourceUnavailableError, match="missing or damaged"):
        party.context(listening=True)

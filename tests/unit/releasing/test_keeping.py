"""How far a long look is: sealed, bound to its charge, gone with it; and whose look is taken up after a stop."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.shop import Shop

from dalenius.analyst import Analyst
from dalenius.curator import Curator
from dalenius.errors import EngineFailedError
from dalenius.ledger.sealing import seal, unseal
from dalenius.measuring.pace import Times
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask
from dalenius.releasing.keeping import FOLDER, Kept, drop_ended
from dalenius.releasing.kinds import Kind, Shown, known
from dalenius.releasing.leaving import Asker, Leaving, Look
from dalenius.releasing.pacing import Pace


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop.protected(tmp_path_factory.mktemp("shop"))


def test_what_is_sealed_opens_with_the_same_home_purpose_and_words_alone(shop: Shop, tmp_path: Path):
    ledger = shop.curator.ledger
    other = Shop.protected(tmp_path / "other").curator.ledger
    sealed = seal(ledger, b"seven", b"tests, 1", b"a")
    assert b"seven" not in sealed and seal(ledger, b"seven", b"tests, 1", b"a") != sealed
    assert unseal(ledger, sealed, b"tests, 1", b"a") == b"seven"
    assert unseal(ledger, sealed, b"tests, 2", b"a") is None
    assert unseal(ledger, sealed, b"tests, 1", b"b") is None
    assert unseal(other, sealed, b"tests, 1", b"a") is None
    for at in range(len(sealed)):
        forged = bytearray(sealed)
        forged[at] ^= 1
        assert unseal(ledger, bytes(forged), b"tests, 1", b"a") is None
    assert unseal(ledger, b"", b"tests, 1") is None


def test_what_is_kept_is_whole_private_and_replaced(shop: Shop):
    kept = Kept(shop.curator.ledger, 7, "what was asked")
    assert kept.read() is None
    for data in ({"step": 1, "weights": [0.1]}, {"step": 2}):
        kept.write(data)
        assert kept.read() == data
    (file,) = (shop.curator.home / FOLDER).iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert b"step" not in file.read_bytes()
    assert Kept(shop.curator.ledger, 7, "something else").read() is None
    drop_ended(shop.curator.ledger)  # 7 is no charge that is being looked at
    assert kept.read() is None and not list((shop.curator.home / FOLDER).iterdir())
    kept.drop()  # twice is once


def test_a_disk_that_takes_nothing_stops_no_look(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = Kept(shop.curator.ledger, 9, "x")
    kept.write({"step": 1})
    monkeypatch.setattr("os.fsync", full)
    kept.write({"step": 2})
    assert kept.read() == {"step": 1} and len(list((shop.curator.home / FOLDER).iterdir())) == 1
    kept.drop()


class Told:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def to_dict(self) -> dict[str, Any]:
        return {"content": json.loads(self.content)}


class Counting(Kind):
    """A kind whose look counts to nine and may break off."""

    name: ClassVar[str] = "counting"
    verb: ClassVar[str] = "counted"
    goes_on = True
    ends: BaseException | None = None

    def prepare(self, asker: Asker, request: Any) -> Leaving:
        planned = plan_ask(asker, Ask("SELECT COUNT(*) AS n FROM people", 0.1))
        return Leaving(
            self.name,
            planned.snapshot,
            f"key {request}",
            0.1,
            self.event(asker),
            Pace(lambda _: Times(1.0, 60.0)),
            self.look,
            goes_on=self.goes_on,
        )

    def event(self, asker: Asker) -> Any:
        from fractions import Fraction

        from dalenius.accounting.events import Zcdp

        return Zcdp(Fraction(asker.ledger.budget("shop").filter().price(0.1).rho))

    def look(self, look: Look) -> bytes:
        start = 0 if look.kept is None else look.kept.read() or 0
        for at in range(start, 10):
            if look.kept is not None:
                look.kept.write(at)
            look.told(at, 9)
            if at == 5 and self.ends is not None:
                raise self.ends
        return json.dumps(start).encode()

    def show(self, asker: Asker, request: Any, leaving: Leaving, answered: Any) -> Shown:
        return Told(answered.content)

    def read(self, content: bytes) -> dict[str, Any]:
        return {"start": json.loads(content)}


def charged(curator: Curator) -> int:
    return sum(entry.data.get("kind") == "counting" for entry in curator.ledger.records(("charge",)))


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit()])
def test_a_look_that_goes_on_is_left_by_a_stop_and_taken_up(shop: Shop, stop: BaseException):
    kind, ana, before = Counting(), shop.ana, charged(shop.curator)
    with known(kind):
        kind.ends = stop
        with pytest.raises(type(stop)):
            ana.obtain("counting", repr(stop))
        kind.ends = None
        assert ana.obtain("counting", repr(stop)).to_dict() == {"content": 5}
    assert charged(shop.curator) == before + 1 and not list((shop.curator.home / FOLDER).iterdir())


@pytest.mark.parametrize(
    ("goes_on", "error"),
    [
        (True, EngineFailedError("It failed.", why="A test.", fix="None.")),
        (False, KeyboardInterrupt()),
        (False, EngineFailedError("It failed.", why="A test.", fix="None.")),
    ],
)
def test_what_failed_and_what_does_not_go_on_is_ended_and_charged_anew(shop: Shop, goes_on: bool, error: BaseException):
    kind, ana, before = Counting(), shop.ana, charged(shop.curator)
    kind.goes_on = goes_on
    name = f"{goes_on} {error!r}"
    with known(kind):
        kind.ends = error
        with pytest.raises(type(error)):
            ana.obtain("counting", name)
        kind.ends = None
        assert ana.obtain("counting", name).to_dict() == {"content": 0}
    assert charged(shop.curator) == before + 2


@pytest.mark.parametrize("fixed", [True, False])
def test_nobody_is_told_the_steps_where_time_is_fixed(shop: Shop, fixed: bool):
    from dalenius.analyst import telling
    from dalenius.releasing.pacing import Pacer

    kind, seen = Counting(), list[tuple[int, int]]()
    pacer = Pacer(1, fixed=fixed)
    analyst: Analyst = telling(shop.curator.analyst("ana", pacer=pacer), lambda *each: seen.append(each))
    with known(kind):
        analyst.obtain("counting", f"fixed {fixed}")
    assert seen == ([] if fixed else [(at, 9) for at in range(10)])

"""What was left over time, over HTTP: to each what `GET /v1/budget` shows it, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.serving import Client, Server, serving

from dalenius.accounting.events import Zcdp
from dalenius.ledger import Budget, Ledger, Request

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("over time") / "home"
    ledger = Ledger.create(home)
    ledger.set_budget("visits", Budget(2.0, 1e-6))
    ledger.set_budget("monthly", Budget(1.0, 1e-6, period="month"))
    ledger.set_budget("secret", Budget(3.0, 1e-6))
    for dataset, analyst in (("visits", "ana"), ("visits", "bob"), ("monthly", "ana"), ("secret", "bob")):
        ledger.set_allotment(dataset, analyst, 0.9)
    for dataset, analyst, periods in (
        ("visits", "ana", ("",)),
        ("visits", "bob", ("",)),
        ("monthly", "ana", ("2025-01", "2025-02")),
    ):
        ledger.charge(Request(dataset, analyst, f"{dataset} {analyst}", 0.5, Zcdp(1e-4), periods=periods))
    ledger.database.close()
    with serving(home, config="console = false") as found:
        yield found


def lines(client: Client) -> dict[tuple[str, str | None, str | None], dict[str, Any]]:
    found = client.get("/v1/budget/over-time")
    assert found.status == 200
    return {(each["dataset"], each["period"], each["analyst"]): each for each in found.json["lines"]}


def test_an_analyst_sees_the_own_data_sets_and_itself(server: Server) -> None:
    wanted = {("visits", None), ("monthly", "2025-01"), ("monthly", "2025-02")}
    assert set(lines(server.analyst("ana"))) == {(*each, who) for each in wanted for who in (None, "ana")}
    assert {each[0] for each in lines(server.analyst("bob"))} == {"visits", "secret"}
    assert lines(server.analyst("eve")) == {}
    reply = server.analyst("ana").get("/v1/budget/over-time").content
    assert b"bob" not in reply
    assert b"secret" not in reply


def test_owner_and_auditor_see_every_data_set(server: Server) -> None:
    wanted = {
        ("visits", None, None),
        ("secret", None, None),
        ("monthly", "2025-01", None),
        ("monthly", "2025-02", None),
    }
    assert set(lines(server.owner())) == set(lines(server.auditor())) == wanted


def test_a_line_starts_full_and_ends_with_what_is_left(server: Server) -> None:
    ana = server.analyst("ana")
    left = ana.get("/v1/budget").json["datasets"]["visits"]
    found = lines(ana)
    for who, balance in ((None, left["dataset"]), ("ana", left["analysts"]["ana"])):
        line = found["visits", None, who]
        assert line["cap"] == balance["epsilon"]
        assert [each["epsilon"] for each in balance["finding_keys"]] == [0.05, 0.2, 0.5]
        assert line["points"][0][1] == pytest.approx(line["cap"])
        assert line["points"][-1][1] == balance["remaining"]["epsilon"] < line["cap"]
        times = [datetime.fromisoformat(when) for when, _ in line["points"]]
        assert times == sorted(times)
        assert times[0].utcoffset() == timedelta(0)
    whole = [value for _, value in found["visits", None, None]["points"]]
    assert whole == sorted(whole, reverse=True)
    assert len(whole) == 4  # its budget, two charges, and now


def test_nobody_else_sees_anything(server: Server) -> None:
    assert server.client(None).get("/v1/budget/over-time").status == 401

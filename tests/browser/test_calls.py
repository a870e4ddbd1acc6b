"""Everything that the console does is in the API too: all pages are walked, and each call is made again by HTTP."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.browser.walking import asked, ready, sign_in

from dalenius.app.console import PAGES
from dalenius.app.console.calls import roles
from dalenius.ledger.budgets import rounded_down

SQL = "SELECT region, COUNT(*) AS n\nFROM visits\nGROUP BY region"


def as_analyst(page, server):
    ready(page)
    asked(page)
    page.get_by_role("button", name="How many rows?").click()
    page.get_by_role("button", name="Put back").first.click()
    tables = page.locator(".d-page").inner_text()
    for each in server.analyst("eve").get("/v1/tables").json["tables"]:
        assert all(name in tables for name in [each["name"], *each["columns"]])
    rows = server.analyst("eve").get("/v1/history").json["history"]
    paid = page.get_by_text(re.compile(r"^paid ε = ")).all_inner_texts()
    assert [f"paid ε = {each['charge']['epsilon']:g}" for each in rows] == paid[1:]  # the first is the answer's own
    page.get_by_role("link", name="Synthetic rows").click()
    expect(page.get_by_role("button", name="Make the rows")).to_be_enabled()
    page.get_by_role("link", name="Budget").click()
    expect(page.get_by_role("heading", name="visits")).to_be_visible()
    ((dataset, found),) = server.analyst("eve").get("/v1/budget").json["datasets"].items()
    assert dataset == "visits"
    shown = page.inner_text("main")
    for each in remaining(found):
        assert f"ε ≤ {rounded_down(each):g}, of" in shown
    page.get_by_role("link", name="About").click()
    expect(page.get_by_role("heading", name="visits")).to_be_visible()


def remaining(found):
    """Every `remaining` epsilon of a budget as the API tells it, wherever it stands."""
    if isinstance(found, dict):
        own = [found["remaining"]["epsilon"]] if isinstance(found.get("remaining"), dict) else []
        return own + [value for each in found.values() for value in remaining(each)]
    return [value for each in found for value in remaining(each)] if isinstance(found, list) else []


def as_owner(page, server):
    expect(page.get_by_role("heading", name="visits")).to_be_visible()
    page.get_by_role("button", name="Refresh visits").click()
    page.get_by_role("button", name="Look first").click()
    expect(page.get_by_text("There is nothing to do.")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="History visits").click()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Change visits").click()
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Already protected: visits")).to_be_visible()
    page.get_by_label("File in the data folder").click()
    page.get_by_role("option", name="visits.parquet").click()
    expect(page.get_by_label("Low of age")).to_be_visible()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files({"name": "new.csv", "mimeType": "text/csv", "buffer": b"id,x\n1,2\n"})
    expect(page.get_by_label("Low of x")).to_be_visible()

    page.get_by_role("tab", name="Analysts").click()
    page.get_by_label("Analyst's name").fill("new")
    page.get_by_label("Allotment, ε").fill("0.5")
    page.get_by_role("button", name="Invite").click()
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".q-dialog")).to_have_count(0)
    tokens = server.owner().get("/v1/tokens").json["tokens"]
    buttons = page.get_by_role("button", name=re.compile("^Revoke [0-9a-f]{12}$"))
    expect(buttons).to_have_count(sum(each["state"] == "active" for each in tokens))  # once the list is read anew
    ids = {each.get_attribute("aria-label").split()[1] for each in buttons.all()}
    assert ids == {each["id"] for each in tokens if each["state"] == "active"}
    (made,) = [each["id"] for each in tokens if each["analyst"] == "new"]
    page.get_by_role("button", name=f"Revoke {made}").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_text("1 that have ended")).to_be_visible()
    for who in ("new", "data set visits"):
        page.get_by_role("button", name=f"Suspend {who}", exact=True).click()
        page.get_by_role("button", name="Suspend", exact=True).click()
        expect(page.get_by_text("This needs a reason.")).to_be_visible()
        page.get_by_label("Reason, for the history").fill("a look at it first")
        page.get_by_role("button", name="Suspend", exact=True).click()
        expect(page.get_by_text(re.compile(f"^{who} · suspended · 0 late .*a look at it first"))).to_be_visible()
        page.get_by_role("button", name=f"Resume {who}", exact=True).click()
        page.get_by_label("Reason, for the history").fill("all is well")
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.get_by_text(re.compile(f"^{who} · active"))).to_be_visible()
    key = server.token("owner").split("_")[1]
    entries = server.owner().get("/v1/ledger?limit=1000").json["entries"]
    assert {each["data"]["by"] for each in entries if each["kind"] == "suspension"} == {f"token:{key}"}
    page.get_by_role("tab", name="Alarms").click()
    for name in ("Budget", "Ledger", "Report", "About"):
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)


def as_auditor(page, server):
    expect(page.get_by_role("cell", name="policy").first).to_be_visible()
    with page.expect_download():
        page.get_by_role("button", name="Export").click()
    page.get_by_role("button", name="Verify").click()
    head = server.auditor().get("/v1/ledger/verify").json["head"]
    expect(page.get_by_text("Head: ")).to_have_text(f"Head: {head}")
    page.get_by_label("Head you wrote down").fill(head)
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The head you wrote down is part of it")).to_be_visible()
    page.get_by_label("Head you wrote down").fill("0" * 64)
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_text("The history holds")).to_have_count(0)
    newest = server.auditor().get("/v1/ledger?limit=1000").json["entries"][::-1][:25]
    rows = page.get_by_role("row").all_inner_texts()[1:]
    assert [int(each.split()[0]) for each in rows] == [each["number"] for each in newest]
    page.get_by_label("Kind").click()
    page.get_by_role("option", name="allotment").click()
    expect(page.get_by_role("cell", name="policy")).to_have_count(0)
    page.get_by_label("Find").fill("ada")
    expect(page.get_by_role("row")).to_have_count(2)
    for name in ("Budget", "Report", "About"):
        page.get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)


WALKS = {"analyst": as_analyst, "owner": as_owner, "auditor": as_auditor}


def request_of(route, server):
    """A request to a route, with what the walk has used."""
    method, _, path = route.partition(" ")
    policy = server.owner().get("/v1/policies/visits").json["policy"]
    bodies = {
        "POST /v1/preview": {"sql": SQL, "epsilon": 0.2},
        "POST /v1/ask": {"sql": SQL, "epsilon": 0.2},
        "POST /v1/synthetic/preview": {"table": "visits", "epsilon": 0.2},
        "POST /v1/protect": {"policies": [policy], "dry_run": True},
        "POST /v1/tables/{table}/refresh": {"dry_run": True},
        "POST /v1/tokens": {"role": "analyst", "analyst": "eve"},
        "PUT /v1/datasets/{dataset}/analysts/{analyst}": {"epsilon": 0.5},
        "POST /v1/analysts/{analyst}/suspend": {"reason": "a look"},
        "POST /v1/analysts/{analyst}/resume": {"reason": "a look"},
        "POST /v1/datasets/{dataset}/suspend": {"reason": "a look"},
        "POST /v1/datasets/{dataset}/resume": {"reason": "a look"},
        "PUT /v1/files/{name:path}": b"id,x\n1,2\n",
    }
    ended = [each["id"] for each in server.owner().get("/v1/tokens").json["tokens"] if each["state"] != "active"]
    name = "again.csv" if method == "PUT" else "visits.parquet"
    filled = {"table": "visits", "dataset": "visits", "analyst": "new", "name:path": name, "id": (ended or [""])[0]}
    for each, value in filled.items():
        path = path.replace("{" + each + "}", quote(value))
    return method, path, bodies.get(route)


@pytest.mark.parametrize("role", list(WALKS))
def test_all_that_a_role_does_on_the_pages_it_can_do_by_the_api(opened, server, role):
    page = opened()
    token = server.token(role, "eve" if role == "analyst" else "", **({"trusted": False} if role == "analyst" else {}))
    sign_in(page, server, token)
    WALKS[role](page, server)

    key = token.split("_")[1]
    calls = [each for each in server.log if each["event"] == "call" and each["token"] == key]
    routes = {each["route"] for each in calls}
    failed = {each["route"] for each in calls if each["status"] >= 500 and each.get("code") != "ledger.corrupt"}
    assert not failed
    assert len(routes) >= {"analyst": 6, "owner": 13, "auditor": 5}[role], routes
    client = server.client(token)
    described = client.get("/v1/openapi.json").json["paths"]
    for route in sorted(routes):
        method, path, body = request_of(route, server)
        _, _, template = route.partition(" ")
        operation = described[template.replace(":path", "")][method.lower()]
        reply = client.request(method, path, body)
        assert reply.status not in {401, 403, 404, 405} and reply.status < 500, (route, reply.status, reply.content)
        assert str(reply.status) in operation["responses"], (route, reply.status)
    for path in ("/v1/analysts/eve/resume", "/v1/datasets/visits/resume"):  # for who comes next
        assert server.owner().post(path, {"reason": "all is well"}).status in {200, 400}


def test_a_page_is_open_to_no_role_that_its_calls_are_not_open_to():
    first = {
        "/": "POST /v1/ask",
        "/workload": "POST /v1/workloads",
        "/synthesize": "POST /v1/synthetic",
        "/train": "POST /v1/models",
        "/synthetic": "POST /v1/synthetic/{id}/open",
        "/protect": "POST /v1/protect",
        "/publish": "POST /v1/publications",
        "/budget": "GET /v1/budget/over-time",
        "/ledger": "GET /v1/ledger",
        "/report": "GET /v1/report",
        "/about": "GET /v1/tables",
    }
    assert first.keys() | {"/lab"} == PAGES.keys()  # which touches nothing of the server, and is open to all
    for path, place in PAGES.items():
        assert path == "/lab" or set(place.roles) <= set(roles()[first[path]]), path

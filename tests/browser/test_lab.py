"""The attack lab: it runs live, for everybody who is signed in, and nobody's budget pays for it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.walking import looked_at, sign_in

from dalenius.ledger import Ledger

pytestmark = pytest.mark.alone  # the lab takes what others leave of the processor: beside other tests, next to nothing


def choose(page, name):
    page.get_by_role("combobox", name="Attack").click()
    page.get_by_role("option", name=name, exact=True).click()


def run(page):
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", name="Protected", exact=True)).to_be_visible(timeout=120_000)


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_what_is_unprotected_falls_and_what_is_protected_holds(opened, server, role):
    page = opened()
    sign_in(page, server, server.token(role, "kit" if role == "analyst" else ""))
    entries = Ledger.open(server.home).head.count
    page.get_by_role("link", name="Attack lab").click()
    expect(page.get_by_text("A rule about the size of a group")).to_be_visible()
    wrong = looked_at(page, f"{role}-lab") if role == "analyst" else []
    if role == "auditor":
        choose(page, "Rare key")
        expect(page.get_by_text("A list of keys is a release too.")).to_be_visible()
    run(page)
    for target, verdict in (("plain", "fell"), ("dalenius", "held")):
        found = page.locator(".d-grid > *", has=page.get_by_role("heading", name=target, exact=True))
        expect(found.get_by_text(verdict, exact=True)).to_be_visible()
        expect(found.get_by_text("question")).not_to_have_count(0)
    if role == "analyst":
        expect(page.locator(".nicegui-echart svg")).to_be_visible()
        wrong += looked_at(page, "analyst-lab-run")
    else:
        expect(page.get_by_text("too few questions for a chart")).to_be_visible()
        choose(page, "Homogeneity")  # which asks nothing: it has the published rows
        expect(page.get_by_text("To be hidden among k is no help")).to_be_visible()
        page.get_by_role("button", name="Run").click()
        for target, verdict in (("k-anonymous", "fell"), ("l-diverse", "held")):
            found = page.locator(".d-grid > *", has=page.get_by_role("heading", name=target, exact=True))
            expect(found.get_by_text(verdict, exact=True)).to_be_visible(timeout=60_000)
            expect(found.get_by_text("of 1,000 people").first).to_be_visible()
    assert not wrong
    assert Ledger.open(server.home).head.count == entries  # nothing of this server was touched
    left = set(Path(tempfile.gettempdir()).glob("dalenius-lab-*/dalenius-lab-*"))
    for _ in range(100):  # other tests run labs meanwhile, whose folders go with them
        left = {each for each in left if each.exists()}
        if not left:
            break
        time.sleep(0.2)
    assert not left

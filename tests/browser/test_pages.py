"""Every page, at two widths and in two themes: it shows, nothing overflows, and axe finds no serious violation."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.browser.conftest import SHOTS, sign_in

PAGES = [
    ("analyst", "/", "Ask"),
    ("analyst", "/budget", "Budget"),
    ("analyst", "/about", "About this data"),
    ("owner", "/budget", "Budget"),
    ("owner", "/ledger", "Ledger"),
    ("auditor", "/ledger", "Ledger"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_every_page_shows_and_is_accessible(opened, server, width, theme):
    for role in ("analyst", "owner", "auditor"):
        page = opened(width, theme)
        sign_in(page, server, server.token(role, "eve" if role == "analyst" else ""))
        for whose, path, title in PAGES:
            if whose != role:
                continue
            page.goto(f"{server.url}{path}")
            expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
            page.wait_for_timeout(300)
            SHOTS.mkdir(parents=True, exist_ok=True)
            name = f"{role}-{path.strip('/') or 'ask'}-{width}-{theme}.png"
            page.screenshot(path=SHOTS / name, full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 1, f"{name} is {wide} px too wide"
            found = [each for each in Axe().run(page).response["violations"] if each["impact"] in _SERIOUS]
            told = [(each["id"], [node["html"][:200] for node in each["nodes"]][:3]) for each in found]
            assert not told, (name, told)


_SERIOUS = {"serious", "critical"}


def test_an_auditor_verifies_the_ledger(opened, server):
    page = opened()
    sign_in(page, server, server.token("auditor"))
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The history holds")).to_be_visible()
    expect(page.get_by_text("Head: ")).to_be_visible()


def test_first_paint_is_quick_and_nothing_comes_from_outside(opened, server):
    page = opened()
    sign_in(page, server, server.token("analyst", "eve"))
    page.goto(f"{server.url}/")
    expect(page.locator(".cm-editor")).to_be_visible()
    assert page.evaluate(
        "performance.getEntriesByType('resource').every(each => new URL(each.name).host === location.host)"
    )

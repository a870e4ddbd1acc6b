"""Every page and state, at two widths and in two themes: nothing overflows, axe finds nothing serious.

`make test-long` takes a picture of each, into build/shots; their names say whose page it is, in which state, how wide
and in which theme.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.browser.walking import ask_button, asked, expected, looked_at, price, ready, sign_in, write


@pytest.fixture
def entered(opened, server):
    def signed_in(role, analyst=""):
        page = opened()
        more = {"trusted": True} if analyst else {}
        sign_in(page, server, server.token(role, analyst, **more))
        return page

    return signed_in


def test_sign_in_can_be_read_by_everyone(opened, server):
    page = opened()
    page.goto(f"{server.url}/sign-in")
    wrong = looked_at_without_policy(page, "sign-in")
    page.get_by_label("Token").fill("dalenius_000000000000_" + "A" * 43)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    wrong += looked_at_without_policy(page, "sign-in-wrong-token")
    page.goto(f"{server.url}/sign-in?say=out")
    expect(page.get_by_role("status")).to_be_visible()
    wrong += looked_at_without_policy(page, "sign-in-signed-out")
    assert not wrong


def looked_at_without_policy(page, name):
    """The page's own policy lets nothing run, axe included: its text is put into an empty page."""
    content = page.content()
    other = page.context.new_page()
    other.set_content(content)
    try:
        return looked_at(other, name)
    finally:
        other.close()


def test_an_analysts_pages_can_be_read_by_everyone(entered, server):
    page = entered("analyst", "eve")
    ready(page)
    wrong = looked_at(page, "analyst-ask")
    asked(page)
    expect(page.locator(".nicegui-echart svg")).to_be_visible()
    wrong += looked_at(page, "analyst-ask-answer")
    page.get_by_role("button", name="How many rows?").click()
    price(page, *["PageUp"] * 4)
    expect(expected(page)).to_contain_text("More than is left")
    assert asked(page).get_attribute("role") == "alert"
    wrong += looked_at(page, "analyst-ask-refused")
    write(page, "SELECT note FROM visits")
    expect(ask_button(page)).to_be_disabled()
    expect(expected(page)).to_contain_text("This would work")
    wrong += looked_at(page, "analyst-ask-cannot")
    for path in ("budget", "about"):
        page.goto(f"{server.url}/{path}")
        expect(page.get_by_role("heading", level=2).first).to_be_visible()
        wrong += looked_at(page, f"analyst-{path}")
    assert not wrong


def test_the_owners_pages_can_be_read_by_everyone(entered, server):
    page = entered("owner")
    expect(page.get_by_role("heading", name="visits")).to_be_visible()
    wrong = looked_at(page, "owner-protect-tables")
    for button, title in (("Refresh visits", "Refresh visits"), ("History visits", "History of visits")):
        page.get_by_role("button", name=button).click()
        expect(page.get_by_role("heading", name=title)).to_be_visible()
        wrong += looked_at(page, f"owner-protect-{title.split()[0].lower()}")
        page.get_by_role("button", name=re.compile("^(Close|Cancel)$")).click()
        expect(page.locator(".q-dialog")).to_have_count(0)

    page.get_by_role("tab", name="Analysts").click()
    expect(page.get_by_role("heading", name="Allotments")).to_be_visible()
    wrong += looked_at(page, "owner-protect-analysts")
    page.get_by_label("Analyst's name").fill("new")
    page.get_by_label("Allotment, ε").fill("0.5")
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_label("Token", exact=True)).to_be_visible()
    wrong += looked_at(page, "owner-protect-token")
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".q-dialog")).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Revoke ")).first.click()
    expect(page.get_by_role("button", name="Revoke it")).to_be_visible()
    wrong += looked_at(page, "owner-protect-revoke")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".q-dialog")).to_have_count(0)

    page.get_by_role("tab", name="Protect a table").click()
    page.get_by_label("File in the data folder").click()
    page.get_by_role("option", name="visits.parquet").click()
    expect(page.get_by_label("Low of age")).to_be_visible()
    wrong += looked_at(page, "owner-protect-form")
    page.get_by_label("Low of age").fill("young")
    expect(page.locator(".cm-content")).to_contain_text('"young"')
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_be_visible()
    wrong += looked_at(page, "owner-protect-form-refused")

    page.get_by_role("tab", name="Alarms").click()
    expect(page.get_by_text("No alarms")).to_be_visible()
    wrong += looked_at(page, "owner-protect-alarms")
    page.goto(f"{server.url}/budget")
    expect(page.get_by_role("heading", name="visits")).to_be_visible()
    wrong += looked_at(page, "owner-budget")
    assert not wrong


def test_an_auditors_pages_can_be_read_by_everyone(entered, server):
    page = entered("auditor")
    expect(page.get_by_role("cell", name="policy").first).to_be_visible()
    wrong = looked_at(page, "auditor-ledger")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("The history holds")).to_be_visible()
    wrong += looked_at(page, "auditor-ledger-verified")
    page.goto(f"{server.url}/about")
    expect(page.get_by_role("heading", name="visits")).to_be_visible()
    wrong += looked_at(page, "auditor-about")
    assert not wrong


def test_the_report_can_be_read_by_everyone(entered, server):
    page = entered("auditor")
    page.get_by_role("link", name="Report").click()
    expect(page.locator(".report")).to_contain_text("The history holds.")
    assert not looked_at(page, "auditor-report")


def test_the_first_page_is_quick_and_nothing_comes_from_outside(opened, server):
    page = opened()
    sign_in(page, server, server.token("analyst", "ada"))
    ready(page)
    page.reload()  # what a browser may keep, it has kept
    ready(page)
    assert page.evaluate(
        "performance.getEntriesByType('resource').every(each => new URL(each.name).host === location.host)"
    )
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert painted < 5000  # milliseconds, beside other work

"""The way of an analyst in a real browser: sign in, ask, see, repeat for nothing, run out."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from tests.browser.conftest import sign_in

from dalenius.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens


@pytest.fixture
def ask(opened, server):
    page = opened()
    sign_in(page, server, server.token("analyst", "eve"))
    expect(page.get_by_role("heading", name="Ask")).to_be_visible()
    return page


def asked(page):
    page.get_by_role("button", name="Ask", exact=True).last.click()
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_be_visible(timeout=60_000)
    return answer


def test_an_analyst_asks_in_five_clicks_and_sees_table_and_chart_with_error_bars(opened, server):
    """Sign in (1), an example (2), Ask (3): from the token to a charted private answer."""
    page = opened()
    sign_in(page, server, server.token("analyst", "eve"))
    page.get_by_role("button", name="Rows by region").click()
    expect(page.get_by_text(re.compile(r"^n ± "))).to_be_visible()
    answer = asked(page)
    expect(answer.get_by_role("img")).to_be_visible()
    for region in ("north", "south", "east", "west"):
        expect(answer.get_by_role("cell", name=region)).to_be_visible()
    assert len(re.findall(r"±", answer.inner_text())) >= 4
    charted = page.evaluate("() => document.querySelector('.nicegui-echart canvas') !== null")
    assert charted


def test_the_same_question_again_is_free(ask, server):
    ask.get_by_role("button", name="How many rows?").click()
    first = asked(ask).inner_text()
    before = Ledger.open(server.home).head.count
    again = asked(ask)
    expect(again).to_contain_text("free: asked before")
    numbers = re.findall(r"[\d,]+ ± [\d,]+", first)
    assert numbers and numbers == re.findall(r"[\d,]+ ± [\d,]+", again.inner_text())
    assert Ledger.open(server.home).head.count == before


def test_a_price_beyond_what_is_left_cannot_be_paid_and_says_why(ask):
    ask.get_by_role("button", name="How many rows?").click()
    slider = ask.get_by_role("slider", name="Price, epsilon").locator("[tabindex='0']")
    for _ in range(12):
        slider.press("Control+ArrowRight")
    expect(ask.get_by_text(re.compile("More than is left"))).to_be_visible()
    expect(ask.get_by_role("button", name="Ask", exact=True).last).to_be_disabled()


def test_a_question_that_cannot_be_answered_says_why_and_what_would_work(ask):
    editor = ask.locator(".cm-content")
    editor.click()
    ask.keyboard.press("Control+A")
    ask.keyboard.type("SELECT note FROM visits")
    expect(ask.get_by_role("button", name="Ask", exact=True).last).to_be_disabled()
    expect(ask.locator(".text-warning").first).to_be_visible()


def test_a_wrong_token_is_refused_and_told_nothing(opened, server):
    page = opened()
    page.goto(f"{server.url}/sign-in")
    page.get_by_label("Token").fill("dalenius_000000000000_" + "A" * 43)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not a token that is valid now")
    page.goto(f"{server.url}/budget")
    assert "/sign-in" in page.url


def test_a_session_ends_with_its_token(opened, server):
    tokens = Tokens(Ledger.open(server.home))
    text, token = tokens.create(Role.ANALYST, "eve")
    page = opened()
    sign_in(page, server, text)
    tokens.revoke(token.id)
    page.get_by_role("button", name="Rows by region").click()
    page.wait_for_url(re.compile("/sign-in"))
    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_who_signs_out_is_out(opened, server):
    page = opened()
    sign_in(page, server, server.token("analyst", "eve"))
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(re.compile("/sign-in"))
    page.goto(f"{server.url}/")
    assert "/sign-in" in page.url


def test_an_analyst_does_not_reach_the_owners_pages(ask, server):
    for path in ("/ledger", "/protect", "/report"):
        ask.goto(f"{server.url}{path}")
        assert ask.url == f"{server.url}/"

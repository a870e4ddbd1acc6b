"""The server goes away and comes back: the page says so, and goes on."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.sync_api import expect
from tests.browser.walking import pictured, ready, sign_in
from tests.serving import serving, start


def test_a_page_says_that_the_connection_is_lost_and_comes_back(opened, home):
    first = start(home)
    try:
        page = opened()
        token = first.token("analyst", "eve")
        sign_in(page, first, token)
        ready(page)
        popup = page.locator("#popup")
        first.kill()
        expect(page.get_by_text("Connection lost")).to_be_visible()
        pictured(page, "analyst-ask-connection-lost-1440-light")
        with serving(home, "--port", str(urlsplit(first.url).port)) as again:
            # A new process knows nobody: who was signed in is led to the sign in, and from there back.
            page.wait_for_url(lambda url: "/sign-in" in url, timeout=30_000)
            sign_in(page, again, token)
            ready(page)
            assert popup.is_hidden()
    finally:
        first.process.kill()
        first.process.wait()
        first.close()

"""Many questions on one page: what each may be expected to give, then all answers with their charts."""

from __future__ import annotations

from playwright.sync_api import expect
from tests.browser.walking import looked_at, sign_in


def test_many_questions_are_previewed_and_asked_at_one_price(opened, server):
    page = opened()
    sign_in(page, server, server.token("analyst", "eve"))
    page.get_by_role("link", name="Many questions").click()
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_role("heading", name="Expected errors")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("Measured: ")).to_be_visible()
    wrong = looked_at(page, "analyst-workload")
    page.get_by_role("button", name="Ask all").click()
    expect(page.get_by_role("heading", name="1: SELECT")).to_be_visible(timeout=120_000)
    expect(page.get_by_role("region", name="Answer")).not_to_have_count(0)
    assert not wrong + looked_at(page, "analyst-workload-asked")

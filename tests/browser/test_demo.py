"""Somebody who has never seen it: from `dalenius demo` to a charted private answer, in five clicks or fewer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from playwright.sync_api import expect
from tests.browser.walking import ask_button, chart, pictured, ready, whiskers


@pytest.fixture
def demo(tmp_path):
    """What `make demo` shows in a terminal: an address, and a token for each role."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dalenius", "demo", "--serve", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=dict(os.environ),
    )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(timeout=60)
        process.stdout.close()


def test_from_the_demo_to_a_charted_private_answer_in_five_clicks_or_fewer(opened, demo):
    page = opened()
    clicks = 0

    page.goto(demo["url"])  # a click on the address in the terminal
    clicks += 1
    assert "/sign-in" in page.url
    expect(page.get_by_label("Token")).to_be_focused()  # no click is needed to paste what the terminal shows
    page.keyboard.insert_text(demo["tokens"]["analyst"])
    page.get_by_role("button", name="Sign in").click()
    clicks += 1
    ready(page)  # a question stands there, with its price
    ask_button(page).click()
    clicks += 1

    answer = page.get_by_role("region", name="Answer")
    expect(chart(answer)).to_be_visible(timeout=60_000)
    expect(answer).to_contain_text("±")
    bars, lines = whiskers(chart(answer))
    assert len(bars) >= 2 and len(lines) == 3 * len(bars)
    pictured(page, "demo-answer-1440-light", full_page=True)
    assert clicks <= 5

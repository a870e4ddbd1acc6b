"""The report in the console, in a real browser on a real server: to read, keep and print, and names that are code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright
from tests.serving import Server, serving

from dalenius.accounting.events import Zcdp
from dalenius.ledger import Budget, Ledger, Request

pytestmark = pytest.mark.browser

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    ledger = Ledger.create(tmp_path_factory.mktemp("report") / "home")
    ledger.set_budget(HOSTILE, Budget(1.0, 1e-6, unit=HOSTILE), HOSTILE)
    ledger.set_allotment(HOSTILE, HOSTILE, 0.8)
    ledger.ask(Request(HOSTILE, HOSTILE, "count", 0.5, Zcdp(1e-9)), lambda _: b"42")
    ledger.record("note", {"alarm": HOSTILE})
    ledger.database.close()
    with serving(ledger.home) as found:
        yield found
        assert "Traceback" not in found.log_file.read_text()


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a browser; anything that a script on it says or breaks fails the test."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found = browser.new_page(viewport={"width": 390, "height": 900})
        found.set_default_timeout(30_000)
        wrong: list[str] = []
        found.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        found.on("pageerror", lambda error: wrong.append(str(error)))
        yield found
        assert wrong == []
        browser.close()


def sign_in(page: Page, server: Server, token: str) -> None:
    page.goto(f"{server.url}/sign-in?to=/report")
    page.fill("input[name=token]", token)
    page.click("button[type=submit]")


@pytest.mark.parametrize("role", ["owner", "auditor"])
def test_owners_and_auditors_read_keep_and_print_the_report(
    server: Server, page: Page, role: str, tmp_path: Path
) -> None:
    sign_in(page, server, server.token(role))
    page.get_by_text("The history holds.").wait_for()
    assert page.locator(".report script, .report img").count() == 0
    assert page.get_by_role("cell", name=HOSTILE).count() + page.get_by_role("rowheader", name=HOSTILE).count() > 0
    assert page.locator(".report h1, .report main").count() == 0  # the page has its own
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "report.html")
    kept = (tmp_path / "report.html").read_text()
    assert kept.startswith("<!doctype html>") and HOSTILE not in kept
    page.evaluate("window.print = () => { window.printed = true }")
    page.get_by_role("button", name="Print").click()
    page.wait_for_function("window.printed === true")
    page.emulate_media(media="print")
    assert not page.get_by_role("button", name="Print").is_visible()


def test_a_file_that_was_kept_runs_nothing(server: Server, page: Page, tmp_path: Path) -> None:
    from dalenius.app.report import report
    from dalenius.app.report_html import document

    (tmp_path / "kept.html").write_text(document(report(Ledger.open(server.home))))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "kept.html").as_uri())
    assert asked == [(tmp_path / "kept.html").as_uri()] and page.locator("script, img").count() == 0
    assert page.get_by_role("heading", level=1).count() == 1


def test_analysts_are_led_elsewhere(server: Server, page: Page) -> None:
    sign_in(page, server, server.token("analyst", "ana"))
    page.wait_for_url(lambda url: "sign-in" not in url)
    page.goto(f"{server.url}/report")
    assert page.url == f"{server.url}/" and page.locator(".report").count() == 0

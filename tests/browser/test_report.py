"""The report in the console, in a real browser on a real server: to read, keep and print, and names that are code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browser.conftest import sign_in
from tests.browser.walking import COMBINATIONS, IN_SHORT
from tests.conftest import LONG
from tests.serving import Server

from dalenius.accounting.events import Zcdp
from dalenius.app.report import document, report
from dalenius.ledger import Budget, Ledger, Request

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names that are code, wherever the owner may choose one."""
    ledger = Ledger.create(tmp_path_factory.mktemp("report") / "home")
    ledger.set_budget(HOSTILE, Budget(1.0, 1e-6, unit=HOSTILE), HOSTILE)
    ledger.set_allotment(HOSTILE, HOSTILE, 0.8)
    ledger.ask(Request(HOSTILE, HOSTILE, "count", 0.5, Zcdp(1e-9)), lambda _: b"42")
    ledger.record("note", {"alarm": HOSTILE})
    ledger.database.close()
    return ledger.home


@pytest.mark.parametrize("role", ["owner", "auditor"])
def test_owners_and_auditors_read_keep_and_print_the_report(
    server: Server, opened: Callable[..., Page], role: str, tmp_path: Path
) -> None:
    page = opened(width=390)
    sign_in(page, server, server.token(role))
    page.goto(f"{server.url}/report")
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


def test_a_file_that_was_kept_runs_nothing(home: Path, opened: Callable[..., Page], tmp_path: Path) -> None:
    page = opened()
    (tmp_path / "kept.html").write_text(document(report(Ledger.open(home))))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "kept.html").as_uri())
    assert asked == [(tmp_path / "kept.html").as_uri()] and page.locator("script, img").count() == 0
    assert page.get_by_role("heading", level=1).count() == 1


@pytest.mark.parametrize(("theme", "width"), COMBINATIONS if LONG else IN_SHORT)
def test_page_and_file_can_be_read_by_everyone(
    server: Server, opened: Callable[..., Page], tmp_path: Path, width: int, theme: str
) -> None:
    (tmp_path / "kept.html").write_text(document(report(Ledger.open(server.home))))
    page = opened(width, theme)
    sign_in(page, server, server.token("auditor"))
    for where in (f"{server.url}/report", (tmp_path / "kept.html").as_uri()):
        page.goto(where)
        page.get_by_text("The history holds.").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        if where.startswith("file:"):  # what a policy of its own forbids to run, axe included, is shown without it
            page.set_content((tmp_path / "kept.html").read_text().replace("Content-Security-Policy", "x-none"))
        found = Axe().run(page, context=".report").response["violations"]
        assert not found, [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]


def test_analysts_are_led_elsewhere(server: Server, opened: Callable[..., Page]) -> None:
    page = opened()
    sign_in(page, server, server.token("analyst", "ana"))
    page.goto(f"{server.url}/report")
    assert page.url == f"{server.url}/" and page.locator(".report").count() == 0

"""A real browser on a real server. No outside host is reached: one that is asked for fails the test."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.attack.hostile import people, protected
from tests.browser.walking import sign_in
from tests.serving import Server, serving

__all__ = ["sign_in"]  # where other tests look for it

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page


# What a test has no use for. Two pages of Chromium's own stand ready behind the address line of every window, and take
# more of the processor than most of ours do. The rest is what Playwright switches off: only the last such list holds.
UNUSED = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"),
    *("HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("AvoidCorsURLLoaderRestartOnRedirect", "TcpPortRandomizationWin", "OptimizationHints", "AimEnabled"),
    *("NetworkTimeServiceQuerying", "PreconnectToSearch"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="module")  # not longer: while it is there, its thread has a running event loop
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "These tests need chromium; scripts/system-packages installs it."
    with sync_playwright() as playwright:
        switches = ["--no-sandbox", f"--disable-features={','.join(UNUSED)}"]
        found = playwright.chromium.launch(executable_path=program, args=switches)
        yield found
        found.close()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 400 people; each test has an analyst of its own, so that none depends on what another spent."""
    folder = tmp_path_factory.mktemp("console")
    names = ("eve", "ada", "bob", "cleo", "dan", "fay", "gus", "hal", "ida", "joe", "lea", "max")
    allotments = dict.fromkeys(names, 1.0) | {"poor": 0.3, "kit": 4.0}
    curator = protected(folder, people(victim=False, units=400, rows=2000), epsilon=30.0, analysts=allotments)
    curator.ledger.database.close()
    return curator.home


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[Server]:
    with serving(home, "--data-dir", str(home.parent)) as found:
        yield found


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages, of a width and a theme; at the end no outside host was asked for, and no script failed."""
    contexts: list[BrowserContext] = []
    outside: list[str] = []
    errors: list[str] = []

    def dialog(each: Dialog) -> None:
        errors.append(f"dialog: {each.message}")
        each.dismiss()

    def page(width: int = 1440, theme: str = "light") -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)  # type: ignore[arg-type]
        context.set_default_timeout(20_000)
        contexts.append(context)
        found = context.new_page()
        found.on("pageerror", lambda error: errors.append(str(error)))
        found.on("request", lambda each: outside.append(each.url) if _is_outside(each.url) else None)
        found.on("dialog", dialog)
        return found

    yield page
    for each in contexts:
        each.close()
    assert not outside and not errors, (outside, errors)


@pytest.fixture(autouse=True, scope="module")
def patient() -> None:
    """Other work may share the machine: what is waited for may take a while."""
    from playwright.sync_api import expect

    expect.set_options(timeout=20_000)


def _is_outside(url: str) -> bool:
    return urlsplit(url).hostname not in {"127.0.0.1", None} and not url.startswith(("data:", "blob:"))

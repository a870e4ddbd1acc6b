"""What the browser's tests share: ways that people go through the console, and what every page is looked at for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from tests.conftest import LONG

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page
    from tests.serving import Server

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "build" / "shots"
WIDE, NARROW = 1440, 390
COMBINATIONS = [(theme, width) for theme in ("light", "dark") for width in (WIDE, NARROW)]
IN_SHORT = [("light", WIDE), ("dark", NARROW)]  # each width and each theme once
# Of an open dialog, itself: what lies behind it is looked at without one, and axe takes its backdrop for a background.
_AXE = """() => {
  document.querySelectorAll(".q-dialog__backdrop").forEach(each => { each.style.display = "none"; });
  const where = document.querySelector(".q-dialog__inner") || document;
  return axe.run(where, {resultTypes: ["violations"]}).then(found => found.violations
  .filter(each => ["serious", "critical"].includes(each.impact))
  .map(each => [each.id, each.nodes.slice(0, 3).map(node => [node.html.slice(0, 200), node.any[0]?.message])]))}"""
_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
_STILL = """() => document.getAnimations().every(
  each => each.playState !== "running" || each.effect.getComputedTiming().iterations === Infinity)"""
_DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def sign_in(page: Page, server: Server | str, token: str) -> None:
    """Signs in, as a person would."""
    page.goto(f"{server if isinstance(server, str) else server.url}/sign-in")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)


def ready(page: Page) -> None:
    """Waits for the page Ask: built, with a price, and heard by the server."""
    expect(page.locator("[aria-label='Question in SQL']")).to_be_visible()
    expect(expected(page)).not_to_be_empty()


def expected(page: Page) -> Locator:
    """Where the live preview stands."""
    return page.locator("div[aria-live=polite].nicegui-column")


def ask_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Ask", exact=True)


def asked(page: Page) -> Locator:
    """Presses Ask; what came of it, an answer or a refusal, and not what stood there before."""
    answer = page.get_by_role("region", name="Answer").or_(page.get_by_role("alert"))
    before = answer.element_handles()
    ask_button(page).click()
    for each in before:
        each.wait_for_element_state("hidden")
    expect(answer).to_be_visible(timeout=60_000)
    expect(ask_button(page)).to_be_enabled()
    return answer


def write(page: Page, sql: str) -> None:
    """Puts a question into the editor by keyboard, and waits until the server has seen it."""
    page.locator(".cm-content").first.focus()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(sql)


def chart(answer: Locator) -> Locator:
    return answer.get_by_role("img", name=re.compile("^Bar chart of .* with error bars"))


def price(page: Page, *keys: str) -> None:
    """Moves the slider of the price."""
    slide(page, "Price, epsilon", *keys)


def slide(page: Page, name: str, *keys: str) -> None:
    """Moves a slider by its keys, as fast as they can be pressed."""
    page.get_by_role("slider", name=name).locator("[tabindex='0']").focus()
    for each in keys:
        page.keyboard.press(each)


def combinations(page: Page) -> Iterator[str]:
    """The page as it stands, at both widths and in both themes; yields a name for each. In the short form, two."""
    for theme, width in COMBINATIONS if LONG else IN_SHORT:
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(_DRAWN)
        page.wait_for_function(_STILL)  # while something fades in, its colours are not yet its own
        yield f"{width}-{theme}"
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDE, "height": 900})


def fits(page: Page, name: str) -> None:
    """Nothing is wider than the window."""
    wide = page.evaluate(_WIDE)
    assert wide <= 1, f"{name} is {wide} px too wide"


def looked_at(page: Page, name: str) -> list[Any]:
    """A page as it stands, in all combinations: what is wrong with them. Axe takes a second or two for each: in the
    short form it looks at half of the pages in each of the two combinations."""
    wrong: list[Any] = []
    for at, which in enumerate(combinations(page)):
        pictured(page, f"{name}-{which}", full_page=True, animations="disabled")
        wide = page.evaluate(_WIDE)
        if wide > 1:
            wrong.append((name, which, f"{wide} px too wide"))
        if LONG or at == len(name) % 2:
            wrong += [(name, which, *each) for each in violations(page)]
    return wrong


def pictured(page: Page, name: str, **more: Any) -> None:
    """In the long form, takes a picture for people to look at."""
    if LONG:
        SHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SHOTS / f"{name}.png", **more)


def violations(page: Page) -> list[Any]:
    """What axe finds that is serious; its script is brought along once for each page."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(Axe().axe_script)
    found: list[Any] = page.evaluate(_AXE)
    return found


def whiskers(chart: Locator) -> tuple[list[dict[str, float]], list[list[float]]]:
    """What is drawn: bars as boxes, and the lines of whiskers, in pixels of the drawing."""
    bars: list[dict[str, float]] = chart.evaluate(
        """each => [...each.querySelectorAll('path[fill="#4a86b8"]')].map(path => {
             const {x, y, width, height} = path.getBBox(); return {x, y, width, height} })"""
    )
    lines: list[str] = chart.evaluate(
        """each => [...each.querySelectorAll('path[stroke="#c2410c"]')].map(path => path.getAttribute("d"))"""
    )
    return bars, [[float(each) for each in re.findall(r"-?[0-9.]+", line)] for line in lines]

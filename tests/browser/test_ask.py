"""The way of an analyst in a real browser: sign in, ask, see, repeat for nothing, run out; by mouse and by keyboard."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect
from tests.browser.walking import (
    ask_button,
    asked,
    chart,
    expected,
    pictured,
    price,
    ready,
    sign_in,
    slide,
    whiskers,
    write,
)

from dalenius.app.console.pages.ask import accuracy_at
from dalenius.app.console.parts.prices import price_at
from dalenius.ledger import Ledger
from dalenius.ledger.tokens import Role, Tokens

REGIONS = ("north", "south", "east", "west")
BY_REGION = "SELECT region, COUNT(*) AS n\nFROM visits\nGROUP BY region"


@pytest.fixture
def analyst(opened, server):
    """Signs an analyst in; gives the page Ask."""

    def entered(name, *, trusted=True):
        page = opened()
        sign_in(page, server, server.token("analyst", name, trusted=trusted))
        ready(page)
        return page

    return entered


def numbers(answer):
    return re.findall(r"-?[\d,]+ ± [\d,]+", answer.inner_text())


def test_an_analyst_sees_a_table_and_a_chart_whose_error_bars_are_where_they_should_be(analyst, server):
    page = analyst("eve", trusted=False)
    answer = asked(page)
    for region in REGIONS:
        expect(answer.get_by_role("cell", name=region)).to_be_visible()
    assert len(numbers(answer)) == 4

    same = server.analyst("eve").ask(BY_REGION, epsilon=0.2)
    assert (same.status, same.json["free"]) == (200, True)
    bars, lines = whiskers(chart(answer))
    assert (len(bars), len(lines)) == (4, 12)
    values = [row[1] for row in same.json["rows"]]
    zero = {
        round(each["y"] + each["height"] if value > 0 else each["y"], 1)
        for each, value in zip(bars, values, strict=True)
    }
    assert len(zero) == 1
    at_zero = zero.pop()
    top = max(range(4), key=lambda at: values[at])
    scale = bars[top]["height"] / values[top]  # pixels for one row
    for at, (stem, low, high) in enumerate(zip(lines[::3], lines[1::3], lines[2::3], strict=True)):
        value, error = values[at], same.json["noise_error"][at][1]
        ends = [at_zero - scale * (value - error), at_zero - scale * (value + error)]
        middle = bars[at]["x"] + bars[at]["width"] / 2
        assert stem == pytest.approx([middle, ends[0], middle, ends[1]], abs=1.5)
        for cap, end in ((low, ends[0]), (high, ends[1])):
            assert (cap[1], cap[3]) == pytest.approx((end, end), abs=1.5)
            assert cap[2] - cap[0] > 8 and (cap[0] + cap[2]) / 2 == pytest.approx(middle, abs=1.5)


def test_the_same_question_again_is_free_and_marked_so(analyst, server):
    page = analyst("ada")
    page.get_by_role("button", name="How many rows?").click()
    first = asked(page)
    expect(first).to_contain_text("paid ε = 0.2")
    shown = numbers(first)
    before = Ledger.open(server.home).head.count
    again = asked(page)
    expect(again).to_contain_text("free: asked before")
    assert shown and numbers(again) == shown
    assert Ledger.open(server.home).head.count == before
    past = page.locator(".d-card").filter(has=page.get_by_role("heading", name="Your questions"))
    expect(past.locator(".d-tag")).to_have_text(["free", "paid ε = 0.2"])
    assert len(server.client(server.token("analyst", "ada", trusted=True)).get("/v1/history").json["history"]) == 1


def test_who_runs_out_sees_why_and_what_would_pass_and_keeps_what_was_asked(analyst):
    page = analyst("poor")
    asked(page)  # at 0.2 of 0.3
    page.get_by_role("button", name="How many rows?").click()
    price(page, *["PageUp"] * 3)
    said = re.compile(r"More than is left of your allotment: ε ≤ 0\.\d+ would pass")
    expect(expected(page)).to_contain_text(said)
    refusal = asked(page)
    expect(refusal).to_have_attribute("role", "alert")
    expect(refusal).to_contain_text("No budget was spent")
    take = page.get_by_role("button", name=re.compile("^Take ε = .*which would pass"))
    for older in range(20, 40):  # each time what is left, until that is nothing that can be offered
        if take.count():
            take.click()
            expect(expected(page)).not_to_contain_text("More than is left")
            assert asked(page).get_attribute("role") == "region"
        write(page, f"SELECT COUNT(*) AS n FROM visits WHERE age > {older}")
        expect(expected(page)).to_contain_text("Expected: n ± ")
        if asked(page).get_attribute("role") == "alert" and not take.count():
            break
    else:
        pytest.fail("the allotment never ran out")
    expect(expected(page)).to_contain_text("More than is left of your allotment")
    page.get_by_role("button", name=re.compile("^Put back: SELECT region")).click()  # with what it was asked at
    expect(page.get_by_text("Price: ε = 0.2", exact=True)).to_be_visible()
    expect(expected(page)).to_contain_text("Known already: free.")
    expect(asked(page)).to_contain_text("free: asked before")


def test_a_question_that_cannot_be_answered_says_why_and_what_would_work(analyst):
    page = analyst("bob")
    write(page, "SELECT note FROM visits")
    expect(expected(page).locator(".d-warn")).to_be_visible()
    expect(ask_button(page)).to_be_disabled()
    expect(expected(page).get_by_text("This would work:")).to_be_visible()
    expected(page).get_by_role("button", name="How many rows?").click()
    expect(expected(page)).to_contain_text("Expected: n ± ")
    expect(ask_button(page)).to_be_enabled()


def test_who_asks_while_the_price_is_still_looked_up_asks_what_stands_there(analyst):
    page = analyst("bob")
    write(page, "SELECT note FROM visits")
    expect(ask_button(page)).to_be_disabled()
    write(page, "SELECT COUNT(*) AS at_once FROM visits")
    page.keyboard.press("Control+Enter")  # nothing is known of this question yet
    answer = page.get_by_role("region", name="Answer")
    expect(answer.get_by_role("columnheader")).to_contain_text("at_once")


def test_a_press_on_what_cannot_be_answered_says_why_and_leaves_no_older_answer(analyst):
    page = analyst("bob")
    expect(asked(page)).to_have_attribute("role", "region")
    write(page, "SELECT note FROM visits")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("No budget was spent")
    expect(page.get_by_role("region", name="Answer")).to_have_count(0)
    expect(ask_button(page)).to_be_disabled()


def test_the_whole_way_without_a_mouse_and_where_one_is_can_be_seen(opened, server):
    page = opened()
    page.goto(f"{server.url}/sign-in")
    expect(page.get_by_label("Token")).to_be_focused()
    page.keyboard.insert_text(server.token("analyst", "cleo", trusted=True))  # the field has the focus
    page.keyboard.press("Enter")
    ready(page)
    page.evaluate("document.activeElement.blur()")
    reached = []
    for _ in range(25):
        page.keyboard.press("Tab")
        at = page.evaluate(
            """() => { const each = document.activeElement;
                 const box = each.closest('.cm-editor, [role=slider]');
                 const seen = [each, box].filter(Boolean).some(
                   one => { const how = getComputedStyle(one);
                            return how.outlineStyle !== 'none' && how.outlineWidth !== '0px' });
                 const named = each.closest('[role=slider]') || each;
                 return [named.getAttribute('aria-label') || each.innerText.trim(), seen] }"""
        )
        reached.append(at[0].splitlines()[-1] if at[0] else "")
        assert at[1], f"nobody sees where the focus is: {reached}"
        if reached[-1] == "Ask" and "Price, epsilon" in reached:
            break
    wanted = ["Rows by region", "How many rows?", "Question in SQL", "Price, epsilon", "Ask"]
    assert [each for each in reached if each in wanted][-5:] == wanted  # "Ask" is the page's own link, too
    assert any("Sign out" in each for each in reached)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("Price: ε = 0.21")).to_be_visible()
    for _ in range(3):
        page.keyboard.press("Shift+Tab")  # past the switch, back in the editor
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Answer")).to_be_visible()
    expect(chart(page.get_by_role("region", name="Answer"))).to_be_visible()
    expect(page.get_by_role("region", name="Answer")).to_contain_text("paid ε = 0.21")


def test_an_analyst_may_choose_the_accuracy_and_pays_what_it_is_shown_to_cost(analyst, server):
    page = analyst("kit")
    page.get_by_role("button", name="How many rows?").click()
    page.get_by_role("button", name="Accuracy", exact=True).click()
    expect(expected(page)).to_contain_text("Nobody knows yet how large 'n' is")  # the owner declared all limits
    expected(page).get_by_role("button", name="Choose the price instead").click()
    price(page, *["ArrowRight"] * 10)
    expect(page.get_by_text("Price: ε = 0.37", exact=True)).to_be_visible()
    expect(asked(page)).to_contain_text("paid ε = 0.37")  # so that n is known to about 450 of 2,000
    page.get_by_role("button", name="Accuracy", exact=True).click()
    finer = page.get_by_role("slider", name="Accuracy, per cent")
    expect(finer).to_be_visible()
    expect(page.get_by_role("slider", name="Price, epsilon")).to_be_hidden()
    costs = re.compile(r"^Accuracy: ± 2% for ε = ([0-9.]+)$")
    fine = costs.match(page.get_by_text(costs).inner_text())
    pictured(page, "analyst-ask-accuracy-1440-light")
    slide(page, "Accuracy, per cent", *["ArrowLeft"] * 40, *["ArrowRight"] * 10)  # coarser, and cheaper
    costs = re.compile(r"^Accuracy: ± 13% for ε = ([0-9.]+)$")
    coarse = costs.match(page.get_by_text(costs).inner_text(timeout=60_000))
    assert fine and coarse and 2 * float(coarse[1]) < float(fine[1])
    expect(finer).to_have_attribute("aria-valuenow", "22")
    expect(expected(page)).not_to_contain_text("Known already")
    expect(asked(page)).to_contain_text("paid ε = ")
    expect(expected(page)).to_contain_text("Known already: free.")
    expect(page.get_by_text(costs)).to_be_visible()
    expect(asked(page)).to_contain_text("free: asked before")
    slide(page, "Accuracy, per cent", *["ArrowRight"] * 15)  # more than anybody pays who names no ceiling
    costs = re.compile(r"^Accuracy: ± 5% for ε = ([0-9.]+)$")
    (shown,) = costs.findall(page.get_by_text(costs).inner_text(timeout=60_000))
    expect(expected(page)).to_contain_text(f"ε = {shown} is more than a quarter of what you have left.")
    expect(expected(page)).not_to_contain_text("--epsilon")
    expect(asked(page)).to_contain_text(f"paid ε = {shown}")  # the page names the price that it shows
    page.get_by_role("button", name="Price", exact=True).click()
    expect(page.get_by_text("Price: ε = 0.37", exact=True)).to_be_visible()


@pytest.mark.parametrize("name", ["Price, epsilon", "Accuracy, per cent"])
def test_a_slider_ends_where_it_was_left_however_fast_its_keys_are_pressed(analyst, name):
    page = analyst("lea")
    page.get_by_role("button", name=name.partition(",")[0], exact=True).click()
    slider = page.get_by_role("slider", name=name)
    expect(slider).to_be_visible()
    start = int(slider.get_attribute("aria-valuenow"))
    for keys, place in (
        (["ArrowRight"] * 40, start + 40),
        (["ArrowLeft"] * 40, start),
        (["PageDown", "PageUp", "ArrowRight"] * 20, start + 20),
    ):
        slide(page, name, *keys)
        expect(slider).to_have_attribute("aria-valuenow", str(place))  # what the browser shows
        words = f"{price_at(place):g}" if name.startswith("Price") else accuracy_at(place)
        said = page.get_by_text(re.compile(rf"^(Price: ε =|Accuracy: ±) {re.escape(words)}( for |$)"))
        expect(said).to_be_visible()  # what the server would ask for


def test_who_moves_the_slider_after_the_press_is_not_charged_another_price(analyst):
    page = analyst("max")
    write(page, "SELECT COUNT(*) AS before FROM visits")
    page.keyboard.press("Control+Enter")
    price(page, *["ArrowRight"] * 20)  # while the price of what was asked is still looked up
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_contain_text("before", timeout=60_000)
    expect(answer).to_contain_text("paid ε = 0.2")
    expect(page.get_by_text("Price: ε = 0.68", exact=True)).to_be_visible()


def test_what_is_typed_is_completed_from_the_policy(analyst):
    page = analyst("dan")
    write(page, "")
    page.keyboard.type("SELECT AVG(amo")
    popup = page.locator(".cm-tooltip-autocomplete")
    expect(popup).to_be_visible()
    expect(popup.get_by_role("option").first).to_contain_text("amount")
    pictured(page, "analyst-ask-completion-1440-light")
    page.wait_for_timeout(100)  # it takes no key for a moment, lest one be taken that was meant for the text
    page.keyboard.press("Enter")
    page.keyboard.type(") AS a FROM vis")
    expect(popup.get_by_role("option").first).to_contain_text("visits")
    page.wait_for_timeout(100)
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_have_text("SELECT AVG(amount) AS a FROM visits")
    expect(expected(page)).to_contain_text("Expected: a ± ")


def test_completions_leave_the_button_free(analyst):
    """A list that lies over it takes the press: whoever typed a question to its end could not ask it."""
    page = analyst("dan")
    write(page, "")
    page.keyboard.type("SELECT COUNT(*) AS number_of_visits, AVG(amount) AS usual_amount FROM visits WHERE t")
    popup = page.locator(".cm-tooltip-autocomplete")
    expect(popup).to_be_visible()
    expect(popup.get_by_role("option").nth(8)).to_be_attached()  # more than are shown at once
    page.wait_for_timeout(100)  # until it has its place
    box, button = popup.bounding_box(), ask_button(page).bounding_box()
    assert box and button and box["y"] + box["height"] <= button["y"]


def test_an_answer_can_be_taken_away(analyst, server, tmp_path):
    page = analyst("fay")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    answer = asked(page)
    for form in ("CSV", "Parquet"):
        with page.expect_download() as download:
            answer.get_by_role("button", name=f"Download {form}").click()
        download.value.save_as(tmp_path / f"answer.{form.lower()}")
    assert (tmp_path / "answer.csv").read_text().startswith('"region","n","n_noise_error"')
    assert (tmp_path / "answer.parquet").read_bytes()[:4] == b"PAR1"
    for words, part in (("Python", "analyst.ask("), ("curl", "/v1/ask")):
        answer.get_by_role("button", name=f"Copy as {words}").click()
        expect(page.get_by_text(f"Copied as {words}.")).to_be_visible()
        # The browser writes it in its own time.
        page.wait_for_function("part => navigator.clipboard.readText().then(text => text.includes(part))", arg=part)
        assert "dalenius_" not in page.evaluate("navigator.clipboard.readText()")
    answer.get_by_text("± What does this mean?").click()
    expect(answer.get_by_text("made noisy on purpose")).to_be_visible()


# --- how a session begins and ends


def test_a_wrong_token_is_refused_and_told_nothing(opened, server):
    page = opened()
    page.goto(f"{server.url}/sign-in")
    page.get_by_label("Token").fill("dalenius_000000000000_" + "A" * 43)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("not a token that is valid now")
    page.goto(f"{server.url}/budget")
    assert "/sign-in" in page.url


def test_a_session_ends_with_its_token(analyst, server):
    page = analyst("gus")
    tokens = Tokens(Ledger.open(server.home))
    (mine,) = [each for each in tokens.all() if each.analyst == "gus"]
    tokens.revoke(mine.id)
    page.get_by_role("button", name="How many rows?").click()
    page.wait_for_url(re.compile("/sign-in"))
    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_a_session_ends_when_its_token_expires(opened, server):
    tokens = Tokens(Ledger.open(server.home))
    text, token = tokens.create(Role.ANALYST, "hal", expires=timedelta(seconds=7))
    page = opened()
    sign_in(page, server, text)
    ready(page)
    end = datetime.fromisoformat(token.expires)
    while datetime.now(UTC) <= end:
        page.wait_for_timeout(100)
    page.get_by_role("button", name="How many rows?").click()
    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_who_signs_out_is_out_in_every_tab_and_finds_no_way_back(analyst, server):
    page = analyst("ida")
    asked(page)
    shown = page.get_by_role("region", name="Answer").inner_text()
    other = page.context.new_page()
    other.goto(f"{server.url}/budget")
    third = page.context.new_page()
    third.goto(server.url)
    ready(third)
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    third.get_by_role("button", name="How many rows?").click()
    third.wait_for_url(re.compile("/sign-in"))
    other.reload()
    assert "/sign-in" in other.url
    page.go_back()
    page.wait_for_url(re.compile("/sign-in"))
    assert shown not in page.inner_text("body")
    page.goto(f"{server.url}/")
    assert "/sign-in" in page.url


def test_an_analyst_does_not_reach_the_owners_pages(analyst, server):
    page = analyst("joe")
    for path in ("/ledger", "/protect", "/report"):
        page.goto(f"{server.url}{path}")
        assert page.url == f"{server.url}/"


def test_how_a_question_was_understood_unfolds_below_its_price_and_stays_so_while_more_is_typed(analyst):
    page = analyst("lea", trusted=False)
    folded = page.get_by_role("button", name=re.compile("How this was understood"))
    told = page.locator(".d-understood")
    expect(told).not_to_be_visible()
    folded.click()
    expect(told).to_contain_text("4 groups, all public")
    write(page, "SELECT AVG(age) AS mean FROM visits WHERE age >= 65")
    expect(told).to_contain_text("AVG(age), from:")
    expect(told).to_be_visible()
    expect(told).to_contain_text("age >= 65")
    pictured(page, "understood", full_page=True)

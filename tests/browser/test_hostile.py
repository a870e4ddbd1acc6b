"""Names that are code, wherever an owner or the data may choose one: shown as text on every page, and nothing runs.

A dialog, a script's error or a request to elsewhere fails each of these tests (see `opened`).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect
from tests.browser.walking import asked, combinations, expected, fits, ready, sign_in, write
from tests.serving import serving

from dalenius.curator import Curator
from dalenius.ledger import Budget
from dalenius.tables.policy import literal

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(2)>"
BRACES = "{{7*7}} ${7*7} {{constructor.constructor('alert(3)')()}}"
QUOTES = '"\'`\\ onmouseover=alert(4) x="</style></textarea>'
LONG = "W" * 500
TURNED = "abc\u202edef\u2066ghi\u200f"
KEYS = [SCRIPT, IMAGE, BRACES, QUOTES, LONG, TURNED]
COLUMNS = [SCRIPT, IMAGE, BRACES, QUOTES, LONG[:200]]  # a name is printable, of at most 200 characters
FILE = "<img src=x onerror=alert(5)>.csv"
ANALYST = "<script>alert(6)</script> {{7*7}} \"'"
DATASET = "<img src=x onerror=alert(7)> {{7*7}} \"'"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A table whose columns, keys, data set and analyst are all code."""
    folder = tmp_path_factory.mktemp("hostile")
    columns = {name: [(at + place) % 7 for at in range(600)] for place, name in enumerate(COLUMNS)}
    keys = [KEYS[at % len(KEYS)] for at in range(600)]
    pq.write_table(
        pa.table({"id": [at % 200 for at in range(600)], **columns, IMAGE + "2": keys}), folder / "t.parquet"
    )
    (folder / FILE).write_text(f'id,"{IMAGE}"\n1,2\n')
    parts = ['[table]\nname = "t"\nsource = "t.parquet"\nunit = "id"\n']
    parts.append(f"[budget]\nepsilon = 20\ndelta = 1e-6\n[analysts.{literal(ANALYST)}]\nepsilon = 9\n")
    parts += [f'[columns.{literal(each)}]\ntype = "integer"\nbounds = [0, 7]\n' for each in COLUMNS]
    shown = ", ".join(literal(each) for each in KEYS)
    parts.append(f'[columns.{literal(IMAGE + "2")}]\ntype = "category"\nkeys = [{shown}]\n')
    parts.append("[contribution]\nrows = 5\ngroups = 5\n")
    (folder / "t.toml").write_text("".join(parts), encoding="utf-8")
    curator = Curator(folder / "home")
    curator.protect(folder / "t.toml")
    curator.ledger.set_budget(DATASET, Budget(1.0, 1e-6, unit=SCRIPT), IMAGE)  # no policy may name one so
    curator.ledger.set_allotment(DATASET, ANALYST, 0.8)
    curator.ledger.record("note", {"alarm": SCRIPT, "charge": 1, "dataset": DATASET})
    curator.ledger.database.close()
    return curator.home


@pytest.fixture(scope="module")
def server(home):
    with serving(home, "--data-dir", str(home.parent)) as found:
        yield found
        assert '"bug"' not in found.log_file.read_text()


def harmless(page, name):
    """Nothing of it became an element, nothing ran, nothing is wider than the window."""
    page.wait_for_load_state()
    for which in combinations(page):
        fits(page, f"{name} {which}")
    assert page.locator("img[src=x], [onerror], [onmouseover]").count() == 0
    assert page.evaluate("[...document.scripts].every(each => !/^alert/.test(each.textContent.trim()))")
    body = page.inner_text("body")
    assert "49 ${7*7}" not in body and "${49}" not in body
    return body


def shows(page, *texts):
    for each in texts:
        expect(page.get_by_text(each).first).to_be_visible()


def test_an_analyst_sees_names_that_are_code_as_text(opened, server):
    page = opened()
    sign_in(page, server, server.token("analyst", ANALYST, trusted=True))
    ready(page)
    shows(page, SCRIPT, BRACES, LONG[:200])
    assert ANALYST in harmless(page, "ask")
    key = f'"{IMAGE}2"'
    write(page, f"SELECT {key}, COUNT(*) AS people FROM t GROUP BY {key}")  # not the question that stood there before
    expect(expected(page)).to_contain_text("Expected: people ± ")
    answer = asked(page)
    cells = answer.get_by_role("cell")
    for each in (SCRIPT, IMAGE, BRACES, QUOTES):
        expect(cells.get_by_text(each, exact=True).or_(cells.filter(has_text=each)).first).to_be_visible()
    axis = " ".join(answer.locator("svg text").all_text_contents())
    assert "<img src=x" in axis and "<script>alert(1)" in axis
    assert "\u202e" not in axis and "\\u202e" in axis  # what would turn the text around is shown as what it is
    answer.get_by_role("img", name=re.compile("Bar chart")).hover()
    harmless(page, "answer")

    write(page, "")
    page.keyboard.type('SELECT "<i')
    page.keyboard.press("Control+Space")
    popup = page.locator(".cm-tooltip-autocomplete")
    expect(popup).to_be_visible()
    harmless(page, "completion")
    page.keyboard.press("Escape")

    as_name = '"' + SCRIPT + '"'
    write(page, f"SELECT AVG({as_name}) AS {as_name} FROM t")
    expect(expected(page)).to_contain_text(f"Expected: {SCRIPT[:20]}")
    answer = asked(page)
    expect(answer.get_by_role("columnheader")).to_contain_text(SCRIPT)
    past = page.locator(".d-card").filter(has=page.get_by_role("heading", name="Your questions"))
    expect(past).to_contain_text(SCRIPT)
    harmless(page, "answer with a hostile column")
    write(page, f"SELECT {IMAGE} FROM {SCRIPT}")
    expect(expected(page).locator(".d-warn")).to_be_visible()
    harmless(page, "refused")

    for path in ("/budget", "/about"):
        page.goto(f"{server.url}{path}")
        expect(page.get_by_role("heading", name=DATASET)).to_be_visible()
        harmless(page, path)


def test_an_owner_sees_names_that_are_code_as_text(opened, server):
    page = opened()
    sign_in(page, server, server.token("owner"))
    expect(page.get_by_role("heading", name="t", exact=True)).to_be_visible()
    shows(page, BRACES)
    harmless(page, "tables")
    page.get_by_role("button", name="History t").click()
    expect(page.get_by_role("heading", name="History of t")).to_be_visible()
    harmless(page, "history")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("tab", name="Analysts").click()
    shows(page, f"{ANALYST} · {DATASET}", f"{ANALYST} · t")
    page.get_by_label("Analyst's name").fill(IMAGE)
    page.get_by_label("Allotment, ε").fill("0.5")
    page.get_by_role("button", name="Invite").click()
    expect(page.get_by_role("heading", name=f"A token for {IMAGE}")).to_be_visible()
    harmless(page, "token")
    page.get_by_role("button", name="Done").click()
    expect(page.locator(".q-dialog")).to_have_count(0)
    page.get_by_role("tab", name="Alarms (1)").click()
    shows(page, SCRIPT)
    harmless(page, "alarms")
    page.get_by_role("tab", name="Protect a table").click()
    page.get_by_label("File in the data folder").click()
    page.get_by_role("option", name=FILE).click()
    expect(page.get_by_label(f"Low of {IMAGE}")).to_be_visible()
    harmless(page, "a file")
    page.get_by_label("File in the data folder").click()
    page.get_by_role("option", name="t.parquet").click()
    expect(page.get_by_label(f"Low of {SCRIPT}")).to_be_visible()
    harmless(page, "a form")
    page.get_by_label("Table name").fill(SCRIPT)
    expect(page.locator(".cm-content")).to_contain_text(SCRIPT)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_be_visible()
    harmless(page, "a refusal")
    for path in ("/budget", "/ledger", "/about", "/report"):
        page.goto(f"{server.url}{path}")
        expect(page.get_by_text(DATASET).first).to_be_visible()
        harmless(page, path)

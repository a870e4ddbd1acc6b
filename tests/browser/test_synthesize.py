"""Synthetic rows: columns are chosen, price and noise are seen, rows are made once and taken away for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect
from tests.browser.walking import looked_at, sign_in, slide
from tests.serving import Server, serving
from tests.unit.synthesis.made import curator_of, some_rows


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("synthesize")
    curator = curator_of(folder, some_rows(300), contribution="")  # so that limits and a number of rows are found
    curator.ledger.database.close()
    with serving(folder / "home", "--data-dir", str(folder)) as found:
        yield found


def test_rows_are_chosen_priced_made_and_taken_away(opened, maker: Server):
    page = opened()
    sign_in(page, maker, maker.token("analyst", "ana", trusted=True))
    page.get_by_role("link", name="Synthetic rows").click()
    said = page.locator("div[aria-live=polite].nicegui-column")
    expect(said).to_contain_text("Expected: about ")
    expect(page.get_by_text("note is left out. To have it, ask the owner to declare its keys.")).to_be_visible()
    page.get_by_role("checkbox", name="bmi").click()
    expect(page.get_by_text("left out", exact=True)).to_be_visible()
    wrong = looked_at(page, "analyst-synthesize")
    slide(page, "Price of all of it, epsilon", "PageUp")
    page.get_by_role("button", name="Make the rows").click()
    made = page.get_by_role("region", name="Synthetic rows")
    expect(made).to_be_visible(timeout=60_000)
    paid = made.get_by_text(re.compile("^paid ε = "))
    expect(paid).to_be_visible()
    expect(made.get_by_role("img", name="Bar chart of the synthetic rows by sex")).to_be_visible()
    expect(said).to_contain_text("Known already: free.")
    wrong += looked_at(page, "analyst-synthesize-made")
    made.get_by_label("Rows", exact=True).fill("250")
    taken = {}
    for form in ("CSV", "Parquet"):
        with page.expect_download() as download:
            made.get_by_role("button", name=f"Download {form}").click()
        taken[form] = Path(download.value.path())
        assert download.value.suggested_filename == f"people-synthetic.{form.lower()}"
    rows = pq.read_table(taken["Parquet"])
    names = ["person", "sex", "région", "age", "day", "at", "smoker", "wave", "country"]
    assert rows.num_rows == 250 and rows.column_names == names
    assert taken["CSV"].read_text().count("\n") == 251
    only = made.get_by_label("Only rows where (optional)")
    only.fill("agee > 50")
    made.get_by_role("button", name="Show such rows").click()
    expect(made.get_by_text("There is no column 'agee' here.")).to_be_visible()
    only.fill("age > 50 AND sex = 'f'")
    made.get_by_role("button", name="Show such rows").click()
    expect(made.get_by_text(re.compile(r"^About \d+ rows? of the table, by the model\.$"))).to_be_visible()
    expect(made.get_by_label("Rows", exact=True)).not_to_have_value("250")
    wrong += looked_at(page, "analyst-synthesize-where")
    made.get_by_label("Rows", exact=True).fill("30")
    with page.expect_download() as download:
        made.get_by_role("button", name="Download Parquet").click()
    such = pq.read_table(Path(download.value.path())).to_pylist()
    assert len(such) == 30 and all(each["age"] > 50 and each["sex"] == "f" for each in such)
    only.fill("")
    made.get_by_label("Rows", exact=True).fill("0")
    made.get_by_role("button", name="Download CSV").click()
    expect(page.get_by_text("Give a number of rows from 1 to 200,000.")).to_be_visible()
    page.get_by_role("button", name="Make the rows").click()
    expect(made.get_by_text("free: paid for before")).to_be_visible(timeout=60_000)
    assert not wrong


def test_what_the_rows_are_worth_is_compared_at_a_price_and_reported(opened, maker: Server):
    page = opened()
    sign_in(page, maker, maker.token("analyst", "bob", trusted=True))
    page.goto(f"{maker.url}/synthesize")
    slide(page, "Price of all of it, epsilon", *["PageUp"] * 5)
    page.get_by_role("button", name="Make the rows").click()
    worth = page.get_by_role("region", name="What the rows are worth")
    worth.get_by_role("button", name="Show the report").click(timeout=60_000)
    report = worth.locator(".report")
    expect(report).to_contain_text("It has not been compared", timeout=60_000)
    expect(report.get_by_role("img", name="Synthetic rows by sex")).to_be_visible()
    worth.get_by_label("Column that a classifier is to predict").click()
    page.get_by_role("option", name="région").click()
    slide(page, "Price of the comparison, epsilon", *["PageUp"] * 6)
    worth.get_by_role("button", name="Compare").click()
    expect(worth.get_by_text(re.compile(r"^Error of tables of two columns: 0\.\d+ ± 0\.\d+"))).to_be_visible(
        timeout=60_000
    )
    expect(worth.get_by_text(re.compile("^A classifier learned from the synthetic rows is right"))).to_be_visible()
    worth.get_by_role("button", name="Show the report").click()
    expect(report).to_contain_text("Predicting région", timeout=60_000)
    wrong = looked_at(page, "analyst-synthesize-report")
    with page.expect_download() as download:
        worth.get_by_role("button", name="Download the report").click()
    told = Path(download.value.path()).read_text()
    assert "How far it is from the real table" in told and "<script" not in told
    worth.get_by_role("button", name="Compare").click()
    expect(worth.get_by_text("free: paid for before")).to_be_visible(timeout=60_000)
    assert not wrong


def test_what_cannot_be_made_says_why(opened, maker: Server):
    page = opened()
    sign_in(page, maker, maker.token("analyst", "bob", trusted=True))
    page.get_by_role("link", name="Synthetic rows").click()
    make = page.get_by_role("button", name="Make the rows")
    expect(make).to_be_enabled()
    for name in ("sex", "région", "bmi", "age", "day", "at", "smoker", "wave", "country"):
        page.get_by_role("checkbox", name=name).click()
    expect(page.get_by_text("Choose at least one column.")).to_be_visible()
    expect(make).to_be_disabled()
    page.get_by_role("checkbox", name="sex").click()
    expect(make).to_be_enabled()
    page.get_by_label("Column to be predicted").click()
    page.get_by_role("option", name="age").click()
    expect(page.get_by_text("There is no column 'age' among those to be modelled.")).to_be_visible()
    expect(make).to_be_disabled()


def test_one_who_waits_is_told_how_long(opened, maker: Server):
    page = opened()
    sign_in(page, maker, maker.token("analyst", "bob"))
    page.goto(f"{maker.url}/synthesize")
    page.get_by_label("Method").click()
    page.get_by_role("option", name="histogram: each column by itself").click()
    expect(page.get_by_text("made by histogram")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Ready \d+ s after you ask"))).to_be_visible()
    page.get_by_role("button", name="Make the rows").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^Ready in \d+ s"))).to_be_visible()
    expect(page.get_by_role("region", name="Synthetic rows")).to_be_visible(timeout=120_000)


def test_who_may_not_ask_has_no_such_page(opened, maker: Server):
    page = opened()
    sign_in(page, maker, maker.token("auditor"))
    expect(page.get_by_role("link", name="Synthetic rows")).to_have_count(0)
    page.goto(f"{maker.url}/synthesize")
    expect(page.get_by_role("button", name="Make the rows")).to_have_count(0)


def test_the_owner_opens_rows_that_analysts_then_ask_for_nothing(opened, maker: Server):
    page = opened()
    sign_in(page, maker, maker.token("analyst", "bob", trusted=True))
    page.goto(f"{maker.url}/synthesize")
    page.get_by_role("button", name="Make the rows").click()
    expect(page.get_by_role("region", name="Synthetic rows")).to_be_visible(timeout=60_000)
    page = opened()
    sign_in(page, maker, maker.token("owner"))
    page.get_by_role("link", name="Synthetic rows").click()
    first = page.get_by_role("button", name=re.compile("^Open R")).first
    expect(first).to_be_visible()
    wrong = looked_at(page, "owner-synthetic")
    first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Name in questions")).to_have_value("people_synthetic")
    dialog.get_by_label("Name in questions").fill("people")
    dialog.get_by_role("button", name="Open", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("there is a protected table 'people'")
    dialog.get_by_label("Name in questions").fill("people_like")
    dialog.get_by_label("Rows").fill("300")
    dialog.get_by_role("button", name="Open", exact=True).click()
    expect(dialog.get_by_role("status")).to_contain_text("asks about people_like too", timeout=60_000)
    wrong += looked_at(page, "owner-synthetic-opened")
    with closing(maker.analyst("bob")) as analyst:
        answer = analyst.post("/v1/ask", {"sql": "SELECT COUNT(*) AS n FROM people_like"}).json
    assert answer["rows"] == [[300]] and answer["charge"]["epsilon"] == 0
    assert not wrong

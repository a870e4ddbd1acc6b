"""Publish rows: the loss at each k is drawn, publishing asks first, and all pages say from then on what it means."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.walking import looked_at, sign_in, slide
from tests.serving import Server, serving

from dalenius.curator import Curator

POLICY = """[table]
name = "people"
source = "people.csv"
unit = "name"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 1.0
[columns.age]
type = "integer"
bounds = [0, 120]
[contribution]
rows = 1
[anonymity]
identifiers = ["name"]
quasi = ["age", "sex"]
sensitive = ["diagnosis"]
hierarchies = { age = { width = 5, levels = 4 } }
"""


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("publish")
    draw = random.Random(3)
    rows = [f"p{n},{draw.randint(20, 79)},{draw.choice('FM')},{draw.choice(('flu', 'cold'))}" for n in range(400)]
    rows[-1] = rows[-1].replace("p399,", "p0,")  # who has two rows
    (folder / "people.csv").write_text("name,age,sex,diagnosis\n" + "\n".join(rows) + "\n")
    (folder / "people.toml").write_text(POLICY)
    curator = Curator(folder / "home")
    curator.protect(folder / "people.toml")
    curator.ledger.database.close()
    with serving(folder / "home") as found:
        yield found


def test_rows_are_looked_at_with_a_slider_and_published_only_when_it_is_meant(opened, publisher):
    page = opened()
    sign_in(page, publisher, publisher.token("owner"))
    page.get_by_role("link", name="Publish rows").click()
    expect(page.get_by_text("k = 10")).to_be_visible()
    page.get_by_role("button", name="Show what is lost").click()
    expect(page.get_by_role("img", name="Loss by k")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("At k = 10: NCP")).to_be_visible()
    expect(page.get_by_text("2 rows belong to somebody who has another: k counts rows, not people")).to_be_visible()
    expect(page.get_by_text("Names people, and is replaced by *: name.")).to_be_visible()
    wrong = looked_at(page, "owner-publish")
    slide(page, "k", "ArrowLeft")
    expect(page.get_by_text("At k = 7: NCP")).to_be_visible()
    page.get_by_role("button", name="Publish…").click()
    expect(page.get_by_role("button", name="Publish", exact=True)).to_be_disabled()
    said = page.get_by_role("dialog").get_by_text("2 rows belong to somebody who has another")
    expect(said).to_be_visible()
    assert not publisher.home.joinpath("publications").exists()
    page.get_by_role("checkbox", name="I understand that this cannot be undone").click()
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("heading", name="Published: 400 rows")).to_be_visible(timeout=60_000)
    wrong += looked_at(page, "owner-published")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    text = Path(download.value.path()).read_text()
    assert text.startswith("name,age,sex,diagnosis\n*,") and text.count("\n") == 401
    for name in ("Budget", "Ledger", "Report", "About this data"):
        page.get_by_role("link", name=name).click()
        expect(page.get_by_text("ε no longer bounds what can be learned").first).to_be_visible()
    assert not wrong


def test_other_models_are_asked_for_and_what_does_not_fit_is_said(opened, publisher):
    page = opened()
    sign_in(page, publisher, publisher.token("owner"))
    page.get_by_role("link", name="Publish rows").click()
    page.get_by_text("More models").click()
    beta = page.get_by_label("β: a class may say so much more")
    beta.fill("0.5")
    beta.blur()
    c = page.get_by_label("c: of recursive l-diversity")
    c.fill("3")
    c.blur()
    page.get_by_role("button", name="Show what is lost").click()
    expect(page.get_by_text("recursive diversity alone")).to_be_visible(timeout=60_000)
    c.fill("")
    c.blur()
    page.get_by_role("button", name="Show what is lost").click()
    expect(page.get_by_text("β-likeness of diagnosis")).to_be_visible(timeout=60_000)
    assert not looked_at(page, "owner-publish-models")


def test_an_analyst_is_told_as_well_and_cannot_publish(opened, publisher):
    page = opened()
    sign_in(page, publisher, publisher.token("analyst", "ana"))
    expect(page.get_by_role("link", name="Publish rows")).to_have_count(0)
    page.goto(f"{publisher.url}/publish")
    expect(page.get_by_role("button", name="Publish…")).to_have_count(0)
    page.goto(f"{publisher.url}/budget")
    expect(page.get_by_text("ε no longer bounds what can be learned").first).to_be_visible()

"""Models: a column is chosen, price and noise are seen, a model is trained once and taken away for nothing."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser.walking import looked_at, sign_in, slide
from tests.serving import Server, serving
from tests.unit.learning.taught import curator_of, some_people

from dalenius import load_model


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("train")
    curator = curator_of(folder, some_people(800))
    curator.ledger.database.close()
    with serving(folder / "home", "--data-dir", str(folder)) as found:
        yield found


def test_a_model_is_chosen_priced_trained_scored_and_taken_away(opened, teacher: Server, tmp_path: Path):
    page = opened()
    sign_in(page, teacher, teacher.token("analyst", "ana", trusted=True))
    page.get_by_role("link", name="Models").click()
    said = page.locator("div[aria-live=polite].nicegui-column")
    expect(said).to_contain_text(re.compile(r"Expected: about .* of accuracy lost to noise"))
    expect(page.get_by_text("note is left out. To have it, ask the owner to declare its keys.")).to_be_visible()
    page.get_by_role("checkbox", name="visits").click()
    page.get_by_label("Held out, to be scored").click()
    page.get_by_role("option", name="20% of the units").click()
    expect(said).to_contain_text("20.0% of all held out")
    wrong = looked_at(page, "analyst-train")
    page.get_by_role("button", name="Train the model").click()
    made = page.get_by_role("region", name="Model", exact=True)
    expect(made).to_be_visible(timeout=60_000)
    expect(made.get_by_text(re.compile("^paid ε = "))).to_be_visible()
    expect(made.get_by_role("img", name="Bar chart of the coefficients for high, with margins")).to_be_visible()
    expect(made.get_by_role("cell", name="grade = c")).to_be_visible()
    expect(said).to_contain_text("Known already: free.")
    with page.expect_download() as download:
        made.get_by_role("button", name="Download the model").click()
    assert download.value.suggested_filename == "income-model.zip"
    with zipfile.ZipFile(Path(download.value.path())) as packed:
        assert sorted(packed.namelist()) == ["card.json", "card.md", "weights.json"]
        packed.extractall(tmp_path / "model")
    found = load_model(tmp_path / "model", public_key=teacher.home / "keys" / "signing.pub")
    assert found.stored.held_out == 0.2 and "visits" not in found.feature_names_
    scoring = page.get_by_role("region", name="How well it predicts")
    slide(page, "Price of the score, epsilon", *["PageUp"] * 3)
    scoring.get_by_role("button", name="Score").click()
    expect(scoring.get_by_text(re.compile(r"^Right about income: 0\.\d+ ± 0\.\d+ of .* units held out"))).to_be_visible(
        timeout=60_000
    )
    wrong += looked_at(page, "analyst-train-made")
    page.get_by_role("button", name="Train the model").click()
    expect(made.get_by_text("free: paid for before")).to_be_visible(timeout=60_000)
    assert not wrong


def test_what_cannot_be_trained_says_why(opened, teacher: Server):
    page = opened()
    sign_in(page, teacher, teacher.token("analyst", "bob", trusted=True))
    page.goto(f"{teacher.url}/train")
    train = page.get_by_role("button", name="Train the model")
    expect(train).to_be_enabled()
    for name in ("age", "region", "smoker", "visits", "spent", "grade", "alone"):
        page.get_by_role("checkbox", name=name).click()
    expect(page.get_by_text("Choose at least one column to predict from.")).to_be_visible()
    expect(train).to_be_disabled()
    page.get_by_role("checkbox", name="age").click()
    expect(train).to_be_enabled()
    page.get_by_label("Model", exact=True).click()
    page.get_by_role("option", name="linear: a number").click()
    page.get_by_label("Column to predict").click()
    expect(page.get_by_role("option")).to_have_text(["age", "visits", "spent"])
    page.get_by_role("option", name="spent").click()
    expect(train).to_be_enabled()


def test_one_who_waits_is_told_how_long_and_in_how_many_steps_by_the_clock(opened, teacher: Server):
    page = opened()
    sign_in(page, teacher, teacher.token("analyst", "bob"))
    page.goto(f"{teacher.url}/train")
    expect(page.get_by_text(re.compile(r"^Ready \d+ s after you ask"))).to_be_visible()
    page.get_by_role("button", name="Train the model").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("region", name="Model", exact=True)).to_be_visible(timeout=120_000)


def test_who_may_not_ask_has_no_such_page(opened, teacher: Server):
    page = opened()
    sign_in(page, teacher, teacher.token("auditor"))
    expect(page.get_by_role("link", name="Models")).to_have_count(0)
    page.goto(f"{teacher.url}/train")
    expect(page.get_by_role("button", name="Train the model")).to_have_count(0)

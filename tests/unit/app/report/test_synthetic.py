"""The report on a synthetic table: names are only ever text, numbers are those that were released."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.seeded_noise import seeded_noise
from tests.unit.app.report.conftest import HOSTILE, Page
from tests.unit.synthesis.made import curator_of, some_rows

from dalenius.analyst import Analyst
from dalenius.app.report.synthetic import SyntheticReport, fit_of, gather, report_of, write_synthetic_report
from dalenius.app.report.synthetic_html import document, inside
from dalenius.synthesis.fitting import Fit
from dalenius.synthesis.release import SyntheticTable

COLUMNS = f"""
[columns.sex]
type = "category"
keys = ["m", "f", {json.dumps(HOSTILE)}]
[columns."région"]
type = "text"
keys = ["nörd", "süd", "北", "it's"]
[columns.age]
type = "integer"
bounds = [0, 100]
[columns.note]
type = "text"
"""


@pytest.fixture(scope="module")
def ana(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    with seeded_noise(6):
        yield curator_of(tmp_path_factory.mktemp("reported"), some_rows(200), columns=COLUMNS).analyst("ana")


@pytest.fixture(scope="module")
def made(ana: Analyst) -> SyntheticTable:
    return ana.synthesize("people", epsilon=8.0)


@pytest.fixture(scope="module")
def full(ana: Analyst, made: SyntheticTable) -> SyntheticReport:
    ana.compare_synthetic(made, epsilon=1.0)
    ana.compare_synthetic(made, epsilon=2.0, predict="sex")
    return report_of(ana, str(made.receipt["id"]))  # type: ignore[index]


def test_names_are_text_and_nothing_is_loaded(full: SyntheticReport):
    html = document(full)
    page = Page(html)
    assert "<script" not in html.lower() and HOSTILE in page.text
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    assert all(not name.startswith("on") and name not in {"src", "href"} for _, name, _ in page.attributes)
    assert "url(" not in html and "@import" not in html
    assert "no value" in page.text and "it's" in page.text


def test_it_can_be_read_by_everyone(full: SyntheticReport):
    page = Page(document(full))
    assert ("html", "lang", "en") in page.attributes and page.tags.count("h1") == 1 and page.tags.count("main") == 1
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.tags.count("caption") == page.tags.count("table") == 6
    told = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert told == [*(f"Synthetic rows by {name}" for name in ("sex", "région", "age")), "Errors of pairs of columns"]
    within = Page(inside(full))
    assert "h1" not in within.tags and "main" not in within.tags and within.tags.count("h2") == 5


def test_its_numbers_are_those_that_were_released(ana: Analyst, made: SyntheticTable, full: SyntheticReport):
    newest = ana.comparisons(made)[0]
    assert newest.prediction is not None and full.comparison == newest.to_dict()
    page = Page(document(full))
    for way in newest.ways:
        assert f"{max(0.0, way.error):.3f} ± {way.margin:.3f}" in page.text
    assert "Predicting sex" in page.text and "ε = 8, δ = 1e-06 for each person (add-remove)" in page.text
    assert "The comparison below cost more: ε = 2" in page.text
    assert f"{made.rows:,}" in page.text and "note: to have it, declare its keys" in Page(document(gather(made))).text
    assert all(sum(each.shares) == pytest.approx(1) for each in full.columns)
    assert json.loads(json.dumps(full.to_dict()))["fit"][0]["tables"] == 3


def test_without_a_comparison_it_says_what_one_costs(made: SyntheticTable):
    page = Page(document(gather(made)))
    assert "It has not been compared" in page.text and "--compare --epsilon 0.1" in page.text
    assert "Errors" not in page.text and page.tags.count("table") == 2


def test_a_model_that_misses_what_was_measured_is_told(made: SyntheticTable):
    """About 1 where it fits; a table that is ten deviations off stands out, by its columns' names."""
    fits = {each.columns: each for each in fit_of(made.stored)}
    assert all(0.2 < each.ratio < 3 for each in fits.values()) and fits[1].tables == 3
    off = Fit(("sex", "age"), 100, 2.0, 2.0 * 10)
    wrong = replace(made.stored, measured=(*made.stored.measured, off))
    found = {each.columns: each for each in fit_of(wrong)}[2]
    names, ratio = found.worst[0]
    assert names == ("sex", "age") and ratio == pytest.approx(10 / 0.798, rel=1e-2)
    older = replace(made, stored=replace(made.stored, measured=()))
    assert "It is not known: an earlier version made the model." in Page(document(gather(older))).text


def test_a_file_is_whole_and_of_the_form_that_its_ending_says(made: SyntheticTable, tmp_path: Path):
    write_synthetic_report(tmp_path / "a.html", made)
    write_synthetic_report(tmp_path / "a.json", made)
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "a.json").read_text())["columns"][1]["name"] == "région"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.html", "a.json"]

"""`dalenius synthesize`: every option, what is refused before the charge, and what scripts are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.serving import serving

MODELLED = ["age", "region", "amount", "when"]
WRITTEN = ["user_id", *MODELLED]
ABOUT = {
    *(
        "table",
        "method",
        "columns",
        "left_out",
        "rows",
        "rows_per_unit",
        "guarantee",
        "charge",
        "remaining",
        "free",
        "units",
        "facts",
    ),
    *("where", "receipt", "notes", "written", "output", "report", "public", "seconds"),
}


@pytest.fixture(autouse=True)
def same_noise():
    with seeded_noise(5):
        yield


def made(shop: Any, *words: Any) -> dict[str, Any]:
    """A table that is made, as scripts are told."""
    wanted = ("synthesize", "visits", "--epsilon", 0.2, "--method", "tree", "-o", "rows.csv", *words)
    found: dict[str, Any]
    code, found = shop.json(*wanted)
    assert code == 0, found
    return found


def test_rows_are_written_and_charged_once(shop):
    found = made(shop)
    assert set(found) == ABOUT
    assert found["columns"] == MODELLED and found["left_out"] == {"weight": "declare its bounds"}
    assert found["method"] == "tree" and not found["free"] and found["charge"]["epsilon"] == 0.2
    assert found["output"] == "rows.csv" and found["report"] is None and found["seconds"] > 0
    table = pc.read_csv("rows.csv")
    assert table.num_rows == found["written"] == found["rows"] and table.column_names == WRITTEN
    spent = shop.spent()
    again = made(shop, "--rows", 7)
    assert again["free"] and again["written"] == 7 and again["charge"]["epsilon"] == 0
    assert shop.spent() == spent
    assert pc.read_csv("rows.csv").num_rows == 7


def test_people_are_told_the_same(shop):
    code, out, err = shop.call("synthesize", "visits", "--epsilon", 0.2, "--method", "tree", "-o", "rows.parquet")
    out = " ".join(out.split())
    assert code == 0 and "A model of visits (4 columns, about" in out and "made by tree" in out
    assert "charged ε = 0.2" in out and "δ = 1e-06 for each user_id (add-remove)" in out and "left: you ε ≤ 0.9" in out
    assert "Left out: weight. To have it, ask the owner to declare its bounds." in out
    assert "in rows.parquet." in err and pq.read_table("rows.parquet").column_names == WRITTEN
    code, out, err = shop.call("synthesize", "visits", "--epsilon", 0.2, "--method", "tree", "-o", "r.csv", "--quiet")
    assert code == 0 and "free: paid for before" in out and err == ""


def test_columns_in_any_order_are_one_request_and_are_written_in_that_order(shop):
    first = made(shop, "--columns", "when,age")
    assert first["columns"] == ["when", "age"] and pc.read_csv("rows.csv").column_names == ["user_id", "when", "age"]
    again = made(shop, "--columns", " age , when ")
    assert again["free"] and again["columns"] == ["age", "when"]
    assert pc.read_csv("rows.csv").column_names == ["user_id", "age", "when"]


def test_a_seed_gives_the_same_rows(shop):
    made(shop, "--seed", 3, "--rows", 40)
    first = Path("rows.csv").read_bytes()
    made(shop, "--seed", 3, "--rows", 40)
    assert Path("rows.csv").read_bytes() == first
    made(shop, "--seed", 4, "--rows", 40)
    assert Path("rows.csv").read_bytes() != first


def test_rows_per_unit_target_and_method_make_other_requests(shop):
    words = ("synthesize", "visits", "--epsilon", 0.1, "-o", "rows.csv", "--columns", "age,region")
    code, found = shop.json(*words, "--rows-per-unit", 2)
    assert code == 0 and found["rows_per_unit"] == 2 and found["method"] == "adaptive"
    for more in (("--target", "region"), ("--method", "histogram"), ("--rows-per-unit", 3)):
        code, other = shop.json(*words, *more)
        assert code == 0 and not other["free"], more
    code, other = shop.json(*words, "--rows-per-unit", 99)
    assert code == 0 and other["rows_per_unit"] == 5
    assert other["notes"] == ["The table's own limit is lower than the one you gave, and holds: 5 rows of one unit."]


def test_a_time_that_is_too_short_is_refused_and_a_long_one_changes_nothing(shop):
    words = ("synthesize", "visits", "--epsilon", 0.1, "-o", "rows.csv", "--columns", "age,region", "--method", "tree")
    code, found = shop.json(*words, "--time", 500)
    assert code == 0 and not found["free"]
    code, found = shop.json(*words)
    assert code == 0 and found["free"]
    shop.refused("input.invalid", 2, *words[:3], 0.3, *words[4:], "--time", 0.001)


def test_a_dry_run_says_price_and_noise_and_charges_nothing(shop):
    spent = shop.spent()
    code, found = shop.json("synthesize", "visits", "--epsilon", 0.2, "--dry-run")
    assert code == 0 and found["epsilon"] == 0.2 and not found["known"] and found["release"] is None
    assert [each["name"] for each in found["columns"]] == MODELLED
    assert all(each["margin"] > 0 and each["values"] > 0 for each in found["columns"])
    code, out, _ = shop.call("synthesize", "visits", "--epsilon", 0.2, "--dry-run")
    assert code == 0 and "rows of each value" in out and "95% margin for the added noise" in out
    assert shop.spent() == spent and not list(Path().glob("*.csv"))


def test_a_comparison_is_charged_for_a_table_that_was_made(shop):
    words = ("synthesize", "visits", "--method", "tree", "--compare")
    before = made(shop)["receipt"]["id"]
    spent = shop.spent()
    code, expected = shop.json(*words, "--epsilon", 0.3, "--predict", "region", "--dry-run")
    assert code == 0 and expected["release"] == before and expected["predict"] == "region"
    assert set(expected["margins"]) == {"1", "2", "3"} and shop.spent() == spent
    code, out, _ = shop.call(*words, "--epsilon", 0.3, "--predict", "region", "--dry-run")
    assert code == 0 and "And how well region is predicted on real rows." in out and shop.spent() == spent
    code, found = shop.json(*words, "--epsilon", 0.3, "--predict", "region", "--report", "worth.json")
    assert code == 0 and found["charge"]["epsilon"] == 0.3 and found["release"] == before
    assert [each["columns"] for each in found["ways"]] == [1, 2, 3] and found["prediction"]["column"] == "region"
    assert expected["margins"]["2"] == pytest.approx(found["ways"][1]["margin"], rel=1e-6)
    report = json.loads(Path("worth.json").read_text())
    assert report["comparison"]["ways"] == found["ways"] and report["release"] == before
    code, out, err = shop.call(*words, "--epsilon", 0.3, "--predict", "region", "--report", "worth.html")
    assert code == 0 and "tables of" in out and "free: paid for before" in out and "Wrote worth.html." in err
    assert "A classifier learned from the synthetic rows is right about region in" in " ".join(out.split())
    assert "Predicting region" in Path("worth.html").read_text()
    made(shop, "--report", "both.json")  # what was compared before stands in it, for nothing
    assert json.loads(Path("both.json").read_text())["comparison"]["ways"] == found["ways"]


def test_rows_are_opened_as_a_public_table_whose_questions_are_free(shop):
    words = ("synthesize", "visits", "--epsilon", 0.2, "--method", "tree", "--rows", 30)
    code, out, err = shop.call(*words, "-o", "like.parquet", "--public", "visits_like")
    said = " ".join(err.split())
    assert code == 0 and "A model of visits" in out and "Opened as visits_like: who may ask about visits" in said
    assert 'keep it under [public] tables: visits_like = "' in said
    spent = shop.spent()
    code, found = shop.json("ask", "SELECT COUNT(*) AS n FROM visits_like")
    assert code == 0 and found["rows"] == [[30]] and shop.spent() == spent
    code, found = shop.json(*words, "-o", "more.parquet", "--public", "visits_like")
    assert code == 0 and found["free"] and found["public"] == "visits_like"
    for wrong in ("visits", "not a name"):  # before the charge
        shop.refused("policy.invalid", 2, "synthesize", "visits", "--epsilon", 0.3, "-o", "new.csv", "--public", wrong)
    assert not Path("new.csv").exists()


REFUSED = [
    ("input.invalid", 2, ()),  # no file
    ("input.invalid", 2, ("-o", "rows.txt")),
    ("source.unavailable", 5, ("-o", "nowhere/rows.csv")),
    ("input.invalid", 2, ("-o", "visits.parquet")),  # the protected table itself
    ("input.invalid", 2, ("-o", "rows.csv", "--report", "rows.csv")),
    ("input.invalid", 2, ("-o", "rows.csv", "--report", "worth.pdf")),
    ("policy.not-allowed", 3, ("-o", ".dalenius/rows.csv")),
    ("input.invalid", 2, ("-o", "rows.csv", "--rows", "-1")),
    ("input.invalid", 2, ("-o", "rows.csv", "--rows", "100000001")),
    ("input.invalid", 2, ("-o", "rows.csv", "--rows", "many")),
    ("input.invalid", 2, ("-o", "rows.csv", "--columns", "age,,region")),
    ("input.invalid", 2, ("-o", "rows.csv", "--columns", "age,age")),
    ("input.invalid", 2, ("-o", "rows.csv", "--columns", "weight")),
    ("policy.unknown-column", 3, ("-o", "rows.csv", "--columns", "nothing")),
    ("policy.not-allowed", 3, ("-o", "rows.csv", "--columns", "user_id")),
    ("input.invalid", 2, ("-o", "rows.csv", "--method", "magic")),
    ("input.invalid", 2, ("-o", "rows.csv", "--method", "tree", "--target", "age")),
    ("input.invalid", 2, ("-o", "rows.csv", "--target", "nothing")),
    ("input.invalid", 2, ("-o", "rows.csv", "--rows-per-unit", "0")),
    ("input.invalid", 2, ("-o", "rows.csv", "--predict", "age")),  # without --compare
    ("input.invalid", 2, ("-o", "rows.csv", "--compare")),
    ("input.invalid", 2, ("--compare", "--seed", "1")),
    ("input.invalid", 2, ("--compare", "--public", "like")),
    ("input.invalid", 2, ("--dry-run", "--public", "like")),  # without a file
    ("input.invalid", 2, ("--compare",)),  # nothing was made yet
    ("policy.not-allowed", 3, ("-o", "rows.csv", "--analyst", "eve")),  # who has no allotment
    ("budget.exhausted", 4, ("-o", "rows.csv", "--epsilon", "2")),
    ("input.invalid", 2, ("-o", "rows.csv", "--epsilon", "0")),
    ("input.invalid", 2, ("-o", "rows.csv", "--epsilon", "nan")),
    ("input.invalid", 2, ("-o", "rows.csv", "--epsilon", "1e-90")),
    ("input.invalid", 2, ("-o", "rows.csv", "--token-file", "token")),
]


@pytest.mark.parametrize(("code", "exit_code", "words"), REFUSED)
def test_what_is_refused_costs_nothing_and_writes_nothing(standing_shop, code, exit_code, words):
    price = () if "--epsilon" in words else ("--epsilon", "0.2")
    standing_shop.refused(code, exit_code, "synthesize", "visits", *price, *words)


def test_an_unknown_table_and_a_missing_price_are_refused(standing_shop):
    error = standing_shop.refused(
        "policy.unknown-table", 3, "synthesize", "vists", "--epsilon", "0.2", "-o", "rows.csv"
    )
    assert "Did you mean 'visits'?" in error["fix"]
    standing_shop.refused("input.invalid", 2, "synthesize", "visits", "-o", "rows.csv")


def test_a_file_that_fails_after_the_charge_says_what_it_cost(shop, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("pyarrow.csv.write_csv", full)
        code, found = shop.json("synthesize", "visits", "--epsilon", 0.2, "--method", "tree", "-o", "rows.csv")
    assert code == 5 and found["error"]["charge"] == {"epsilon": 0.2, "delta": 0.0}
    assert "is stored" in found["error"]["why"] and "it is free now" in found["error"]["fix"]
    assert made(shop)["free"]


def test_a_server_makes_compares_and_reports_too(shop):
    with serving(shop.folder / ".dalenius") as server:
        Path("token").write_text(server.token("analyst", "ana", trusted=True))
        Path("token").chmod(0o600)
        there = ("--server", server.url, "--token-file", "token")
        found = made(shop, *there, "--columns", "region,age", "--report", "worth.html")
        assert found["columns"] == ["region", "age"] and "Synthetic rows of visits" in Path("worth.html").read_text()
        compare = ("synthesize", "visits", "--method", "tree", "--columns", "region,age", "--compare", *there)
        code, compared = shop.json(*compare, "--epsilon", 0.2)
        assert code == 0 and len(compared["ways"]) == 2 and compared["charge"]["epsilon"] == 0.2
        assert made(shop, *there, "--columns", "age,region", "--report", "both.json")["free"]
        assert json.loads(Path("both.json").read_text())["comparison"]["ways"] == compared["ways"]


def test_rows_for_a_condition_are_free_and_one_that_cannot_be_read_is_refused_before_the_charge(shop):
    before = shop.spent()
    for where, exit_code, word in (("agee > 3", 3, "agee"), ("age > 'old'", 2, "holds whole numbers")):
        code, refused = shop.json(
            "synthesize", "visits", "--epsilon", 0.2, "--method", "tree", "-o", "rows.csv", "--where", where
        )
        assert code == exit_code and word in refused["error"]["message"] and refused["error"]["charge"]["epsilon"] == 0
        assert not Path("rows.csv").exists()
    assert shop.spent() == before
    where = "age >= 40 AND age < 60"
    found = made(shop, "--where", where, "--rows", 30)
    assert found["where"] == where and found["written"] == 30
    assert all(40 <= age < 60 for age in pc.read_csv("rows.csv")["age"].to_pylist())
    every = made(shop, "--where", where)
    assert every["free"] and 0 < every["written"] == pc.read_csv("rows.csv").num_rows < found["rows"]
    code, refused = shop.json("synthesize", "visits", "--epsilon", 0.2, "--compare", "--where", where)
    assert code == 2 and "--where" in refused["error"]["fix"]

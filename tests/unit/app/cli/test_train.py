"""`dalenius train`: every option, what is refused before the charge, and what scripts are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise
from tests.serving import serving

from dalenius import load_model

ABOUT = {
    *("table", "target", "classes", "features", "model", "method", "training", "held_out", "alone", "coefficients"),
    *("left_out", "guarantee", "charge", "remaining", "free", "receipt", "notes", "score", "output", "seconds"),
}
WORDS = ("train", "visits", "--target", "region", "--features", "age,amount", "--rows-per-unit", 1)


@pytest.fixture(autouse=True)
def same_noise():
    with seeded_noise(5):
        yield


def trained(shop: Any, *more: Any, epsilon: float = 0.3) -> dict[str, Any]:
    """A model that is trained, as scripts are told."""
    found: dict[str, Any]
    code, found = shop.json(*WORDS, "--epsilon", epsilon, "-o", "model", *more)
    assert code == 0, found
    return found


def public(file: str) -> None:
    """Rows that anybody may know."""
    rows = {"age": [20, 40, 60], "amount": [1.0, None, 99.0], "region": ["north", "south", "nowhere"]}
    pq.write_table(pa.table(rows), file)


def test_a_model_is_written_and_charged_once(shop):
    found = trained(shop)
    assert set(found) == ABOUT
    assert found["features"] == ["age", "amount"] and found["classes"] == ["north", "south", "[red]"]
    assert found["method"] == "sgd" and found["training"]["counted"] and not found["free"]
    assert found["charge"]["epsilon"] == 0.3 and found["output"] == "model" and found["score"] is None
    assert sorted(each.name for each in Path("model").iterdir()) == ["card.json", "card.md", "weights.json"]
    model = load_model("model", public_key=".dalenius/keys/signing.pub")
    assert set(model.predict([{"age": 30, "amount": 5.0}])) <= {"north", "south", "[red]"}
    spent = shop.spent()
    again = trained(shop)
    assert again["free"] and again["charge"]["epsilon"] == 0 and shop.spent() == spent
    assert again["coefficients"] == found["coefficients"]


def test_people_are_told_the_same(shop):
    code, out, err = shop.call(*WORDS, "--epsilon", 0.3, "-o", "model")
    out, err = " ".join(out.split()), " ".join(err.split())
    assert code == 0 and "A logistic model of region in visits, learned from about" in out
    assert "charged ε = 0.3" in out and "δ = 1e-06 for each user_id (add-remove)" in out and "±" in out
    assert "[red]" in out
    assert "Charged first, then the rows are read and learned from: " in err and "Wrote model" in err
    code, out, err = shop.call(*WORDS, "--epsilon", 0.3, "-o", "model", "--quiet")
    assert code == 0 and "free: paid for before" in out and err == ""


def test_columns_that_cannot_be_features_are_named(shop):
    code, out, _ = shop.call("train", "visits", "--target", "region", "--epsilon", 0.1, "--dry-run")
    assert code == 0 and "Left out: weight. To have it, ask the owner to declare its bounds." in " ".join(out.split())


def test_a_dry_run_says_steps_and_noise_and_charges_nothing(shop):
    spent = shop.spent()
    code, found = shop.json(*WORDS, "--epsilon", 0.3, "--dry-run")
    assert code == 0 and found["steps"] > 0 and found["people"] is None and found["loss"] is None
    code, out, _ = shop.call(*WORDS, "--epsilon", 0.3, "--dry-run")
    out = " ".join(out.split())
    assert code == 0 and "Method sgd: " in out and "each with all units" in out and "counted for a part" in out
    code, found = shop.json(*WORDS, "--epsilon", 0.3, "--dry-run", "--method", "output")
    assert code == 0 and found["steps"] == 0 and found["sigma"] is None
    assert shop.spent() == spent and not Path("model").exists()


def test_public_rows_score_it_for_nothing(shop):
    public("public.parquet")
    spent = trained(shop)["remaining"]
    found = trained(shop, "--test", "public.parquet")
    assert found["free"] and found["remaining"] == spent
    assert found["score"]["count"] == 2 and 0 <= found["score"]["accuracy"] <= 1 and found["score"]["margin"] == 0
    assert json.loads(Path("model/card.json").read_text())["score"] == found["score"]
    code, out, _ = shop.call(*WORDS, "--epsilon", 0.3, "-o", "model", "--test", "public.parquet")
    assert code == 0 and "Right about region: " in " ".join(out.split())


def test_a_protected_tables_file_is_no_public_one(shop):
    error = shop.refused("policy.not-allowed", 3, *WORDS, "--epsilon", 0.3, "-o", "model", "--test", "visits.parquet")
    assert "--held-out" in error["fix"]


def test_units_held_out_are_scored_for_a_price(shop):
    trained(shop, "--held-out", "30%")
    words = (*WORDS, "--held-out", "30%", "--score", "--epsilon", 0.2)
    spent = shop.spent()
    code, expected = shop.json(*words, "--dry-run")
    assert code == 0 and shop.spent() == spent and expected["margin"] is None
    code, found = shop.json(*words)
    assert code == 0 and found["charge"]["epsilon"] == 0.2 and found["score"]["of"] == "units held out"
    code, out, _ = shop.call(*words)
    assert code == 0 and "units held out" in out and "free: paid for before" in out
    code, _, err = shop.call(*words[:-3], "--epsilon", 0.2, "--score", "--features", "age")
    assert code == 2 and "no such model of yours" in err


def test_a_regression_says_how_far_it_is_off(shop):
    words = ("train", "visits", "--target", "amount", "--model", "linear", "--features", "age", "--rows-per-unit", 1)
    public("public.parquet")
    code, found = shop.json(*words, "--epsilon", 0.5, "-o", "model", "--test", "public.parquet")
    assert code == 0 and found["score"]["accuracy"] is None and found["score"]["error"] > 0
    assert found["classes"] == [] and found["model"] == "linear"


@pytest.mark.parametrize(
    ("code", "exit_code", "more"),
    [
        ("input.invalid", 2, ("--epsilon", 0.3)),  # where to?
        ("input.invalid", 2, ("--epsilon", 0.3, "--test", "p.parquet", "--dry-run")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--score")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--held-out", "80%")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--held-out", "x")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--features", "age,,when")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--features", "region")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--features", "weight")),
        ("policy.unknown-column", 3, ("--epsilon", 0.3, "-o", "model", "--features", "agee")),
        ("policy.not-allowed", 3, ("--epsilon", 0.3, "-o", "model", "--features", "user_id")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--model", "forest")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--method", "magic")),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", "model", "--batch", 50)),
        ("input.invalid", 2, ("--epsilon", 1e-9, "-o", "model")),
        ("budget.exhausted", 4, ("--epsilon", 2.0, "-o", "model", "--steps", 100)),
        ("input.invalid", 2, ("--epsilon", 0.3, "-o", ".")),
        ("source.unavailable", 5, ("--epsilon", 0.3, "-o", "visits.toml")),
        ("source.unavailable", 5, ("--epsilon", 0.3, "-o", "nowhere/model")),
        ("policy.not-allowed", 3, ("--epsilon", 0.3, "-o", ".dalenius/model")),
        ("source.unavailable", 5, ("--epsilon", 0.3, "-o", "model", "--test", "none.csv")),
    ],
)
def test_what_cannot_be_is_refused_before_the_charge(shop, code, exit_code, more):
    public("p.parquet")
    shop.refused(code, exit_code, *WORDS, *more)
    assert not Path("model").exists()


def test_a_server_trains_too(shop, monkeypatch):
    home = shop.folder / ".dalenius"
    with serving(home) as server:
        monkeypatch.setenv("DALENIUS_TOKEN", server.token("analyst", "ana", trusted=True))
        code, found = shop.json(*WORDS, "--epsilon", 0.3, "-o", "model", "--server", server.url)
        assert code == 0 and not found["free"], found
    monkeypatch.delenv("DALENIUS_TOKEN")
    assert trained(shop)["free"]
    load_model("model", public_key=home / "keys" / "signing.pub")

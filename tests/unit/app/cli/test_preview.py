"""`dalenius preview`: prices and errors for nothing, without the data."""

import sys
from io import BytesIO
from types import SimpleNamespace

import pytest

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_REGION = "SELECT region, COUNT(*) AS n, AVG(age) AS age FROM visits GROUP BY region"


def test_three_prices_by_default_and_one_when_given(standing_shop):
    before = standing_shop.spent()
    code, found = standing_shop.json("preview", BY_REGION, "--analyst", "ana")
    assert code == 0 and found["question"] == BY_REGION and found["columns"] == ["region", "n", "age"]
    assert [each["epsilon"] for each in found["choices"]] == [0.05, 0.2, 0.5] and found["groups"] == 3
    first, *_, last = (each["noise_error"] for each in found["choices"])
    assert first[0] is None and first[1] > last[1] > 0 and "plan" not in found
    _, found = standing_shop.json("preview", BY_REGION, "--epsilon", 0.3)
    assert [each["epsilon"] for each in found["choices"]] == [0.3]
    assert standing_shop.spent() == before


def test_what_is_previewed_is_what_is_paid_and_got(shop):
    _, found = shop.json("preview", COUNT, "--epsilon", 0.3, "--rows", 2, "--confidence", 0.9)
    _, release = shop.json("ask", COUNT, "--epsilon", 0.3, "--rows", 2, "--confidence", 0.9)
    (choice,) = found["choices"]
    assert choice["noise_error"] == release["noise_error"][0] and choice["rho"] == release["charge"]["rho"]


def test_people_see_errors_what_they_rest_on_and_what_is_left(standing_shop):
    code, out, err = standing_shop.call("preview", BY_REGION)
    words = " ".join(out.split())
    assert code == 0 and words.count("±") == 6 and "Nobody has counted the rows" in words and "1,000 rows" in words
    assert "95% of answers" in words and "left: you ε ≤ 1, data set ε ≤ 3" in words and "ana" in err
    assert "more than is left" in standing_shop.call("preview", COUNT, "--epsilon", 2)[1]
    assert "more than is left" not in out


def test_the_plan_shows_sensitivity_and_price_of_each_step(standing_shop):
    code, out, _ = standing_shop.call("preview", BY_REGION, "--epsilon", 0.3, "--plan")
    assert code == 0 and out.count("Δ2² =") == 3 and out.count("of the price") == 3 and "charged before" in out
    _, found = standing_shop.json("preview", BY_REGION, "--epsilon", 0.3, "--plan")
    assert found["plan"].splitlines()[0] in out


def test_it_never_touches_the_data(shop):
    (shop.folder / "visits.parquet").unlink()
    assert shop.json("preview", BY_REGION)[0] == 0


def test_a_question_may_come_from_stdin_or_a_file(shop, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=BytesIO(COUNT.encode())))
    (shop.folder / "count.sql").write_text(COUNT)
    assert shop.json("preview", "-")[1] == shop.json("preview", "@count.sql")[1]


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("SELECT COUNT(* FROM visits",), "sql.syntax", 2),
        (("SELECT FIRST(age) FROM visits",), "sql.refused", 3),
        (("SELECT COUNT(*) FROM vists",), "policy.unknown-table", 3),
        ((COUNT, "--analyst", "eve"), "policy.not-allowed", 3),
        ((COUNT, "--epsilon", "-1"), "input.invalid", 2),
        ((COUNT, "--delta", "2"), "input.invalid", 2),
        ((COUNT, "--total", "amount"), "input.invalid", 2),
        ((COUNT, "--confidence", "0.2"), "input.invalid", 2),
        ((), "input.invalid", 2),
    ],
)
def test_what_cannot_be_asked_cannot_be_previewed(standing_shop, words, code, exit_code):
    standing_shop.refused(code, exit_code, "preview", *words)

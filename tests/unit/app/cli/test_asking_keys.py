"""`ask` and `preview` where groups have to be found."""

import json

BY_WEIGHT = "SELECT weight, COUNT(*) AS n FROM visits GROUP BY weight"
BY_CLASS = "SELECT FLOOR(weight / 100) AS k, COUNT(*) AS n FROM visits GROUP BY k"
WHO = ("--analyst", "ana")


def test_groups_that_many_share_are_answered_and_the_delta_is_told(shop):
    code, found = shop.json("ask", BY_CLASS, *WHO, "--epsilon", 0.8, "--delta", "1e-7")
    assert code == 0 and found["charge"]["delta"] == 1e-7
    # 199 of 200 people; about 40 are needed and the noise is about 8. The one beyond is a canary.
    assert [row[0] for row in found["rows"]] == [0] and found["keys"] == [True, False]
    code, out, _ = shop.call("ask", BY_CLASS, *WHO, "--epsilon", 0.8, "--delta", "1e-7")
    assert code == 0 and "free: asked before" in out and "Keys were found privately" in " ".join(out.split())


def test_groups_of_few_are_not_and_the_answer_says_so(shop):
    code, found = shop.json("ask", BY_WEIGHT, *WHO, "--epsilon", 0.3)
    assert code == 0 and found["rows"] == [] and found["notes"][0].startswith("No key was found")
    _, out, _ = shop.call("ask", BY_WEIGHT, *WHO, "--epsilon", 0.3)
    assert "no rows" in out and "No key was found" in out


def test_a_least_number_of_units_is_an_option(shop):
    code, found = shop.json("ask", BY_CLASS, *WHO, "--epsilon", 0.8, "--units", 1000)
    assert code == 0 and found["rows"] == []
    error = shop.refused("input.invalid", 2, "ask", BY_CLASS, *WHO, "--epsilon", 0.1, "--units", -1)
    assert "units" in error["message"]


def test_a_preview_says_how_groups_are_found(shop):
    before = shop.spent()
    code, found = shop.json("preview", BY_CLASS, *WHO, "--delta", "2e-7", "--plan")
    assert code == 0 and found["groups"] is None and found["delta"] == 2e-7
    assert "found privately" in found["plan"] and "δ = 2e-07" in found["plan"]
    code, out, _ = shop.call("preview", BY_CLASS, *WHO, "--delta", "2e-7", "--plan", "--units", 50)
    words = " ".join(out.split())
    assert code == 0 and "groups found privately, δ = 2e-07" in words and "noisy weight is at least" in words
    assert shop.spent() == before


def test_without_a_price_the_choices_come_with_their_delta(shop):
    code, found = shop.json("ask", BY_CLASS, *WHO)
    assert code == 2 and found["preview"]["groups"] is None and "groups found privately" in found["error"]["why"]


def test_public_groups_still_have_their_number(shop):
    code, found = shop.json("preview", "SELECT region, COUNT(*) FROM visits GROUP BY region", *WHO)
    assert code == 0 and found["groups"] == 3 and found["delta"] == 0
    assert json.dumps(found)

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


def test_a_preview_without_a_price_says_what_each_takes(shop):
    code, found = shop.json("preview", BY_CLASS, *WHO)
    taken = [each["delta"] for each in found["choices"]]
    assert code == 0 and taken == [2.5e-10, 1.56e-9, 8.85e-9] and found["delta"] == taken[0]
    _, out, _ = shop.call("preview", BY_CLASS, *WHO)
    assert "groups found privately, δ = 2.5e-10 to 8.85e-09" in " ".join(out.split())
    code, one = shop.json("ask", BY_CLASS, *WHO, "--epsilon", 0.5)
    assert code == 0 and one["charge"]["delta"] == 8.85e-9


def test_an_owner_who_gives_finding_keys_more_of_delta(empty_shop):
    """Checked, compared, protected, asked; and what was parted once is not parted anew."""
    shop = empty_shop
    other = shop.policy.replace("delta = 1e-6", "delta = 1e-6\nselection = 0.8")
    shop.lay(policy=other)
    code, found = shop.json("policy", "check", "visits.toml")
    assert code == 0 and found["policy"]["budget"]["selection"] == 0.8
    code, found = shop.json("budget")
    whole = found["datasets"]["visits"]["dataset"]
    assert whole["selection"] == 0.8 and 7.99e-7 < whole["remaining"]["delta"] <= 8e-7
    code, found = shop.json("ask", BY_CLASS, *WHO, "--epsilon", 0.8, "--delta", "7e-7")
    assert code == 0 and [row[0] for row in found["rows"]] == [0]
    assert shop.refused("budget.exhausted", 4, "ask", BY_WEIGHT, *WHO, "--epsilon", 0.1, "--delta", "2e-7")
    for part in ("selection = 0.9", ""):
        (shop.folder / "visits.toml").write_text(other.replace("selection = 0.8", part))
        code, found = shop.json("policy", "diff", "visits.toml")
        assert code == 0 and "budget.selection" in json.dumps(found)
        error = shop.refused("policy.not-allowed", 3, "protect", "visits.toml", "--yes")
        assert "selection" in error["message"] and "promised under it" in error["why"]
    assert shop.json("ledger", "verify")[0] == 0


def test_public_groups_still_have_their_number(shop):
    code, found = shop.json("preview", "SELECT region, COUNT(*) FROM visits GROUP BY region", *WHO)
    assert code == 0 and found["groups"] == 3 and found["delta"] == 0
    assert json.dumps(found)

"""`dalenius explain`: what a question was understood to mean, for nothing, without the data."""

BY_REGION = "SELECT region, AVG(age) AS age FROM visits WHERE age >= 18 GROUP BY region"


def test_it_tells_what_was_understood_and_spends_nothing(standing_shop):
    before = standing_shop.spent()
    code, out, _ = standing_shop.call("explain", BY_REGION, "--epsilon", 0.2, "--rows", 2)
    assert code == 0 and "age >= 18" in out and "3 groups, all public" in out and "AVG(age), from:" in out
    assert "at most 2 rows" in out and "ε = 0.2 for the whole question" in out
    assert standing_shop.spent() == before


def test_json_is_one_stable_object(standing_shop):
    code, found = standing_shop.json("explain", BY_REGION)
    assert code == 0 and list(found) == ["question", "columns", "parts", "after", "public", "price", "notes"]
    assert list(found["parts"][0]) == ["unit", "tables", "rows", "groups", "limits", "measures"]
    assert found["columns"] == ["region", "age"] and found["parts"][0]["rows"] == ["age >= 18"]


def test_it_never_touches_the_data(shop):
    (shop.folder / "visits.parquet").unlink()
    assert shop.call("explain", BY_REGION)[0] == 0


def test_a_refusal_is_that_of_preview(standing_shop):
    wrong = "SELECT FIRST(age) FROM visits"
    asked, previewed = standing_shop.json("explain", wrong), standing_shop.json("preview", wrong)
    assert asked == previewed and asked[0] == 3


def test_a_preview_with_its_plan_has_the_explanation_too(standing_shop):
    _, found = standing_shop.json("preview", BY_REGION, "--epsilon", 0.3, "--plan")
    _, told = standing_shop.json("explain", BY_REGION, "--epsilon", 0.3)
    assert found["explanation"] == {name: told[name] for name in found["explanation"]}
    assert "Rows that count" in standing_shop.call("preview", BY_REGION, "--plan")[1]

"""A workload as a release: one price, one charge, one answer for each question; refused as a whole, for nothing."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.queries.workloads.tables import Protected, rows_of

from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.errors import BudgetError, DaleniusError, InputError, QuestionRefusedError
from dalenius.measuring.plan import Limits
from dalenius.measuring.strategies.strategy import Strategy
from dalenius.queries.workloads.kind import plan_asked
from dalenius.queries.workloads.release import WorkloadPreview, WorkloadRelease
from dalenius.queries.workloads.request import WorkloadAsk
from dalenius.releasing.stored import read_release

FOUR = (
    "SELECT COUNT(*) AS n FROM people WHERE sex = 'm'",
    "SELECT COUNT(*) AS n FROM people WHERE sex = 'f'",
    "SELECT COUNT(*) AS n FROM people WHERE sex = 'm' AND bmi < 25",
    "SELECT COUNT(*) AS n FROM people WHERE sex = 'f' AND bmi < 25",
)
MIXED = (
    *FOUR,
    "SELECT sex, AVG(bmi) AS b, COUNT(*) AS n, SUM(pay) AS s FROM people GROUP BY sex ORDER BY n DESC",
    "SELECT region, COUNT(*) AS n FROM people GROUP BY region HAVING COUNT(*) > 20",
    "SELECT COUNT(DISTINCT person) AS u FROM people",
    "SELECT 2 * COUNT(*) FILTER (WHERE smoker) AS twice, COUNT(*) AS n FROM people",
)


@pytest.fixture(scope="module")
def curator(protect: Protected) -> Curator:
    return protect()


@pytest.fixture(scope="module")
def pure(protect: Protected) -> Curator:
    return protect("pure", rows=1, table=_one_each())


def _one_each() -> pa.Table:
    size = 400
    sexes = ["m", "f"] * (size // 2)
    return pa.table(
        {
            "person": list(range(size)),
            "sex": sexes,
            "region": ["north"] * size,
            "bmi": [20.0 + 10 * (at % 4 > 1) for at in range(size)],
            "pay": [1.0] * size,
            "age": [30] * size,
            "day": [date(2025, 5, 1)] * size,
            "smoker": [True] * size,
            "note": ["abc"] * size,
        }
    )


def spent(curator: Curator) -> float:
    return float(sum(each.data["epsilon"] for each in curator.ledger.records(("charge",))))


def test_it_is_charged_once_and_each_question_has_its_release(curator):
    ana, before = curator.analyst("ana"), spent(curator)
    found = ana.ask_many(MIXED, epsilon=2.0)
    assert spent(curator) == before + 2.0
    assert found.charge["epsilon"] == 2.0 and not found.free
    assert len(found) == len(MIXED)
    for question, release in zip(MIXED, found.releases, strict=True):
        assert release.question == question and release.receipt == found.receipt
        noisy = [place for place, key in enumerate(release.keys) if not key]
        assert all(row[place] is not None for row in release.noise_error for place in noisy)
    assert [row[0] for row in found[5].rows] == [row[0] for row in found[5].rows if row[1] > 20]
    assert found[7].rows[0][0] == pytest.approx(2 * round(found[7].rows[0][0] / 2))


def test_answers_fit_one_another(curator):
    found = curator.analyst("ana").ask_many(MIXED, epsilon=2.0)
    by_sex = {row[0]: row[2] for row in found[4].rows}
    assert (by_sex["m"], by_sex["f"]) == (found[0].value, found[1].value)


def test_questions_that_are_measured_alike_show_what_each_asks_for(curator):
    """They got the columns of the first of them, and its errors."""
    asked = [
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
        "SELECT COUNT(*) * 1000 AS thousands, sex FROM people GROUP BY sex ORDER BY thousands DESC LIMIT 1",
        "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) < -1000000",
    ]
    found = curator.analyst("ana").ask_many(asked, epsilon=0.51)
    plain, most, none = found.releases
    assert most.columns == ("thousands", "sex") and len(most.rows) == 1 and none.rows == ()
    assert most.rows[0][0] == 1000 * max(row[1] for row in plain.rows)
    (errors, times, _) = (each.noise_error for each in found.expected.questions)
    assert times[0] == pytest.approx(1000 * errors[1])


def test_what_could_not_be_read_is_refused_before_it_is_charged(curator, monkeypatch):
    before = spent(curator)
    for each in Strategy.__subclasses__():
        monkeypatch.setattr(each, "determines", lambda *_: False)
    with pytest.raises(QuestionRefusedError, match="does not follow"):
        curator.analyst("ana").ask_many(["SELECT COUNT(*) AS n FROM people WHERE age < 17"], epsilon=0.52)
    assert spent(curator) == before


def test_the_same_again_is_free_in_any_order_and_at_a_lower_price(curator):
    ana = curator.analyst("ana")
    first = ana.ask_many(MIXED, epsilon=2.0)
    before = spent(curator)
    again = ana.ask_many(MIXED[::-1], epsilon=1.0)
    assert again.free and spent(curator) == before
    assert [each.rows for each in again.releases[::-1]] == [each.rows for each in first.releases]
    assert ana.preview_many(MIXED, epsilon=2.0).known and not ana.preview_many(MIXED, epsilon=3.0).known
    assert not curator.analyst("bob").preview_many(MIXED, epsilon=2.0).known


def test_what_is_stored_is_read_without_the_questions(curator):
    found = curator.analyst("ana").ask_many(MIXED, epsilon=2.0)
    stored = read_release(curator.ledger, found.receipt["id"], "ana")
    assert stored["kind"] == "workload"
    text = json.dumps(stored["content"])
    assert "people" not in text and "SELECT" not in text
    assert {"parts", "questions", "beside", "epsilon"} <= set(stored["content"])


def test_the_four_counts_of_the_example_cost_a_tenth_together(pure):
    """Total squared error: 12/ε² through the cells, 128/ε² one by one (a little less: the noise is discrete)."""
    for epsilon in (0.1, 1.0):
        found = pure.analyst("ana").preview_many(FOUR, epsilon=epsilon)
        (rows,) = found.expected.parts
        assert rows.strategy == "disjoint cells" and rows.cells == 4
        assert rows.squared_error == pytest.approx(12 / epsilon**2, rel=1e-3)
        assert rows.one_by_one == pytest.approx(128 / epsilon**2, rel=1e-2)


def test_weights_make_a_question_more_exact(curator):
    ana = curator.analyst("ana")
    asked = ["SELECT COUNT(*) AS n FROM people", "SELECT age, COUNT(*) AS n FROM people GROUP BY age"]
    plain, weighed = (ana.preview_many(asked, epsilon=1.0, weights=each).expected for each in ((), (100, 1)))
    assert weighed.questions[0].noise_error[0] < 0.9 * plain.questions[0].noise_error[0]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("SELECT COUNT(*) FROM nowhere", "Question 2: "),
        ("SELECT nothing FROM people", "Question 2: "),
        ("SELECT COUNT(*) FROM people WHERE", "Question 2: "),
        ("DROP TABLE people", "Question 2: "),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) FROM people", "Question 2: It has a price"),
        (
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(max_rows_contributed = 2) COUNT(*) FROM people",
            "Question 2: It has limits of its own",
        ),
        ("SELECT n + 1 FROM (SELECT COUNT(*) AS n FROM people)", "Question 2: It computes with released values"),
    ],
)
def test_one_refused_question_refuses_all_for_nothing(curator, bad, message):
    before = spent(curator)
    for ask in (curator.analyst("ana").ask_many, curator.analyst("ana").preview_many):
        with pytest.raises(DaleniusError) as raised:
            ask([FOUR[0], bad, FOUR[1]], epsilon=1.0)
        assert raised.value.message.startswith(message)
        assert raised.value.charge.epsilon == 0
    assert spent(curator) == before


def test_the_line_of_the_file_is_told(curator):
    with pytest.raises(DaleniusError) as raised:
        curator.analyst("ana").ask_many(f"{FOUR[0]};\n\nSELECT COUNT(*)\nFROM nowhere;", epsilon=1.0)
    assert raised.value.message.startswith("Question 2 (line 3): ")


def test_a_price_beyond_the_budget_is_refused_for_nothing(curator):
    before = spent(curator)
    with pytest.raises(BudgetError):
        curator.analyst("ana").ask_many(FOUR, epsilon=5000.0)
    with pytest.raises(InputError):
        curator.analyst("ana").obtain("workload", {"questions": list(FOUR)})
    assert spent(curator) == before


def test_a_workload_that_takes_too_long_to_plan_is_refused_for_nothing(curator, monkeypatch):
    monkeypatch.setattr("dalenius.queries.workloads.kind._PLANNING", 0.0)
    before = spent(curator)
    with pytest.raises(QuestionRefusedError, match="too long to plan"):
        curator.analyst("ana").ask_many(FOUR, epsilon=0.3)
    assert spent(curator) == before


def test_a_limit_of_groups_is_said_not_to_hold(protect):
    curator = protect(more_limits="groups = 2")
    found = curator.analyst("ana").ask_many(["SELECT region, COUNT(*) AS n FROM people GROUP BY region"], epsilon=1.0)
    assert any("limit of groups does not hold" in each for each in found[0].notes)


def test_questions_about_two_data_sets_are_refused(protect, tmp_path):
    curator = protect()
    other = Path(tmp_path) / "other.parquet"
    pq.write_table(pa.table({"person": [1, 2], "age": [3, 4]}), other)
    policy = """[table]
name = "other"
source = "other.parquet"
unit = "person"
[budget]
epsilon = 3.0
delta = 1e-6
[analysts.ana]
epsilon = 3.0
[columns.age]
type = "integer"
bounds = [0, 9]
[contribution]
rows = 1
"""
    (Path(tmp_path) / "other.toml").write_text(policy)
    curator.protect(Path(tmp_path) / "other.toml")
    before = spent(curator)
    with pytest.raises(InputError, match="Question 2"):
        curator.analyst("ana").ask_many([FOUR[0], "SELECT COUNT(*) FROM other"], epsilon=1.0)
    assert spent(curator) == before


def test_too_many_cells_are_asked_beside_one_another(curator, monkeypatch):
    monkeypatch.setattr("dalenius.queries.workloads.cells.MOST_CELLS", 3)
    found = curator.analyst("ana").ask_many(FOUR, epsilon=1.5)
    assert not found.expected.parts and all(each.beside for each in found.expected.questions)
    assert all(isinstance(each.value, int) for each in found.releases)


def test_previews_and_releases_come_back_from_json(curator):
    ana = curator.analyst("ana")
    preview = ana.preview_many(MIXED, epsilon=2.0)
    assert WorkloadPreview.from_dict(json.loads(json.dumps(preview.to_dict()))) == preview
    found = ana.ask_many(MIXED, epsilon=2.0)
    again = WorkloadRelease.from_dict(json.loads(json.dumps(found.to_dict())))
    assert str(again) == str(found) and again.expected == found.expected


@pytest.mark.parametrize(("accounting", "neighbors"), [("zcdp", "substitute"), ("pure", "add-remove")])
def test_the_event_costs_what_was_typed(protect, accounting, neighbors):
    """The ledger compares; here: not more, and hardly less."""
    curator = protect(accounting, neighbors=neighbors)
    ana = curator.analyst("ana")
    ana.ask_many(MIXED, epsilon=1.0)
    left = ana.budget()["people"].remaining_epsilon
    assert left == pytest.approx(899) if accounting == "pure" else left > 899


def test_a_signed_sum_or_strategy_doubles_what_an_exchange_changes(protect):
    curator = protect(neighbors="substitute")
    asker = curator.analyst("ana")._asker
    asked = WorkloadAsk.of({"questions": ["SELECT SUM(pay) FROM people", "SELECT COUNT(*) FROM people"], "epsilon": 1})
    from dalenius.accounting.neighbors import Neighbors

    rows, pay = plan_asked(asker, asked).plan.parts
    for part, factor in ((rows, 2), (pay, 4)):
        apart, same = (part.change("l2", each) for each in (Neighbors.SUBSTITUTE, Neighbors.ADD_REMOVE))
        assert (apart, same) == (factor * part.measure.limit**2, part.measure.limit**2)
        assert part.change("l1", Neighbors.SUBSTITUTE) == 2 * part.change("l1", Neighbors.ADD_REMOVE)


def test_a_workload_by_command(curator, tmp_path, capsys):
    file, folder = tmp_path / "four.sql", tmp_path / "answers"
    file.write_text(";\n".join(FOUR) + ";\n")
    home = ["--home", str(curator.home)]

    def called(*arguments: str) -> Any:
        code = run(build(), ["workload", *arguments, *home])
        out = capsys.readouterr()
        return code, out.out, out.err

    code, out, _ = called("preview", str(file), "--epsilon", "1", "--analyst", "ana")
    assert code == 0 and "one by one" in out and "Measured: rows" in out
    code, out, _ = called("preview", str(file), "--epsilon", "1", "--analyst", "ana", "--json", "--weight", "2=3")
    assert code == 0 and len(json.loads(out)["questions"]) == 4
    code, out, _ = called("ask", str(file), "--epsilon", "1", "--analyst", "ana", "--json", "-o", str(folder))
    found = json.loads(out)
    assert code == 0 and {"releases", "charge", "strategy", "one_by_one"} <= set(found)
    assert [each["question"] for each in found["releases"]] == list(FOUR)
    assert sorted(each.name for each in folder.iterdir()) == ["1.csv", "2.csv", "3.csv", "4.csv"]
    code, out, _ = called("ask", str(file), "--epsilon", "1", "--analyst", "ana")
    assert code == 0 and "free: " in out and "4: SELECT COUNT(*)" in out
    file.write_text("-- nothing")
    code, _, error = called("ask", str(file), "--epsilon", "1", "--analyst", "ana")
    assert code != 0 and "empty" in error
    code, _, error = called("preview", str(file), "--epsilon", "1", "--analyst", "ana", "--weight", "7=2")
    assert code != 0


def test_each_question_of_it_is_free_alone_for_who_has_paid(curator):
    found = curator.analyst("ana").ask_many(MIXED, epsilon=2.0)
    before = spent(curator)
    for question, release in zip(MIXED, found.releases, strict=True):
        preview = curator.analyst("ana").preview(question, epsilon=2.0)
        assert preview.choices[0].known
        alone = curator.analyst("ana").ask(question, epsilon=2.0)
        assert alone.free and alone.rows == release.rows and alone.noise_error == release.noise_error
        assert alone.receipt == found.receipt and alone.question == question
        assert not curator.analyst("bob").preview(question, epsilon=2.0).choices[0].known
    other_words = curator.analyst("ana").ask("SELECT COUNT(*) AS men FROM people WHERE 'm' = sex", epsilon=1.0)
    assert other_words.free and other_words.value == found[0].value
    assert spent(curator) == before


@pytest.mark.parametrize(
    ("question", "epsilon"),
    [
        (FOUR[0], 2.5),  # a higher price
        ("SELECT COUNT(*) AS n FROM people WHERE sex = 'm' AND bmi < 26", 0.1),  # another filter
        ("SELECT COUNT(*) AS n FROM people WHERE sex = 'm' AND bmi <= 25", 0.1),
        ("SELECT SUM(pay) AS n FROM people WHERE sex = 'm' AND bmi < 25", 0.1),
    ],
)
def test_what_was_not_in_it_is_charged(curator, question, epsilon):
    curator.analyst("ana").ask_many(MIXED, epsilon=2.0)
    before = spent(curator)
    assert not curator.analyst("ana").preview(question, epsilon=epsilon).choices[0].known
    assert not curator.analyst("ana").ask(question, epsilon=epsilon).free
    assert spent(curator) == pytest.approx(before + epsilon)


def test_other_limits_are_another_question(curator):
    curator.analyst("ana").ask_many(MIXED, epsilon=2.0)
    assert not curator.analyst("ana").ask(FOUR[1], epsilon=0.1, limits=Limits(rows=2)).free


def test_new_data_is_another_question(protect, tmp_path):
    curator = protect()
    first = curator.analyst("ana").ask_many(FOUR, epsilon=1.0)
    assert curator.analyst("ana").ask(FOUR[0], epsilon=1.0).free
    (source,) = curator.tables()[0].fingerprint.paths
    pq.write_table(rows_of(seed=2), source)
    curator.refresh("people", yes=True)
    assert not curator.analyst("ana").preview(FOUR[0], epsilon=1.0).choices[0].known
    again = curator.analyst("ana").ask_many(FOUR, epsilon=1.0)
    assert not again.free and again.receipt != first.receipt

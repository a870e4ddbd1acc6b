"""Questions that are priced by how exact they are to be, in numbers and in per cent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.analyst import Analyst
from dalenius.app.cli import build, run
from dalenius.curator import Curator
from dalenius.errors import InputError, QuestionRefusedError
from dalenius.measuring.plan import Limits

POLICY = """
[table]
name = "people"
source = "people.parquet"
unit = "person"
[budget]
epsilon = 50.0
delta = 1e-6
[analysts.ana]
epsilon = 50.0
[columns.town]
type = "category"
keys = ["north", "south", "hamlet"]
[columns.age]
type = "integer"
bounds = [0, 99]
"""
COUNT = "SELECT COUNT(*) AS n FROM people"
BY_TOWN = "SELECT town, COUNT(*) AS n FROM people GROUP BY town"
TRUE = {"north": 5000, "south": 4000, "hamlet": 300}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    towns = [town for town, size in TRUE.items() for _ in range(size)]
    rows = {"person": list(range(len(towns))), "town": towns, "age": [20 + at % 60 for at in range(len(towns))]}
    pq.write_table(pa.table(rows), folder / "people.parquet")
    (folder / "people.toml").write_text(POLICY)
    Curator(folder / "home").protect(folder / "people.toml")
    return folder / "home"


@pytest.fixture(scope="module")
def declared(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Analyst:
    """Where the owner declared the limits."""
    folder = tmp_path_factory.mktemp("declared")
    (folder / "people.parquet").write_bytes((home.parent / "people.parquet").read_bytes())
    (folder / "people.toml").write_text(POLICY + "[contribution]\nrows = 20\n")
    curator = Curator(folder / "home")
    curator.protect(folder / "people.toml")
    return curator.analyst("ana")


@pytest.fixture
def ana(home: Path) -> Analyst:
    return Curator(home).analyst("ana")


def price(ana: Analyst, sql: str, error: Any, **more: Any) -> float:
    (choice,) = ana.preview(sql, error=error, **more).choices
    return choice.epsilon


# --- the price


def test_a_per_cent_is_of_what_each_group_is_expected_to_show(ana):
    one = price(ana, COUNT, "4%")
    assert one == pytest.approx(price(ana, COUNT, 372.0), rel=0.2)  # of 9,300, as the noisy number of rows has it
    (choice,) = ana.preview(COUNT, error="4%").choices
    assert max(choice.noise_error[0], choice.total_error[0]) <= 0.04 * 9300 * 1.1
    assert price(ana, COUNT, "8%") < one < price(ana, COUNT, "3%")


def test_it_holds_for_groups_of_half_the_average_size_so_it_costs_more_than_for_all_together(ana):
    assert price(ana, BY_TOWN, "5%") == pytest.approx(price(ana, BY_TOWN, 0.05 * 9300 / 3 / 2), rel=0.2)


def test_each_column_may_have_an_error_of_its_own(ana):
    sql = "SELECT COUNT(*) AS n, AVG(age) AS a FROM people"
    by_count, by_age = price(ana, sql, {"n": "5%"}), price(ana, sql, {"a": "5%"})
    assert price(ana, sql, {"n": "5%", "a": "5%"}) == pytest.approx(max(by_count, by_age), rel=0.05)
    assert price(ana, sql, {"n": 465.0, "a": "5%"}) == pytest.approx(max(by_count, by_age), rel=0.2)


def test_more_confidence_costs_more(ana):
    assert price(ana, COUNT, "5%", confidence=0.99) > 1.2 * price(ana, COUNT, "5%")


def test_what_is_paid_is_what_was_previewed_and_the_answer_is_that_exact(ana):
    sql = COUNT.replace("*", "DISTINCT person")
    expected = price(ana, sql, "1%")
    release = ana.ask(sql, error="1%")
    assert release.charge["epsilon"] == pytest.approx(expected)
    assert abs(release.value - 9300) <= 3 * 93  # six deviations
    assert not any("less exact" in note for note in release.notes)


@pytest.mark.parametrize("error", ["", "%", "x%", "-1%", "0%", "1e3%", "1%%", "200", "nan%", {"n": "5"}, {"n": True}])
def test_what_is_no_error_is_refused_and_charges_nothing(home, error):
    curator = Curator(home)
    before = curator.ledger.balance("people").charges
    with pytest.raises(InputError):
        curator.analyst("ana").ask(COUNT, error=error)
    assert curator.ledger.balance("people").charges == before


# --- what no price gives


def test_a_refusal_says_that_limits_cut_off_too_much(tmp_path):
    # most people have one row, and few have thousands (Pareto): protect's limit cuts off a good part of these
    rows = [min(3000, int(((at + 0.5) / 6000) ** (-1 / 1.2))) for at in range(6000)]
    people = [person for person, number in enumerate(rows) for _ in range(number)]
    pq.write_table(
        pa.table({"person": people, "town": ["north"] * len(people), "age": [30] * len(people)}),
        tmp_path / "people.parquet",
    )
    (tmp_path / "people.toml").write_text(POLICY)
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "people.toml")
    ana = curator.analyst("ana")
    with pytest.raises(QuestionRefusedError) as refused:
        ana.preview(COUNT, error="0.5%")
    assert "one person may add cut off so much of 'n'" in refused.value.why and "[contribution]" in refused.value.fix
    assert re.search(r"it stays ± [\d,]+: that is \d\d?(\.\d)?% of it\.", refused.value.why)
    assert refused.value.charge.epsilon == 0


REASONS = [  # what is asked, how exact, why not, what to do instead
    ("VARIANCE(age)", 1e-7, r"in a group of about [\d,]+ rows even ε = 1,000 leaves 'x' ± 0\.0", "--rows N"),
    ("COUNT(*)", 0.01, r"what one person may add, up to 20 rows, and even ε = 1,000 leaves 'x' ± \d", "--rows N"),
    ("SUM(age)", 0.01, r"what one person may add, up to 1,980, and even ε = 1,000 leaves 'x' ± \d+", "--total age=X"),
    ("COUNT(*) FILTER (WHERE age > 3)", 0.01, r"up to 20 rows, and even", "--rows N"),
    ("STDDEV(age)", 1e-7, "of this size even ε = 1,000", "--rows N"),
]


@pytest.mark.parametrize(("asked", "error", "why", "fix"), REASONS)
def test_a_refusal_gives_the_reason_of_just_that_aggregate(asked, error, why, fix, ana, declared):
    asker = ana if asked == "VARIANCE(age)" else declared
    with pytest.raises(QuestionRefusedError, match="No price") as refused:
        asker.preview(f"SELECT {asked} AS x FROM people", error=error)
    assert re.search(why, refused.value.why), refused.value.why
    assert fix in refused.value.fix and "e+0" not in str(refused.value)
    assert ("rows even" in refused.value.why) == (asked == "VARIANCE(age)") and "steps" not in refused.value.why


def test_a_refusal_says_that_a_count_is_a_whole_number(declared):
    one = Limits(rows=1)
    with pytest.raises(QuestionRefusedError, match="No price") as refused:
        declared.preview(BY_TOWN, error={"n": 0.01}, limits=one)
    assert "'n' is told in whole numbers, and stays ± 1 at any price" in refused.value.why
    assert refused.value.fix == "Ask for a larger error."


def test_per_cent_of_what_nobody_knows_are_refused_until_an_own_answer_says_it(tmp_path, home):
    (tmp_path / "people.parquet").write_bytes((home.parent / "people.parquet").read_bytes())
    (tmp_path / "people.toml").write_text(POLICY + "[contribution]\nrows = 1\n")
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "people.toml")
    ana = curator.analyst("ana")
    with pytest.raises(InputError, match="how large") as refused:
        ana.ask(COUNT, error="1%")
    assert "small epsilon" in refused.value.fix
    ana.ask(COUNT, epsilon=0.1)
    assert price(ana, COUNT, "0.5%") == pytest.approx(price(ana, COUNT, 46.0), rel=0.2)
    assert any("noise alone" in note for note in ana.preview(COUNT, error="0.5%").notes)


# --- with the release


def test_smaller_groups_are_named_with_the_margin_that_they_have(ana):
    release = ana.ask(BY_TOWN, error="2%")
    (note,) = [each for each in release.notes if "below half the average" in each]
    assert note.startswith("± 2% of n does not hold for groups below half the average: hamlet (± ")
    assert "north" not in note and "south" not in note
    shown = {row[0]: row[1] for row in release.rows}
    for town in ("north", "south"):
        assert abs(shown[town] - TRUE[town]) <= 0.06 * TRUE[town]  # six deviations


def test_an_own_answer_that_is_exact_enough_is_given_again_for_nothing(ana):
    sql = "SELECT COUNT(*) AS n FROM people WHERE age >= 0"
    ana.ask(sql, epsilon=3.0)
    (choice,) = ana.preview(sql, error=200).choices
    assert choice.known
    assert ana.ask(sql, error=200).free and ana.ask(sql, error="20%").free


def test_the_same_words_again_are_free(ana):
    sql = "SELECT town, AVG(age) AS a FROM people GROUP BY town"
    first = ana.ask(sql, error={"a": "3%"})
    again = ana.ask(sql.replace(" AS a", ' AS "a"'), error={"a": "3%"})
    assert not first.free and again.free and again.rows == first.rows


# --- on the command line


def said(capsys: pytest.CaptureFixture[str], home: Path, *arguments: str) -> tuple[int, Any]:
    code = run(build(), [*arguments, "--home", str(home), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_command_line_takes_numbers_and_per_cent_for_all_columns_or_one(home, capsys):
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > 1"
    prices = {}
    for wish in ("100", "2%", "n=100", "n=2%"):
        code, found = said(capsys, home, "preview", sql, "--error", wish)
        assert code == 0
        (choice,) = found["choices"]
        assert set(choice) == {"epsilon", "rho", "delta", "noise_error", "total_error", "at_most", "known"}
        prices[wish] = choice["epsilon"]
    assert prices["100"] == prices["n=100"] and prices["2%"] == prices["n=2%"]
    code, release = said(capsys, home, "ask", sql, "--error", "2%")
    assert code == 0 and release["charge"]["epsilon"] == prices["2%"]
    code, found = said(capsys, home, "preview", sql, "--error", "2%")
    assert found["choices"][0]["known"] is True
    assert run(build(), ["preview", sql, "--home", str(home), "--epsilon", str(prices["2%"])]) == 0
    assert "known already: free" in capsys.readouterr().out
    for wrong in ("2%%", "%", "n=", "n=x%", "-2%"):
        assert said(capsys, home, "preview", sql, "--error", wrong)[0] == 2

"""What everybody knows of all rows: rules, columns that follow from others, known totals. Rows keep to it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.seeded_noise import seeded_noise

from dalenius.app.views.synthetic import facts_words
from dalenius.curator import Curator
from dalenius.errors import InputError, PolicyInvalidError
from dalenius.synthesis.generators.tree import TreeModel
from dalenius.synthesis.methods import METHODS
from dalenius.synthesis.release import SyntheticTable
from dalenius.synthesis.sampling import Step
from dalenius.tables.policy import Facts
from dalenius.tables.reading import read_text

COUNTRY = {"Bern": "CH", "Genève": "CH", "Wien": "AT", "Graz": "AT", "Köln": "DE"}
TOTALS = {"Bern": 900, "Genève": 700, "Wien": 600, "Graz": 200, "Köln": 600}
POLICY = """
[table]
name = "stays"
source = "stays.parquet"
unit = "{unit}"
[budget]
epsilon = 900.0
delta = 1e-6
[analysts.ana]
epsilon = 900.0
[columns.admitted]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
default = "2025-01-01"
[columns.discharged]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[columns.city]
type = "category"
keys = ["Bern", "Genève", "Wien", "Graz", "Köln"]
default = "Bern"
[columns.country]
type = "category"
keys = ["CH", "AT", "DE"]
default = "CH"
[columns.age]
type = "integer"
bounds = [0, 99]
default = 40
[contribution]
rows = {rows}
"""
FACTS = """
[synthetic]
rules = ["discharged >= admitted"]
follows = { country = "city" }
"""


def rows_of(count: int, each: int) -> pa.Table:
    chance = random.Random(2)
    found = []
    for person in range(count):
        city = chance.choice(list(COUNTRY))
        for _ in range(each):
            first = date(2025, 1, 1) + timedelta(days=chance.randrange(340))
            last = first + timedelta(days=min(25, int(chance.expovariate(0.2))))
            found.append(
                {
                    "person": person,
                    "admitted": first,
                    "discharged": None if chance.random() < 0.2 else last,
                    "city": city,
                    "country": COUNTRY[city],
                    "age": chance.randrange(20, 90),
                }
            )
    return pa.Table.from_pylist(found)


def curator_in(folder: Path, facts: str, *, each: int = 1, count: int = 1500) -> Curator:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows_of(count, each), folder / "stays.parquet")
    (folder / "stays.toml").write_text(POLICY.format(unit="person", rows=each) + facts)
    curator = Curator(folder / "home")
    with seeded_noise():
        curator.protect(folder / "stays.toml")
    return curator


@pytest.fixture(scope="module")
def stays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    with seeded_noise(6):
        yield curator_in(tmp_path_factory.mktemp("facts"), FACTS)


@pytest.fixture(scope="module")
def made(stays: Curator) -> dict[str, SyntheticTable]:
    with seeded_noise(7):
        return {each: stays.analyst("ana").synthesize("stays", epsilon=2.0, method=each) for each in METHODS}


def broken(rows: list[dict[str, Any]]) -> int:
    return sum(
        (each["discharged"] is not None and each["discharged"] < each["admitted"])
        or each["country"] != COUNTRY[each["city"]]
        for each in rows
    )


@pytest.mark.parametrize("method", [each for each in METHODS if each != "histogram"])
def test_every_row_keeps_to_what_is_known_and_columns_by_themselves_stay(made: dict[str, SyntheticTable], method: str):
    """To within what drawing 6,000 rows scatters: in the mean 0.8·√(cells/rows) in L1, and no more than thrice that."""
    stored = made[method].stored
    plainly = pa.table(stored.draw(6000, 1)).to_pylist()
    assert broken(plainly) > 300  # else there was nothing to keep to
    rows = made[method].to_arrow(6000, seed=1).to_pylist()
    assert broken(rows) == 0
    for name, of in (("admitted", 12), ("discharged", 13), ("city", 5), ("age", 10)):
        one, other = (Counter(_class(each[name]) for each in table) for table in (plainly, rows))
        moved = sum(abs(one[each] - other[each]) for each in one | other) / 6000
        assert moved < 3 * 0.8 * (2 * of / 6000) ** 0.5, (name, moved)


def test_where_it_is_known_which_value_goes_with_which_no_model_has_to_know_it(made: dict[str, SyntheticTable]):
    """Of columns by themselves no model says which country a city is in."""
    facts = Facts(("discharged >= admitted",), {"country": "city"}, {"country": COUNTRY})
    assert broken(pa.table(made["histogram"].stored.draw(3000, 1, facts=facts)).to_pylist()) == 0
    some = Facts(follows={"country": "city"}, values={"country": {"Bern": "DE"}})
    rows = pa.table(made["tree"].stored.draw(3000, 1, facts=some)).to_pylist()
    assert {(each["city"], each["country"]) for each in rows} == {*COUNTRY.items(), ("Bern", "DE")} - {("Bern", "CH")}


def _class(value: Any) -> Any:
    return value.month if isinstance(value, date) else value // 10 if isinstance(value, int) else value


def test_without_factors_dates_would_shift(made: dict[str, SyntheticTable]):
    """What drawing again does by itself, where nothing is known but the rule: it is what factors are there for."""
    table = made["histogram"]
    alone = pa.table(table.stored.draw(6000, 1, where="discharged IS NULL OR discharged >= admitted")).to_pylist()
    plainly, rows = (pa.table(table.stored.draw(6000, 1, facts=each)).to_pylist() for each in (None, table.facts))
    late = [sum(each["admitted"].month > 9 for each in table) / 6000 for table in (plainly, alone, rows)]
    assert late[1] < 0.75 * late[0] and late[2] == pytest.approx(late[0], abs=0.03)


def test_a_rule_goes_with_a_condition(made: dict[str, SyntheticTable]):
    rows = made["tree"].to_arrow(500, seed=1, where="country = 'AT' AND admitted >= '2025-11-01'").to_pylist()
    assert len(rows) == 500 and broken(rows) == 0
    assert all(each["country"] == "AT" and each["admitted"] >= date(2025, 11, 1) for each in rows)
    assert {each["city"] for each in rows} == {"Wien", "Graz"}


def test_a_model_of_other_columns_keeps_to_what_it_can(stays: Curator):
    found = stays.analyst("ana").synthesize("stays", epsilon=1.0, method="tree", columns=["admitted", "age"])
    assert found.to_arrow(100).num_rows == 100


def test_facts_change_no_model_and_cost_nothing(stays: Curator, tmp_path: Path):
    before = stays.analyst("ana").synthesize("stays", epsilon=2.0, method="tree")
    charges = len(list(stays.ledger.records(("charge",))))
    text = stays.policy("stays").text.replace('"discharged >= admitted"', '"discharged >= admitted", "age >= 18"')
    (tmp_path / "stays.toml").write_text(text)
    stays.protect(tmp_path / "stays.toml", yes=True, reason="a rule more")
    after = stays.analyst("ana").synthesize("stays", epsilon=2.0, method="tree")
    assert after.free and after.stored.content() == before.stored.content()
    assert len(list(stays.ledger.records(("charge",)))) == charges
    assert min(after.to_arrow(3000, seed=1)["age"].to_pylist()) >= 18
    again = stays.analyst("ana").synthetic(str(after.receipt["id"]))  # type: ignore[index]
    assert again.facts == after.facts and again.facts.rules[1] == "age >= 18"


def test_what_rows_keep_to_is_said(made: dict[str, SyntheticTable]):
    said = facts_words(replace(made["tree"].facts, totals={"city": TOTALS}))
    assert said == (
        "Rows keep to what the policy says of all: discharged >= admitted; country follows from city; "
        "known totals of city."
    )
    assert facts_words(Facts()) == ""


def test_units_keep_to_it_too(tmp_path: Path):
    with seeded_noise(3):
        ana = curator_in(tmp_path, FACTS, each=3, count=600).analyst("ana")
        found = ana.synthesize("stays", epsilon=4.0, method="tree")
    rows = found.to_arrow(2000, seed=1).to_pylist()
    assert broken(rows) == 0 and max(Counter(each["person"] for each in rows).values()) > 1


# --- known totals


@pytest.mark.parametrize("method", ["histogram", "tree", "adaptive", "privbayes"])
def test_known_totals_are_met_and_what_goes_with_them_stays(made: dict[str, SyntheticTable], method: str):
    stored, facts = made[method].stored, Facts(totals={"city": TOTALS})
    rows = pa.table(stored.draw(seed=1, facts=facts)).to_pylist()
    assert len(rows) == sum(TOTALS.values())
    often = Counter(each["city"] for each in rows)
    assert all(abs(often[city] - number) <= 1 for city, number in TOTALS.items())
    plainly = pa.table(stored.draw(30_000, 1)).to_pylist()
    for city in TOTALS:  # ages of a city are those that it had
        ages = [[each["age"] for each in table if each["city"] == city] for table in (rows, plainly)]
        means = [sum(each) / len(each) for each in ages]
        assert abs(means[0] - means[1]) < 4 * 22 * (1 / len(ages[0]) + 1 / len(ages[1])) ** 0.5


def test_totals_of_some_values_leave_the_others_as_they_are(made: dict[str, SyntheticTable]):
    stored = made["tree"].stored
    before = Counter(stored.draw(seed=1)["city"].to_pylist())
    after = Counter(stored.draw(seed=1, facts=Facts(totals={"city": {"Bern": 1000}}))["city"].to_pylist())
    assert abs(after["Bern"] - 1000) <= 1
    assert all(after[city] == pytest.approx(before[city], abs=40) for city in COUNTRY if city != "Bern")


def test_totals_of_two_columns_and_rules_go_together(made: dict[str, SyntheticTable]):
    facts = Facts(("discharged >= admitted",), totals={"city": TOTALS, "country": {"CH": 1500, "AT": 900, "DE": 600}})
    rows = pa.table(made["tree"].stored.draw(seed=1, facts=facts)).to_pylist()
    cities, countries = (Counter(each[name] for each in rows) for name in ("city", "country"))
    assert all(abs(cities[city] - number) <= 60 for city, number in TOTALS.items())
    assert all(abs(countries[name] - number) <= 60 for name, number in facts.totals["country"].items())
    assert not any(each["discharged"] is not None and each["discharged"] < each["admitted"] for each in rows)


def test_a_known_value_that_noise_has_left_no_row_is_there_again(made: dict[str, SyntheticTable]):
    stored = made["tree"].stored
    place = stored.domain.place("city")
    gone = [step for step in stored.model.steps if step.column == place]  # type: ignore[attr-defined]
    steps = [replace(step, table=np.where(np.arange(5) == 3, 0.0, step.table[..., :5])) for step in gone]
    assert stored.domain.columns[place].column.size == 5
    others = [each for each in stored.model.steps if each.column != place]  # type: ignore[attr-defined]
    order = [next(each for each in (*steps, *others) if each.column == step.column) for step in stored.model.steps]  # type: ignore[attr-defined]
    without = replace(stored, model=TreeModel(stored.model.rows, order))
    assert "Graz" not in set(without.draw(3000, 1)["city"].to_pylist())
    rows = without.draw(seed=1, facts=Facts(totals={"city": TOTALS}))["city"].to_pylist()
    assert all(abs(rows.count(city) - number) <= 1 for city, number in TOTALS.items())


def test_where_noise_leaves_no_possible_row_all_values_are_alike(made: dict[str, SyntheticTable]):
    stored = made["histogram"].stored
    shares = list(stored.model.steps)  # type: ignore[attr-defined]
    for name, at in (("admitted", -1), ("discharged", 0)):
        place = stored.domain.place(name)
        column = stored.domain.columns[place].column
        shares[place] = Step(place, (), (np.arange(column.size) == at % column.known).astype(float))
    nonsense = replace(stored, model=TreeModel(100.0, shares))
    with pytest.raises(InputError, match="no such rows"):
        nonsense.draw(10, 1, where="discharged >= admitted")
    rows = pa.table(nonsense.draw(200, 1, facts=Facts(("discharged >= admitted",)))).to_pylist()
    assert len(rows) == 200 and all(each["discharged"] >= each["admitted"] for each in rows)


# --- what is refused


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ('rules = "age > 3"', "list"),
        ('rules = ["agee > 3"]', "agee"),
        ("rules = [\"age > 'x'\"]", "holds whole numbers"),
        ('rules = ["discharged > admitted", "admitted >= discharged"]', "exclude each other"),
        ('rules = ["discharged > admitted AND discharged <= admitted"]', "exclude each other"),
        ("follows = { country = 3 }", "must name a column"),
        ('follows = { land = "city" }', "land"),
        ('follows = { country = "age" }', "no keys"),
        ('follows = { country = "country" }', "follows from another"),
        ('follows = { country = "city", city = "country" }', "follows from another"),
        ('follows = { country = { column = "city" } }', "values"),
        ('follows = { country = { column = "city", values = { Bonn = "DE" } } }', "Bonn"),
        ('follows = { country = { column = "city", values = { Bern = "XX" } } }', "XX"),
        ("totals = { age = { 3 = 5 } }", "no keys"),
        ("totals = { city = { Bonn = 5 } }", "Bonn"),
        ("totals = { city = { Bern = -5 } }", "number of rows"),
        ("totals = { city = { Bern = 1.5 } }", "number of rows"),
        ("totals = { city = { Bern = 0 } }", "nobody"),
        ("totals = { country = { CH = 5, AT = 3, DE = 2 }, city = { Bern = 11 } }", "country"),
        ("rule = []", "rules"),
    ],
)
def test_what_contradicts_itself_is_refused_when_the_policy_is_read(facts: str, word: str, tmp_path: Path):
    text = POLICY.format(unit="person", rows=1) + f"[synthetic]\n{facts}\n"
    with pytest.raises(PolicyInvalidError) as refused:
        read_text(text, tmp_path)
    assert "synthetic" in refused.value.message and word in f"{refused.value.message} {refused.value.fix}"


def test_facts_are_written_down_as_they_are_read(tmp_path: Path):
    text = POLICY.format(unit="person", rows=1) + FACTS + 'totals = { city = { Bern = 3, "Köln" = 4 } }\n'
    with_values = text.replace('"city" }', '{ column = "city", values = { Bern = "CH" } } }')
    for each in (text, with_values):
        policy = read_text(each, tmp_path)
        assert read_text(policy.text, tmp_path) == policy and Facts.of_json(policy.facts.to_json()) == policy.facts
    assert policy.facts.values == {"country": {"Bern": "CH"}}
    policy = read_text(text, tmp_path)
    assert read_text(policy.text, tmp_path) == policy
    assert policy.facts == Facts(("discharged >= admitted",), {"country": "city"}, {}, {"city": {"Bern": 3, "Köln": 4}})
    assert policy.meaning == read_text(POLICY.format(unit="person", rows=1), tmp_path).meaning
    assert policy.version != read_text(POLICY.format(unit="person", rows=1), tmp_path).version


def test_rules_that_no_row_can_keep_to_are_refused_before_the_charge(tmp_path: Path):
    curator = curator_in(
        tmp_path, '[synthetic]\nrules = ["age >= 18", "age < 10 OR city = \'Bern\' AND age < 15"]\n', count=50
    )
    before = len(list(curator.ledger.records(("charge",))))
    with pytest.raises(InputError, match="contradict") as refused:
        curator.analyst("ana").synthesize("stays", epsilon=1.0, method="tree")
    assert refused.value.charge.epsilon == 0 and len(list(curator.ledger.records(("charge",)))) == before

"""Tables of the papers that introduced the models, with what those papers say about them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from dalenius.anonymity.checking import check, profile
from dalenius.anonymity.classes import classes
from dalenius.anonymity.models import (
    Closeness,
    DistinctDiversity,
    EntropyDiversity,
    KAnonymity,
    Likeness,
    Model,
    Presence,
    ProbabilisticDiversity,
    RecursiveDiversity,
)
from dalenius.anonymity.models.closeness import Distance
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import InputError

# Machanavajjhala et al. 2007, figures 2 and 3: the same patients, 4-anonymous, then 3-diverse.
FOUR_ANONYMOUS = Table.of(
    {
        "zip": ["130**"] * 4 + ["1485*"] * 4 + ["130**"] * 4,
        "age": ["<30"] * 4 + [">=40"] * 4 + ["3*"] * 4,
        "condition": ["heart", "heart", "viral", "viral", "cancer", "heart", "viral", "viral"] + ["cancer"] * 4,
    }
)
THREE_DIVERSE = Table.of(
    {
        "zip": ["1305*"] * 4 + ["1485*"] * 4 + ["1306*"] * 4,
        "age": ["<=40"] * 4 + [">40"] * 4 + ["<=40"] * 4,
        "condition": [
            "heart",
            "viral",
            "cancer",
            "cancer",
            "cancer",
            "heart",
            "viral",
            "viral",
            "heart",
            "viral",
            "cancer",
            "cancer",
        ],
    }
)
PATIENTS = Roles(quasi=("zip", "age"), sensitive=("condition",))

# Li, Li & Venkatasubramanian 2007: nine patients, in a 3-diverse table and in one that is 0.167-close in salary.
SALARY = ["3000", "4000", "5000", "6000", "11000", "8000", "7000", "9000", "10000"]
DISEASE = [
    "gastric ulcer",
    "gastritis",
    "stomach cancer",
    "gastritis",
    "flu",
    "bronchitis",
    "bronchitis",
    "pneumonia",
    "stomach cancer",
]
DISEASES = """\
flu;respiratory infection;respiratory;*
pneumonia;respiratory infection;respiratory;*
bronchitis;respiratory infection;respiratory;*
pulmonary edema;vascular lung;respiratory;*
pulmonary embolism;vascular lung;respiratory;*
gastric ulcer;stomach;digestive;*
stomach cancer;stomach;digestive;*
gastritis;stomach;digestive;*
colitis;colon;digestive;*
colon cancer;colon;digestive;*
"""


def closeness(groups: list[int], folder: Path) -> tuple[Table, Roles]:
    (folder / "disease.csv").write_text(DISEASES)
    written = {"quasi": ["zip"], "sensitive": ["salary", "disease"], "hierarchies": {"disease": "disease.csv"}}
    return Table.of({"zip": [str(each) for each in groups], "salary": SALARY, "disease": DISEASE}), Roles.from_dict(
        written, folder
    )


def reached(table: Table, roles: Roles, model: Model, column: str | None = None) -> float | None:
    found = [each for each in check(table, roles, [model]).findings if column in {None, each.column}]
    assert len(found) == 1
    return found[0].reached


def test_four_anonymous_patients_are_not_diverse():
    assert reached(FOUR_ANONYMOUS, PATIENTS, KAnonymity(4)) == 4
    assert reached(FOUR_ANONYMOUS, PATIENTS, DistinctDiversity(2)) == 1
    assert reached(FOUR_ANONYMOUS, PATIENTS, ProbabilisticDiversity(2)) == 1
    assert reached(FOUR_ANONYMOUS, PATIENTS, EntropyDiversity(2)) == pytest.approx(1)
    assert reached(FOUR_ANONYMOUS, PATIENTS, RecursiveDiversity(2, c=3)) is None  # infinite
    found = check(FOUR_ANONYMOUS, PATIENTS, [DistinctDiversity(2)]).findings[0]
    assert (found.failing_classes, found.failing_rows, found.met) == (1, 4, False)


def test_three_diverse_patients_reach_what_the_paper_says():
    assert reached(THREE_DIVERSE, PATIENTS, DistinctDiversity(3)) == 3
    assert reached(THREE_DIVERSE, PATIENTS, ProbabilisticDiversity(2)) == 2
    # "2.8-diverse": the entropy of (1/2, 1/4, 1/4) is 1.5 bits
    assert reached(THREE_DIVERSE, PATIENTS, EntropyDiversity(2.8)) == pytest.approx(2**1.5)
    assert check(THREE_DIVERSE, PATIENTS, [EntropyDiversity(2.8)]).met
    assert not check(THREE_DIVERSE, PATIENTS, [EntropyDiversity(2.83)]).met
    # r = (2, 1, 1): 2 < c·(1 + 1) and 2 < c·1
    assert reached(THREE_DIVERSE, PATIENTS, RecursiveDiversity(2, c=1)) == 1
    assert reached(THREE_DIVERSE, PATIENTS, RecursiveDiversity(3, c=1)) == 2
    assert not check(THREE_DIVERSE, PATIENTS, [RecursiveDiversity(3, c=2)]).met  # strictly below
    assert check(THREE_DIVERSE, PATIENTS, [RecursiveDiversity(3, c=2.01)]).met


def test_salaries_of_the_three_diverse_table_are_skewed(tmp_path: Path):
    table, roles = closeness([1, 1, 1, 2, 2, 2, 3, 3, 3], tmp_path)
    # the paper: D[{3k, 4k, 5k}] = 0.375 and D[{6k, 8k, 11k}] = 0.167
    assert reached(table, roles, Closeness(0.5, "ordered", "salary")) == pytest.approx(0.375)
    bound = Closeness(0.5, "ordered", "salary").bind(table, roles)[0]
    each = bound.per_class(classes(table, ["zip"]).groups(table, ["salary"]))
    assert each[1] == pytest.approx(1 / 6)


def test_the_close_table_is_as_close_as_the_paper_says(tmp_path: Path):
    table, roles = closeness([1, 3, 1, 2, 2, 2, 3, 1, 3], tmp_path)
    assert reached(table, roles, Closeness(0.5, "ordered", "salary")) == pytest.approx(1 / 6)
    assert check(table, roles, [Closeness(0.167, None, "salary"), Closeness(0.297, "hierarchy", "disease")]).met
    assert not check(table, roles, [Closeness(0.166, None, "salary")]).met
    # By hand, for gastritis, flu and bronchitis. Below "stomach": +1/9, −1/9, −2/9, so 1/9 moves by 1/3, −2/9 is left.
    # Below "respiratory infection": +2/9, +1/9, −1/9, so 1/9 moves by 1/3, and the 2/9 left move by 1 to the others.
    assert reached(table, roles, Closeness(0.5, "hierarchy", "disease")) == pytest.approx(2 / 27 + 2 / 9)


def ground(distance: str, roles: Roles, table: Table, column: str) -> np.ndarray:
    """How far values are apart, from the definition."""
    many = len(table[column].values)
    if distance == "equal":
        return 1.0 - np.eye(many)
    if distance == "ordered":
        return np.abs(np.subtract.outer(np.arange(many), np.arange(many))) / (many - 1)
    tree = roles.hierarchy(table, column)
    common = [
        [next(i for i, own in enumerate(tree.maps) if own[a] == own[b]) for a in range(many)] for b in range(many)
    ]
    return np.array(common) / (tree.levels - 1)


@pytest.mark.parametrize(
    ("distance", "column"), [("equal", "disease"), ("ordered", "salary"), ("hierarchy", "disease"), ("equal", "salary")]
)
def test_distances_are_those_of_the_cheapest_transport(tmp_path: Path, distance: Distance, column: str):
    for groups in ([1, 1, 1, 2, 2, 2, 3, 3, 3], [1, 3, 1, 2, 2, 2, 3, 1, 3], [1, 2, 2, 2, 2, 3, 3, 3, 3]):
        table, roles = closeness(groups, tmp_path)
        apart = ground(distance, roles, table, column)
        many = len(apart)
        found = (
            Closeness(1, distance, column)
            .bind(table, roles)[0]
            .per_class(classes(table, ["zip"]).groups(table, [column]))
        )
        counts = classes(table, ["zip"]).counts(table[column]).dense()
        whole = counts.sum(axis=0) / counts.sum()
        for own, said in zip(counts, found, strict=True):
            # what leaves each value and what reaches each
            leaves = np.kron(np.eye(many), np.ones(many))
            reaches = np.kron(np.ones(many), np.eye(many))
            solved = linprog(
                apart.ravel(), A_eq=np.vstack([leaves, reaches]), b_eq=np.concatenate([own / own.sum(), whole])
            )
            assert said == pytest.approx(solved.fun, abs=1e-9)


@pytest.mark.parametrize(("one", "other", "far"), [("flu", "bronchitis", 1 / 3), ("flu", "stomach cancer", 1.0)])
def test_diseases_are_as_far_apart_as_their_common_label_is_high(tmp_path: Path, one: str, other: str, far: float):
    (tmp_path / "d.csv").write_text(DISEASES)
    roles = Roles.from_dict({"quasi": ["q"], "sensitive": ["d"], "hierarchies": {"d": "d.csv"}}, tmp_path)
    table = Table.of({"q": ["1", "2"], "d": [one, other]})
    # all of one against half and half: half of it moves that far
    assert reached(table, roles, Closeness(1, "hierarchy")) == pytest.approx(far / 2)


def test_the_equal_distance_is_half_the_sum_of_differences():
    table = Table.of({"q": ["1", "1", "1", "2", "2", "2"], "s": ["a", "a", "b", "b", "c", "c"]})
    # (2/3, 1/3, 0) against (1/3, 1/3, 1/3): ½(1/3 + 0 + 1/3)
    assert reached(table, Roles(quasi=("q",), sensitive=("s",)), Closeness(1, "equal")) == pytest.approx(1 / 3)


def test_the_ordered_distance_divides_by_one_less_than_the_values():
    table = Table.of({"q": ["1", "2"], "s": ["10", "20"]})
    # all at one end against half at each: half of it moves over the whole length, 1
    assert reached(table, Roles(quasi=("q",), sensitive=("s",)), Closeness(1)) == pytest.approx(1 / 2)


def test_texts_have_no_order_unless_a_file_says_so(tmp_path: Path):
    table = Table.of({"q": ["1", "2", "3"], "s": ["low", "middle", "high"]})
    with pytest.raises(InputError, match="no order"):
        check(table, Roles(quasi=("q",), sensitive=("s",)), [Closeness(0.1, "ordered")])
    (tmp_path / "s.csv").write_text("low,*\nmiddle,*\nhigh,*\n")
    roles = Roles.from_dict({"quasi": ["q"], "sensitive": ["s"], "hierarchies": {"s": "s.csv"}}, tmp_path)
    # from (1, 0, 0) to thirds: 2/3 moves one step, 1/3 another, of 2
    assert reached(table, roles, Closeness(1, "ordered")) == pytest.approx(1 / 2)


def test_likeness_is_the_largest_relative_gain():
    table = Table.of({"q": ["1", "1", "2", "2"], "s": ["a", "a", "a", "b"]})
    roles = Roles(quasi=("q",), sensitive=("s",))
    # b is 1/4 of all and 1/2 of its class: a gain of 1
    assert reached(table, roles, Likeness(1)) == pytest.approx(1)
    assert check(table, roles, [Likeness(1)]).met
    assert not check(table, roles, [Likeness(0.99)]).met
    # a is 3/4 of all and certain in the first class: 1/3 > −ln(3/4) = 0.288
    assert math.log(4 / 3) < 1 / 3 and not check(table, roles, [Likeness(1, enhanced=True)]).met


def test_presence_is_the_share_of_people_who_are_in_the_table():
    table = Table.of({"q": ["1", "1", "2"]})
    people = Table.of({"q": ["1", "1", "1", "1", "2", "2", "3"]})
    roles = Roles(quasi=("q",))
    assert check(table, roles, [Presence(0, 0.5, people)]).met
    assert not check(table, roles, [Presence(0, 0.49, people)]).met
    assert not check(table, roles, [Presence(0.1, 0.5, people)]).met  # nobody of class 3 is in it
    with pytest.raises(InputError, match="too small"):
        check(people, roles, [Presence(0, 1, table)])


def test_a_label_of_two_levels_is_refused_where_it_stands_for_different_people(tmp_path: Path):
    (tmp_path / "q.csv").write_text("a;A;*\nA;A;*\nb;B;*\n")
    roles = Roles.from_dict({"quasi": ["q"], "hierarchies": {"q": "q.csv"}}, tmp_path)
    table = Table.of({"q": ["A", "A"]})
    people = Table.of({"q": ["a", "a", "A", "A", "b"]})  # 2 of 2 look like A as they are, 2 of 4 a level above
    with pytest.raises(InputError, match="on several levels") as caught:
        check(table, roles, [Presence(0, 0.5, people)])
    assert "labels of their own" in caught.value.fix
    alike = Table.of({"q": ["A", "A", "A", "b"]})
    assert check(table, roles, [Presence(0, 0.7, alike)]).met


def test_no_class_of_nobody_is_the_worst_share():
    table = Table.of({"q": ["1", "1", "2"]})
    people = Table.of({"q": ["1", "1", "1", "1", "2"]})
    found = check(table, Roles(quasi=("q",)), [Presence(0.1, 0.9, people)]).findings[0]
    assert not found.met and found.reached == 1  # of class 2 everybody is in it
    found = check(table, Roles(quasi=("q",)), [Presence(0.1, 1, people)]).findings[0]
    assert found.met and found.reached in {0.5, 1.0}


def test_suppressed_rows_are_where_the_rest_of_a_population_is():
    table = Table.of({"q": ["1", "1", "*"]})
    people = Table.of({"q": ["1", "1", "1", "1", "2", "3"]})
    assert check(table, Roles(quasi=("q",)), [Presence(0.5, 0.5, people)]).met


def test_shuffled_rows_and_missing_values_change_nothing():
    cells = {
        "q": ["1", "1", None, None, "2", "2", "1"],
        "s": ["a", None, "b", None, "a", "b", "a"],
    }
    roles = Roles(quasi=("q",), sensitive=("s",))
    first = profile(Table.of(cells), roles)
    assert first["k"] == 2 and first["classes"] == 3  # missing looks like missing
    assert first["sensitive"]["s"]["l_distinct"] == 2
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(7)
        assert profile(Table.of(cells).take(order), roles) == first


@pytest.mark.parametrize(
    "model",
    [
        lambda: KAnonymity(0),
        lambda: DistinctDiversity(0.5),
        lambda: Closeness(1.5),
        lambda: Closeness(-0.1),
        lambda: Likeness(-1),
        lambda: RecursiveDiversity(2, c=0),
        lambda: EntropyDiversity(math.nan),
        lambda: Closeness(0.5, "far"),  # type: ignore[arg-type]
    ],
)
def test_parameters_that_make_no_sense_are_refused(model):
    with pytest.raises(InputError):
        model()


def test_diversity_without_a_sensitive_column_is_refused():
    with pytest.raises(InputError, match="no sensitive column"):
        check(FOUR_ANONYMOUS, Roles(quasi=("zip",)), [DistinctDiversity(2)])

"""Whole runs: what is handed out, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dalenius.anonymity import Roles, Table, anonymize, asked, check, read_table, write_table
from dalenius.anonymity.checking import profile
from dalenius.anonymity.losses import losses
from dalenius.anonymity.models import Closeness, DistinctDiversity, KAnonymity, Presence
from dalenius.anonymity.run import METHODS
from dalenius.anonymity.transformers import problem
from dalenius.errors import InputError, PolicyInvalidError

TABLE = Table.of(
    {
        "name": ["Ada", "Bea", "Cem", "Dan", "Eve", "Fay"],
        "age": ["31", "34", "33", "47", "48", "90"],
        "sex": ["f", "f", "m", "m", "m", "f"],
        "ill": ["flu", "cold", "flu", "flu", "gout", "cold"],
    }
)
ROLES = Roles.from_dict(
    {
        "identifiers": ["name"],
        "quasi": ["age", "sex"],
        "sensitive": ["ill"],
        "hierarchies": {"age": {"width": 10, "levels": 3}},
    },
    Path(),
)


def test_a_publication_says_what_was_asked_for():
    found = anonymize(TABLE, ROLES, asked(k=2), method="optimal")
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert set(said) >= {"rows", "classes", "suppressed", "models", "loss", "seconds", "bound", "gap", "optimal"}
    assert set(said["loss"]) == {"ncp", "discernibility", "class_size", "entropy"}
    assert said["rows"] == 6 and said["suppressed"] == 0 and said["models"][0]["reached"] >= 2
    assert found.table.names == TABLE.names and set(found.table["name"].cells()) == {"*"}
    assert sorted(map(str, found.table["ill"].cells())) == sorted(map(str, TABLE["ill"].cells()))


@pytest.mark.parametrize("method", METHODS)
def test_where_somebody_stood_is_not_told(method: str):
    # sorted by age, as many files are: who stands third would be the third youngest
    table = Table.of({"age": [str(each) for each in range(20, 60)], "ill": [str(each * 7 % 40) for each in range(40)]})
    roles = Roles.from_dict({"quasi": ["age"], "hierarchies": {"age": {"width": 10, "levels": 3}}}, Path())
    found = anonymize(table, roles, asked(k=10), method=method)
    other = anonymize(table.take(np.random.default_rng(1).permutation(40)), roles, asked(k=10), method=method)
    shown = list(zip(found.table["age"].cells(), found.table["ill"].cells(), strict=True))
    assert shown == list(zip(other.table["age"].cells(), other.table["ill"].cells(), strict=True))
    assert [ill for _, ill in shown] != table["ill"].cells()
    kept = anonymize(table, roles, asked(k=10), method=method, keep_order=True)
    assert kept.table["ill"].cells() == table["ill"].cells() and kept.loss == found.loss


@pytest.mark.parametrize("method", ["mondrian", "mondrian-relaxed"])
def test_a_class_over_all_values_is_not_called_suppressed(method: str):
    table = Table.of({"a": ["a", "b", "c", "c"]})
    found = anonymize(table, Roles.from_dict({"quasi": ["a"]}, Path()), asked(k=2), method=method)
    assert found.table["a"].cells() == ["*", "*", "c", "c"]
    assert (found.suppressed, found.generalised) == (0, 2) and found.to_dict()["generalised"] == 2


def test_a_cell_that_reads_like_a_suppressed_one_is_refused():
    table = Table.of({"a": ["*", "*", "c", "c"]})
    for method in METHODS:
        with pytest.raises(InputError, match=r"In 'a' some cell reads \*") as caught:
            anonymize(table, Roles.from_dict({"quasi": ["a"]}, Path()), asked(k=2), method=method)
        assert caught.value.fix


def test_one_suppressed_row_would_hide_nobody():
    # Fay alone is far from the rest: she may be suppressed only together with somebody else
    one = anonymize(TABLE, ROLES, asked(k=2), suppress=1 / 6)
    assert one.suppressed == 0
    three = anonymize(TABLE, ROLES, asked(k=2), suppress=0.5)
    assert three.suppressed >= 2 and check(three.table, ROLES, asked(k=2)).met
    assert three.loss.ncp < one.loss.ncp


def test_losses_are_counted_by_hand():
    # both columns at the top for all: everything is lost
    table = Table.of({"age": ["1", "2", "3", "4"], "sex": ["f", "m", "f", "m"]})
    roles = Roles.from_dict({"quasi": ["age", "sex"], "hierarchies": {"age": {"width": 2, "start": 1}}}, Path())
    shown = Table.of({"age": ["1-2", "1-2", "3-4", "3-4"], "sex": ["*", "*", "*", "*"]})
    found = losses(table, shown, roles)
    assert found.ncp == pytest.approx((1 / 3 + 1) / 2)  # (2 − 1)/(4 − 1), and 1
    assert found.discernibility == 8 and found.class_size == 2
    assert found.entropy == pytest.approx((1 + 1) / (2 + 1))  # bits lost of bits there
    heavy = Roles(roles.quasi, hierarchies=roles.hierarchies, weights={"age": 3.0})
    assert losses(table, shown, heavy).ncp == pytest.approx((3 * 1 / 3 + 1) / 4)
    nothing = losses(table, table, roles)
    assert (nothing.ncp, nothing.entropy, nothing.class_size) == (0, 0, 1)
    hidden = Table.of({"age": ["1", "2", "*", "*"], "sex": ["f", "m", "*", "*"]})
    assert losses(table, hidden, roles).ncp == pytest.approx(0.5)
    assert losses(table, hidden, roles).discernibility == 1 + 1 + 2 * 4


def test_labels_that_are_not_of_the_hierarchy_are_not_scored():
    shown = TABLE.replace({"age": Table.of({"age": ["30-39"] * 6})["age"]})
    with pytest.raises(InputError, match="not one of its value's labels"):
        losses(TABLE, shown, ROLES)
    with pytest.raises(InputError, match="same rows"):
        losses(TABLE, TABLE.take(np.arange(3)), ROLES)


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_is_refused_with_what_to_change(method: str):
    def fails(table: Table, says: str, **options: object) -> None:
        with pytest.raises(InputError, match=says) as caught:
            anonymize(table, ROLES, asked(**options), method=method)  # type: ignore[arg-type]
        assert caught.value.fix and caught.value.why

    fails(TABLE, "k = 7 is larger than the table", k=7)
    fails(TABLE.take(np.arange(1)), "one row", k=1)
    fails(TABLE.take(np.arange(0)), "no rows", k=1)
    fails(TABLE, "No model", k=None)
    fails(TABLE, "No generalisation .* distinct l-diversity with l = 4", l=4)
    fails(TABLE, "No generalisation .* entropy l-diversity", l=3, l_kind="entropy")


def test_a_table_without_rows_is_not_checked(tmp_path: Path):
    (tmp_path / "t.csv").write_text("name,age,sex,ill\n")
    for look in (lambda table: check(table, ROLES, asked(k=2)), lambda table: profile(table, ROLES)):
        with pytest.raises(InputError, match="no rows"):
            look(read_table(tmp_path / "t.csv"))


def test_a_whole_table_reaches_any_t_in_the_end():
    found = anonymize(TABLE, ROLES, [Closeness(0.0)])
    assert found.classes == 1 and found.models[0].reached == pytest.approx(0)


def test_unreachable_t_without_a_highest_label_is_refused(tmp_path: Path):
    (tmp_path / "sex.csv").write_text("f\nm\n")
    roles = Roles.from_dict({"quasi": ["sex"], "sensitive": ["ill"], "hierarchies": {"sex": "sex.csv"}}, tmp_path)
    for method in METHODS:
        with pytest.raises(InputError, match=r"t-closeness with t = 0\.01.*it reaches 0") as caught:
            anonymize(TABLE, roles, [Closeness(0.01)], method=method)
        assert "highest level is one label" in caught.value.fix


def test_rows_are_suppressed_all_together_where_no_label_is_highest(tmp_path: Path):
    (tmp_path / "sex.csv").write_text("f\nm\n")
    roles = Roles.from_dict({"quasi": ["sex"], "sensitive": ["ill"], "hierarchies": {"sex": "sex.csv"}}, tmp_path)
    for method in METHODS:
        found = anonymize(TABLE, roles, [Closeness(0.01)], method=method, suppress=1.0)
        assert set(found.table["sex"].cells()) == {"*"}
        assert (found.suppressed, found.generalised) == (TABLE.rows, 0)


@pytest.mark.parametrize(
    "options", [{"suppress": 1.5}, {"suppress": -0.1}, {"loss": "regret"}, {"method": "magic"}, {"time": 0.0}]
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]):
    with pytest.raises(InputError):
        anonymize(TABLE, ROLES, [KAnonymity(2)], **options)  # type: ignore[arg-type]


def test_a_hierarchy_that_misses_a_value_is_refused(tmp_path: Path):
    (tmp_path / "sex.csv").write_text("f;*\n")
    roles = Roles.from_dict({"quasi": ["sex"], "hierarchies": {"sex": "sex.csv"}}, tmp_path)
    with pytest.raises(PolicyInvalidError, match="misses 1 of the 2 values"):
        anonymize(TABLE, roles, [KAnonymity(2)])


def test_files_in_and_out(tmp_path: Path):
    write_table(TABLE, tmp_path / "in.csv")
    found = anonymize(read_table(tmp_path / "in.csv"), ROLES, [KAnonymity(2), DistinctDiversity(2)], method="local")
    write_table(found.table, tmp_path / "out.csv")
    again = read_table(tmp_path / "out.csv")
    assert check(again, ROLES, [KAnonymity(2), DistinctDiversity(2)]).met
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "name,age,sex,ill"


def test_progress_only_goes_up():
    seen = list[float]()
    rng = np.random.default_rng(1)
    table = Table.of({"a": [str(each) for each in rng.integers(0, 50, 500)], "b": list(rng.choice(["x", "y"], 500))})
    roles = Roles.from_dict({"quasi": ["a", "b"], "hierarchies": {"a": {"width": 5, "levels": 3}}}, Path())
    for method in METHODS:
        anonymize(table, roles, [KAnonymity(5)], method=method, progress=lambda share, _: seen.append(share))
        assert seen == sorted(seen) and all(0 <= each <= 1 for each in seen)
        seen.clear()


@pytest.mark.parametrize(
    "options",
    [
        {"l": 2, "l_kind": "odd"},
        {"l": 2, "l_kind": "recursive"},
        {"c": 2},
        {"t_distance": "equal"},
        {"t": 0.1, "t_distance": "odd"},
        {"presence": (0.0, 1.0)},
    ],
)
def test_options_that_lack_another_are_refused(options: dict[str, object]):
    with pytest.raises(InputError) as caught:
        asked(**options)  # type: ignore[arg-type]
    assert caught.value.fix


def test_a_population_may_hold_any_number():
    table = Table.of({"age": ["21", "22", "31", "32"]})
    people = Table.of({"age": ["21", "22", "31", "32", "25.5", "35", "-1", "-2.5"]})
    roles = Roles.from_dict({"quasi": ["age"], "hierarchies": {"age": {"width": 10}}}, Path())
    found = anonymize(table, roles, [Presence(0, 0.7, people)])
    assert found.table["age"].cells() == ["20-29", "20-29", "30-39", "30-39"]
    assert check(found.table, roles, [Presence(0, 0.7, people)]).met


@pytest.mark.parametrize("method", METHODS)
def test_hierarchies_may_have_many_levels(method: str, tmp_path: Path):
    values = ["a", "b", "c", "d"]
    middle = ";".join(f"{{0}}{level}" for level in range(200))
    lines = [f"{each};{middle.format('x' if each in 'ab' else 'y')};*" for each in values]
    (tmp_path / "long.csv").write_text("\n".join(lines))
    roles = Roles.from_dict({"quasi": ["a"], "hierarchies": {"a": "long.csv"}}, tmp_path)
    found = anonymize(Table.of({"a": values}), roles, asked(k=2), method=method)
    assert found.table["a"].cells() == ["x0", "x0", "y0", "y0"]
    found = anonymize(Table.of({"a": ["a", "c"]}), roles, asked(k=2), method=method)
    assert found.table["a"].cells() == ["*", "*"]


@pytest.mark.parametrize("method", ["optimal", "greedy"])
def test_no_time_is_not_no_table(method: str, tmp_path: Path):
    # at the highest level a row too few is left; finer nodes suppress more, and are tried while there is time
    (tmp_path / "sex.csv").write_text("f\nm\nx\n")
    roles = Roles.from_dict({"quasi": ["sex", "age"], "hierarchies": {"sex": "sex.csv"}}, tmp_path)
    table = Table.of({"sex": ["f"] * 6 + ["m"] * 6 + ["x"], "age": [*"111222", *"111222", "1"]})
    assert anonymize(table, roles, asked(k=3), suppress=0.5, method=method).models[0].met
    with pytest.raises(InputError, match="Time was over before a table was found") as caught:
        anonymize(table, roles, asked(k=3), suppress=0.5, method=method, time=1e-9)
    assert "more time" in caught.value.fix


def test_what_time_did_not_show_is_not_said_to_be_impossible():
    task = problem(TABLE, ROLES, asked(k=2), ends=0.0)
    whole = task.groups(np.zeros(TABLE.rows, np.int64), 1)
    assert "Time was over" in str(task.unreachable(whole))
    assert "No generalisation of this table was found" in str(problem(TABLE, ROLES, asked(k=2)).unreachable(whole))
    never = problem(TABLE, ROLES, asked(l=4), ends=0.0)  # not even all rows together: that is certain
    assert "No generalisation of this table has" in str(never.unreachable(never.groups(np.zeros(6, np.int64), 1)))

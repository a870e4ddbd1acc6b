"""Hierarchies: from a file, widths, prefixes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dalenius.anonymity.hierarchies import FileSpec, Hierarchy, WidthSpec, build, spec_of, write_hierarchy
from dalenius.anonymity.hierarchy_files import hierarchy_file
from dalenius.errors import InputError, PolicyInvalidError


def paths(hierarchy: Hierarchy) -> dict[str | None, tuple[str | None, ...]]:
    return {
        value: tuple(labels[own[code]] for labels, own in zip(hierarchy.labels, hierarchy.maps, strict=True))
        for code, value in enumerate(hierarchy.labels[0])
    }


@pytest.mark.parametrize("delimiter", [";", ","])
def test_files_as_arx_has_them(delimiter: str, tmp_path: Path):
    lines = ["81667;8166*;81***;*", "81675;8167*;81***;*", "81925;8192*;81***;*", "99999;9999*;99***;*"]
    (tmp_path / "zip.csv").write_text("\n".join(lines).replace(";", delimiter))
    found = build(spec_of("zip", "zip.csv", tmp_path), "zip", ("81667", "81675", "81925"))
    assert paths(found)["81675"] == ("81675", "8167*", "81***", "*")
    # what the table does not have does not count
    assert found.total == 3 and found.ncp(2).tolist() == [1.0] and found.ncp(1).tolist() == [0, 0, 0]
    assert found.rooted and found.levels == 4
    assert found.covers("81***").all() and found.covers("8166*").tolist() == [True, False, False]
    assert found.covers("*").all() and not found.covers("nothing").any()


def test_widths_double_and_end_in_a_star():
    found = build(spec_of("age", {"width": 5, "levels": 4}, Path()), "age", ("0", "4", "5", "39", "40", None))
    assert paths(found)["39"] == ("39", "35-39", "30-39", "20-39", "0-39", "*")
    assert paths(found)[None] == (None, None, None, None, None, "*")
    found = build(WidthSpec(Decimal("0.5"), 2, Decimal("0.25")), "x", ("-0.3", "0.25", "0.74", "0.75"))
    assert paths(found)["0.74"] == ("0.74", "[0.25, 0.75)", "[0.25, 1.25)", "*")
    assert paths(found)["-0.3"][1] == "[-0.75, -0.25)"
    found = build(spec_of("x", {"width": 10, "factor": 10, "levels": 2}, Path()), "x", ("7", "95"))
    assert paths(found)["95"] == ("95", "90-99", "0-99", "*")


def test_prefixes_hide_the_rest():
    found = build(spec_of("zip", {"prefix": [4, 2]}, Path()), "zip", ("12345", "123", "1"))
    assert paths(found) == {
        "12345": ("12345", "1234*", "12***", "*"),
        "123": ("123", "123", "12*", "*"),
        "1": ("1", "1", "1", "*"),
    }


def test_what_was_built_can_be_written_and_read(tmp_path: Path):
    values = ("3", "14", "15", None)
    found = build(spec_of("age", {"width": 5, "levels": 2}, Path()), "age", values)
    write_hierarchy(found, tmp_path / "age.csv")
    again = build(FileSpec(tmp_path / "age.csv"), "age", values)
    assert paths(again) == paths(found)


def test_covers_are_the_lowest_common_labels():
    values = tuple(str(each) for each in range(40))
    found = build(spec_of("age", {"width": 5, "levels": 2}, Path()), "age", values)
    rng = np.random.default_rng(3)
    for _ in range(200):
        some = rng.choice(40, rng.integers(1, 6))
        place = found.position[some]
        level = int(found.cover(np.array([place.min()]), np.array([place.max()]))[0])
        same = [len(set(own[some].tolist())) == 1 for own in found.maps]
        assert level == same.index(True)


@pytest.mark.parametrize(
    ("text", "values", "says"),
    [
        ("a;*\nb;*\n", ("a", "c"), "misses 1 of the 2 values"),
        ("a;*\nb;*\n", ("a", None), "begin its line with an empty cell"),
        ("a;x;*\nb;x;+\n", ("a", "b"), "not nested at level 2"),
        ("a;*\na;*\n", ("a",), "a value twice"),
        ("a;x;*\nb;*\n", ("a",), "not of one length"),
        ("", ("a",), "is empty"),
        (None, ("a",), "cannot be read"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    text: str | None, values: tuple[str | None, ...], says: str, tmp_path: Path
):
    if text is not None:
        (tmp_path / "h.csv").write_text(text)
    with pytest.raises(PolicyInvalidError) as caught:
        build(FileSpec(tmp_path / "h.csv"), "city", values)
    assert says in str(caught.value) and "anonymity.hierarchies.city" in str(caught.value)
    assert "'c'" not in str(caught.value)


def test_intervals_of_texts_are_refused():
    with pytest.raises(PolicyInvalidError, match="does not hold numbers alone"):
        build(WidthSpec(Decimal(5)), "city", ("1", "Bonn"))


@pytest.mark.parametrize(
    "written",
    [7, "", {}, {"width": 0}, {"width": "5"}, {"width": 5, "levels": 0}, {"width": 5, "step": 1}, {"prefix": [1, 2]},
     {"prefix": 0}, {"prefix": []}, {"width": True}, {"width": 5, "factor": 1.5}, ["zip.csv"]],
)  # fmt: skip
def test_what_is_no_hierarchy_is_refused(written: Any):
    with pytest.raises(PolicyInvalidError, match=r"anonymity\.hierarchies\.zip"):
        spec_of("zip", written, Path())


@pytest.mark.parametrize(
    "value", ["1e999999", "1e9999999", "1e99999999999999999999", "1e-999999", "nan", "inf", "1" * 101]
)
def test_a_number_beyond_all_digits_is_refused_at_once(value: str):
    with pytest.raises(PolicyInvalidError, match="numbers alone"):
        build(spec_of("x", {"width": 5}, Path()), "x", ("1", value))


def test_numbers_of_many_digits_have_exact_labels():
    long = "1" + "0" * 28 + "7"
    found = build(spec_of("x", {"width": 5, "levels": 2}, Path()), "x", (long, "1e40"))
    assert paths(found)[long][1:3] == ("1" + "0" * 28 + "5-1" + "0" * 28 + "9", "1" + "0" * 29 + "-1" + "0" * 28 + "9")
    assert paths(found)["1e40"][1] == f"{10**40}-{10**40 + 4}"


def test_labels_do_not_depend_on_other_values():
    spec = spec_of("age", {"width": 10, "levels": 2}, Path())
    alone = build(spec, "age", ("20", "31"))
    beside = build(spec, "age", ("20", "31", "-3", "29.5", None))
    assert paths(alone)["20"] == paths(beside)["20"] == ("20", "20-29", "20-39", "*")
    assert paths(beside)["29.5"][1] == "20-29" and paths(beside)["-3"][1] == "[-10, 0)"


@pytest.mark.parametrize("written", [{"width": 10, "levels": 2}, {"prefix": [1]}, "suppress"])
def test_a_file_says_what_the_policy_would(written: object, tmp_path: Path):
    values = ("5", "12", "31", None)
    file = hierarchy_file(tmp_path / "age.csv", reversed(values), written)
    asked = build(spec_of("age", written, tmp_path), "age", values)
    assert paths(build(FileSpec(file), "age", values)) == paths(asked)


def test_groups_are_told_level_by_level(tmp_path: Path):
    regions = {"south": ["Ulm", "München; Ost"], "north": ["Kiel", "Kiel-West"]}
    file = hierarchy_file(tmp_path / "c.csv", ["Ulm", "Kiel", "Kiel-West", "Bonn", "München; Ost"], [regions])
    found = paths(build(FileSpec(file), "c", ("Bonn", "Kiel", "München; Ost")))
    assert found["Kiel"] == ("Kiel", "north", "*") and found["Bonn"] == ("Bonn", "Bonn", "*")
    assert found["München; Ost"] == ("München; Ost", "south", "*")
    two = hierarchy_file(tmp_path / "d.csv", ["Ulm", "Kiel", None], [{"D": ["Ulm", "Kiel"]}, {"all": "D"}])
    assert paths(build(FileSpec(two), "d", ("Ulm", None))) == {
        "Ulm": ("Ulm", "D", "all", "*"),
        None: (None, None, None, "*"),
    }


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([{"north": ["Kiel", "Rom"]}], "'Rom', which is not on the level below"),
        ([{"north": ["Kiel"], "south": ["Kiel"]}], "which another label covers"),
        ([{"Ulm": ["Kiel"]}], "'Ulm' is a label, and stands below as well"),
        (["north"], "Level 1 is no groups"),
        ("c.csv", "is one already"),
    ],
)
def test_groups_that_are_no_hierarchy_are_refused(groups: object, words: str, tmp_path: Path):
    with pytest.raises(InputError, match=words):
        hierarchy_file(tmp_path / "c.csv", ["Ulm", "Kiel"], groups)
    assert not list(tmp_path.iterdir())

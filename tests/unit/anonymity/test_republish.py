"""m-invariance: five releases with births and deaths, and nobody's values ever narrow."""

from __future__ import annotations

import stat
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from dalenius.anonymity.checking import check_release
from dalenius.anonymity.models.invariance import Release, check_series, signatures
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.anonymity.transformers.buckets import _drawn, eligible
from dalenius.anonymity.transformers.republish import republish
from dalenius.anonymity.transformers.republish_state import State
from dalenius.errors import InputError

ROLES = Roles.from_dict(
    {
        "quasi": ["age", "zip"],
        "sensitive": ["ill"],
        "hierarchies": {"age": {"width": 5, "levels": 3}, "zip": {"prefix": [3, 1]}},
    },
    Path(),
)


def table_of(people):
    """From person: (age, zip, value)."""
    rows = sorted(people.items())
    return Table.of(
        {
            "id": [who for who, _ in rows],
            "age": [str(age) for _, (age, _, _) in rows],
            "zip": [place for _, (_, place, _) in rows],
            "ill": [value for _, (_, _, value) in rows],
            "note": ["n"] * len(rows),
        }
    )


person = st.tuples(
    st.integers(0, 90), st.sampled_from(["10115", "10117", "10999", "20095", "80331"]), st.sampled_from("abcdef")
)


@settings(max_examples=examples(200))
@given(
    st.integers(2, 4),
    st.lists(st.tuples(st.lists(person, max_size=14), st.sets(st.integers(0, 60), max_size=8)), min_size=5, max_size=5),
)
def test_five_releases_with_births_and_deaths_are_m_invariant(m, steps):
    alive: dict[str, tuple[int, str, str]] = {}
    gone: dict[str, tuple[int, str, str]] = {}
    born, state, series = 0, None, []
    for births, deaths in steps:
        for each in births:
            alive[f"p{born}"] = each
            born += 1
        for at in deaths:
            if f"p{at}" in alive:
                gone[f"p{at}"] = alive.pop(f"p{at}")
            elif f"p{at}" in gone:  # some come back
                alive[f"p{at}"] = gone.pop(f"p{at}")
        table = table_of(alive)
        if not alive or not eligible(Counter(value for _, _, value in alive.values()), m):
            with pytest.raises(InputError):
                republish(table, ROLES, m, person="id", previous=state)
            continue
        release = republish(table, ROLES, m, person="id", previous=state)
        state = release.state
        series.append(Release(release.table, release.placed))
        _check(release, alive)
    if series:
        found = check_series(series, m, group="id", sensitive="ill")
        assert found.met, found


def _check(release, alive):
    """All who live are there, in a class whose labels cover them and that has their value."""
    table = release.table
    assert set(release.placed) == set(alive) and table.names == ("id", "age", "zip", "ill", "note")
    assert table.rows - len(alive) == sum(release.counterfeits.values()) == release.to_dict()["counterfeits"]
    shown = signatures(table, "id", "ill")
    rows = {name: at for at, name in enumerate(table["id"].cells())}
    real = Counter(release.placed.values())
    sizes = Counter(table["id"].cells())
    for who, (age, place, value) in alive.items():
        at = rows[release.placed[who]]
        assert value in shown[release.placed[who]][0]
        label = table["age"].cells()[at]
        low, _, high = label.partition("-") if "-" in label else (label, "", label)
        assert label == "*" or int(low) <= age <= int(high)
        assert all(a in (b, "*") for a, b in zip(table["zip"].cells()[at], place, strict=False))
    for name, size in sizes.items():  # in every class somebody is real
        assert real[name] >= 1 and size - real[name] == release.counterfeits.get(name, 0)


def test_the_order_of_rows_does_not_matter():
    people = {f"p{at}": (at % 60, ["10115", "20095"][at % 2], "abcd"[at % 4]) for at in range(40)}
    table = table_of(people)
    one, other = (republish(each, ROLES, 3, person="id") for each in (table, table.take(np.arange(39, -1, -1))))
    assert [each.cells() for each in one.table.columns.values()] == [
        each.cells() for each in other.table.columns.values()
    ]
    assert one.placed == other.placed and one.counterfeits == {}


def test_one_birth_is_published_with_counterfeits():
    """The paper's new people must be eligible by themselves; here they need not."""
    people = {f"p{at}": (30 + at, "10115", "abcd"[at % 4]) for at in range(8)}
    first = republish(table_of(people), ROLES, 2, person="id")
    people["new"] = (44, "10115", "a")
    second = republish(table_of(people), ROLES, 2, person="id", previous=first.state)
    assert 1 <= sum(second.counterfeits.values()) <= 1
    assert check_series(
        [Release(each.table, each.placed) for each in (first, second)], 2, group="id", sensitive="ill"
    ).met


def test_the_signature_of_a_single_birth_is_as_likely_for_each_of_its_values():
    """Were it the cheapest bucket that has the value, whoever runs the algorithm for all values would know which."""
    people = {f"p{at}": (30 + at, "10115", "abacadabcd"[at % 10]) for at in range(20)}
    first = republish(table_of(people), ROLES, 2, person="id")
    seen = Counter(
        (republish(table_of({**people, "new": (33, "10115", value)}), ROLES, 2, person="id", previous=first.state)
         .state.signatures["new"], value)
        for value in "abcd"
        for _ in range(45)
    )  # fmt: skip
    # each of 12 pairs has probability 1/3: one is missed with probability 12·(2/3)⁴⁵ < 1.5e-7
    assert set(seen) == {(pair, value) for pair in combinations("abcd", 2) for value in pair}
    # 3,000 draws: 1,000 ± 26; 5.2 standard deviations are passed by one of three with probability 6e-7
    drawn = Counter(_drawn("b", 3, set("abcd")) for _ in range(3000))
    assert set(drawn) == {tuple("abc"), tuple("abd"), tuple("bcd")}
    assert all(abs(each - 1000) < 135 for each in drawn.values())


def test_what_people_lose_is_told_and_made_up_rows_lose_nothing():
    people = {f"p{at}": (10 * at, "10115", "abcd"[at % 4]) for at in range(8)}
    first = republish(table_of(people), ROLES, 2, person="id")
    assert first.loss.class_size == 2 and first.loss.discernibility == 16
    assert 0 < first.loss.ncp < 1 and first.to_dict()["loss"] == first.loss.to_dict()
    del people["p0"]
    second = republish(table_of(people), ROLES, 2, person="id", previous=first.state)
    assert sum(second.counterfeits.values()) == 1 and second.table.rows == 8
    assert second.loss.class_size == 7 / 4 and second.loss.discernibility == 13


def test_a_release_is_checked_from_what_is_published():
    people = {f"p{at}": (30 + at, "10115", "abc"[at % 3]) for at in range(12)}
    table = republish(table_of(people), ROLES, 3, person="id").table
    assert check_release(table, ROLES, 3, group="id").met
    cells = {name: table[name].cells() for name in table.names}
    twice = Table.of({**cells, "ill": ["a", "a", *cells["ill"][2:]]})
    found = check_release(twice, ROLES, 2, group="id").findings[0]
    assert not found.met and found.reached == 0 and (found.failing_classes, found.failing_rows) == (1, 3)
    told_apart = Table.of({**cells, "age": ["30", *cells["age"][1:]]})
    assert check_release(told_apart, ROLES, 3, group="id").findings[0].failing_classes == 1
    with pytest.raises(InputError):
        check_release(table, ROLES, 1, group="id")


def test_deaths_leave_the_signature_and_need_counterfeits():
    people = {f"p{at}": (30 + at, "10115", "ab"[at % 2]) for at in range(8)}
    people |= {f"q{at}": (30 + at, "10115", "cd"[at % 2]) for at in range(8)}
    first = republish(table_of(people), ROLES, 2, person="id")
    for at in (0, 2, 4):
        del people[f"p{at}"]
    second = republish(table_of(people), ROLES, 2, person="id", previous=first.state)
    pairs = [Release(each.table, each.placed) for each in (first, second)]
    assert second.counterfeits and check_series(pairs, 2, group="id", sensitive="ill").met
    fresh = republish(table_of({who: people[who] for who in sorted(people, reverse=True)[:6]}), ROLES, 2, person="id")
    assert fresh.state.releases == 1


def test_a_series_that_forgets_is_caught():
    """The same people published twice without the state: classes of other values, which can be intersected."""
    people = {f"p{at}": (at, "10115", "abcdef"[at % 6]) for at in range(24)}
    first = republish(table_of(people), ROLES, 2, person="id")
    for at in range(0, 24, 3):
        del people[f"p{at}"]
    forgetful = republish(table_of(people), ROLES, 3, person="id")
    found = check_series(
        [Release(each.table, each.placed) for each in (first, forgetful)], 2, group="id", sensitive="ill"
    )
    assert not found.met and found.changed > 0
    twice = Table.of({"id": ["1", "1", "1"], "ill": ["a", "a", "b"]})
    found = check_series([Release(twice, {"x": "1", "y": "9"})], 2, group="id", sensitive="ill")
    assert found.reached == 0 and found.repeated == 1 and found.missing == 1 and not found.met


def test_a_value_above_one_in_m_is_refused_without_naming_it():
    people = {f"p{at}": (at, "10115", "secret" if at < 5 else "abc"[at % 3]) for at in range(12)}
    with pytest.raises(InputError, match="5 of 12 rows, which is more than 1/3") as error:
        republish(table_of(people), ROLES, 3, person="id")
    assert "secret" not in str(error.value) and "m = 2" in error.value.fix


def test_what_does_not_fit_is_refused(tmp_path):
    people = {f"p{at}": (at, "10115", "abc"[at % 3]) for at in range(12)}
    table = table_of(people)
    first = republish(table, ROLES, 2, person="id")
    for m, who in ((3, "id"), (1, "id"), (2, "age"), (2, "note")):
        with pytest.raises(InputError):
            republish(table, ROLES, m, person=who, previous=first.state)
    with pytest.raises(InputError, match="another series"):
        republish(table, ROLES, 2, person="id", previous=State(2, "other", "ill"))
    people["p0"] = (0, "10115", "x")
    with pytest.raises(InputError, match="1 people have a value"):
        republish(table_of(people), ROLES, 2, person="id", previous=first.state)
    with pytest.raises(InputError, match="no rows"):
        republish(table_of({}), ROLES, 2, person="id")


def test_the_state_goes_through_a_file_that_others_cannot_read(tmp_path):
    people = {f"p{at}": (at, "10115", [None, "b", "c"][at % 3]) for at in range(12)}
    first = republish(table_of(people), ROLES, 2, person="id")
    file = tmp_path / "state.json"
    first.state.write(file)
    assert State.read(file) == first.state and stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(InputError, match="Others may read"):
        State.read(file)
    for text in ("{}", "no json", '{"format": "dalenius-m-invariance-1", "signatures": [], "people": {"a": 3}}'):
        other = tmp_path / "other"
        other.write_text(text)
        other.chmod(0o600)
        with pytest.raises(InputError, match="no state"):
            State.read(other)

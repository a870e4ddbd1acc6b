"""[anonymity] in a policy: read as it is written, every mistake named, and old histories read as before."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import PolicyInvalidError, SourceUnavailableError
from dalenius.tables.anonymity import files_of, read_unprotected
from dalenius.tables.difference import difference
from dalenius.tables.reading import read_file, read_text

SECTION = """[anonymity]
identifiers = ["name"]
quasi = ["age", "zip", "sex"]
sensitive = ["diagnosis"]
hierarchies = { zip = "zip.csv", age = { width = 5, levels = 4 }, sex = "suppress" }
weights = { age = 2 }
"""
BARE = '[table]\nname = "people"\nsource = "people.csv"\n'


def written(folder: Path, text: str) -> Path:
    file = folder / "people.toml"
    file.write_text(text)
    return file


def test_a_table_that_is_not_protected_needs_a_name_and_a_source_alone(tmp_path):
    name, source, found = read_unprotected(written(tmp_path, BARE + SECTION))
    assert (name, source) == ("people", (str(tmp_path / "people.csv"),))
    assert found["hierarchies"]["zip"] == str(tmp_path / "zip.csv") and found["weights"] == {"age": 2}
    assert files_of(found) == [str(tmp_path / "zip.csv")]


def test_to_protect_the_same_file_still_needs_the_rest(tmp_path):
    with pytest.raises(PolicyInvalidError, match=r"table\.unit: this is missing"):
        read_file(written(tmp_path, BARE + SECTION))


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        ("quasi =", "quassi =", r"anonymity\.quassi.*Did you mean 'quasi'"),
        ("width = 5", "widht = 5", r"anonymity\.hierarchies\.age\.widht.*Did you mean 'width'"),
        ("age = 2", "aeg = 2", r"anonymity\.weights\.aeg.*Did you mean 'age'"),
        ("age = 2", "age = -1", r"anonymity\.weights\.age: this must be a number from 0 up"),
        ("zip = ", "zipp = ", r"anonymity\.hierarchies\.zipp.*Did you mean 'zip'"),
        ('"suppress"', "3", r"anonymity\.hierarchies\.sex: this cannot be a whole number"),
        ('["diagnosis"]', '["age"]', r"anonymity\.sensitive: 'age' is among quasi too.*Keep it in sensitive or"),
        ('["name"]', '["age"]', r"'age' is among identifiers too"),
        ('["name"]', '"name", 3', "not TOML"),
        ('["diagnosis"]', '["diagnosis", "diagnosis"]', "a column is there twice"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_what_was_meant(tmp_path, before, after, what):
    assert before in SECTION
    with pytest.raises(PolicyInvalidError, match=what):
        read_unprotected(written(tmp_path, BARE + SECTION.replace(before, after, 1)))


def test_a_file_without_the_section_or_without_a_source_says_what_to_write(tmp_path):
    with pytest.raises(PolicyInvalidError, match=r"anonymity: this is missing.*\[anonymity\]"):
        read_unprotected(written(tmp_path, BARE))
    with pytest.raises(PolicyInvalidError, match=r"table\.source: this is missing"):
        read_unprotected(written(tmp_path, '[table]\nname = "people"\n' + SECTION))
    with pytest.raises(SourceUnavailableError, match="cannot be read"):
        read_unprotected(tmp_path / "missing.toml")


def test_what_an_earlier_release_recorded_is_still_read(visits, tmp_path):
    old = visits + '\n[anonymity]\nroles = { age = "quasi" }\nsince = 2025-01-01\n'
    assert read_text(old, tmp_path, recorded=True).anonymity == {"roles": {"age": "quasi"}, "since": "2025-01-01"}
    with pytest.raises(PolicyInvalidError, match=r"anonymity\.roles: there is no such key"):
        read_text(old, tmp_path)


def test_a_changed_role_is_told_and_changes_no_stored_answer(visits, tmp_path):
    before = read_text(f"{visits}\n{SECTION}", tmp_path)
    after = read_text(f"{visits}\n{SECTION.replace('age = 2', 'age = 3')}", tmp_path)
    assert [str(each) for each in difference(before, after)] == ["anonymity.weights.age: 2 → 3"]
    assert before.meaning == after.meaning and before.version != after.version
    assert read_text(before.text) == before

"""The section [public]: read, written back, not a part of the meaning."""

from pathlib import Path

import pytest

from dalenius.errors import PolicyInvalidError
from dalenius.tables import PublicSpec, read_text
from dalenius.tables.difference import difference

FOLDER = Path("/data")
PUBLIC = """
[public]
tables = { regions = "regions.csv", nation = { source = ["a.parquet", "b.parquet"], key = "n_nationkey" } }
"""


def read(text, folder=FOLDER):
    return read_text(text, folder)


def test_a_public_table_is_a_path_or_says_source_and_key(visits):
    assert read(visits + PUBLIC).public == {
        "regions": PublicSpec("regions", ("/data/regions.csv",)),
        "nation": PublicSpec("nation", ("/data/a.parquet", "/data/b.parquet"), ("n_nationkey",)),
    }
    assert read(visits).public == {}


def test_a_section_per_table_means_the_same(visits):
    longer = '[public.tables.regions]\nsource = "regions.csv"\n[public.tables.nation]\nkey = ["n_nationkey"]\n'
    assert read(visits + longer + 'source = ["a.parquet", "b.parquet"]\n') == read(visits + PUBLIC)


def test_what_is_written_reads_back_the_same(visits):
    policy = read(visits + PUBLIC)
    again = read_text(policy.text)
    assert again == policy and again.version == policy.version
    assert policy.to_dict()["public"]["tables"]["nation"]["key"] == ["n_nationkey"]
    assert read(visits).version != policy.version


def test_moved_files_mean_the_same_and_other_tables_do_not(visits):
    here, there = read(visits + PUBLIC), read(visits + PUBLIC, Path("/elsewhere"))
    assert here.meaning == there.meaning and here.version != there.version
    # What a question reads of them is in its own key: one more public table makes nobody pay again.
    assert read(visits).meaning == here.meaning


def test_the_difference_names_the_table(visits):
    changes = difference(read(visits), read(visits + PUBLIC))
    assert [change.place for change in changes] == [
        "public.tables.regions.source",
        "public.tables.nation.source",
        "public.tables.nation.key",
    ]
    assert "exactly" in changes[0].note


@pytest.mark.parametrize(
    ("tables", "place", "words"),
    [
        ('{ visits = "a.csv" }', "public.tables.visits", "there is a table 'visits'"),
        ('{ Visits = "a.csv" }', "public.tables.Visits", "there is a table 'visits'"),
        ('{ regions = "a.csv", REGIONS = "b.csv" }', "public.tables.REGIONS", "there is a table 'regions'"),
        ('{ "a b" = "a.csv" }', "public.tables.a b", "cannot be used"),
        ("{ regions = 3 }", "public.tables.regions", "a path or a list"),
        ("{ regions = [] }", "public.tables.regions", "a path or a list"),
        ('{ regions = "https://example.org/a.csv" }', "public.tables.regions", "an address"),
        ('{ regions = { key = "a" } }', "public.tables.regions.source", "this is missing"),
        ('{ regions = { source = "a.csv", keys = "a" } }', "public.tables.regions.keys", "no such key"),
        ('{ regions = { source = "a.csv", key = [] } }', "public.tables.regions.key", "a column or a list"),
        ('{ regions = { source = "a.csv", key = ["a", "a"] } }', "public.tables.regions.key", "twice"),
        ("3", "public.tables", "this must be a table"),
    ],
)
def test_mistakes_are_named_with_their_place(visits, tables, place, words):
    with pytest.raises(PolicyInvalidError) as caught:
        read(visits + f"[public]\ntables = {tables}\n")
    assert caught.value.message.startswith(f"{place}:") and words in caught.value.message


def test_a_misspelled_key_of_the_section_is_told(visits):
    with pytest.raises(PolicyInvalidError, match=r"public\.table:") as caught:
        read(visits + '[public]\ntable = { a = "a.csv" }\n')
    assert "tables" in caught.value.fix

"""Roles as a policy tells them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from dalenius.anonymity.hierarchies import FileSpec, SuppressSpec
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.table import Table
from dalenius.errors import PolicyInvalidError

WRITTEN = """
[anonymity]
identifiers = ["name"]
quasi = ["age", "zip", "sex"]
sensitive = ["diagnosis"]
hierarchies = { zip = "zip.csv", age = { width = 5, levels = 4 }, sex = "suppress" }
weights = { age = 2 }
"""


def test_a_policy_is_accepted_as_the_issue_writes_it(tmp_path: Path):
    found = Roles.from_dict(tomllib.loads(WRITTEN)["anonymity"], tmp_path)
    assert found.quasi == ("age", "zip", "sex") and found.identifiers == ("name",) and found.sensitive == ("diagnosis",)
    assert found.hierarchies["zip"] == FileSpec(tmp_path / "zip.csv") and found.spec("sex") == SuppressSpec()
    assert found.weight("age") == 2 and found.weight("zip") == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"quasi": []}, "anonymity.quasi: no quasi-identifier"),
        ({"quasi": "age"}, "anonymity.quasi: these are no names"),
        ({"quasi": ["age", "diagnosis"]}, "anonymity.sensitive: 'diagnosis' stands in quasi, too"),
        ({"identifiers": ["age"]}, "anonymity.quasi: 'age' stands in identifiers, too"),
        ({"quasi": ["age", "age"]}, "'age' stands twice"),
        ({"hierarchy": {}}, "anonymity.hierarchy: there is no such key"),
        ({"hierarchies": {"name": "suppress"}}, "anonymity.hierarchies.name"),
        ({"weights": {"sex": -1}}, "anonymity.weights.sex"),
        ({"weights": {"age": 0, "zip": 0, "sex": 0}}, "all weights are 0"),
        ({"weights": []}, "anonymity.weights"),
    ],
)
def test_a_mistake_is_named_by_its_key(change: dict[str, Any], says: str, tmp_path: Path):
    written = {**tomllib.loads(WRITTEN)["anonymity"], "hierarchies": {}, **change}
    with pytest.raises(PolicyInvalidError) as caught:
        Roles.from_dict(written, tmp_path)
    assert says in str(caught.value)


def test_a_column_that_the_table_lacks_is_named():
    table = Table.of({"age": ["1"], "Zip": ["2"]})
    with pytest.raises(PolicyInvalidError, match=r"no column 'zip'.*Write 'Zip'"):
        Roles(quasi=("age", "zip")).check(table)

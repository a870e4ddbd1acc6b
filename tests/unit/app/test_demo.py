"""The tour shows what it claims."""

import json

from dalenius.app.cli import build
from dalenius.app.cli.run import run


def test_the_tour_compares_four_ways_of_adding_up(capsys):
    assert run(build(), ["demo", "--json", "--quiet"]) == 0
    spending = json.loads(capsys.readouterr().out)["spending"]
    errors = spending["noise_error"]
    assert spending["counts"] == [1, 10, 100, 1000] and set(errors) == {"basic", "advanced", "zcdp", "pld"}
    assert errors["pld"][3] < errors["zcdp"][3] < errors["advanced"][3] < errors["basic"][3]
    assert all(pld <= min(row[place] for row in errors.values()) * 1.001 for place, pld in enumerate(errors["pld"]))


def test_people_see_a_table_and_a_chart(capsys):
    assert run(build(), ["demo"]) == 0
    out = capsys.readouterr().out
    assert "1,000 counts" in out and "█" in out and "zCDP" in out

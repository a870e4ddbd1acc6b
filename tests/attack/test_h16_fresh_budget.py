"""H16: a new session, a copy, a rename or a link of a table never gets a fresh budget."""

import os
import shutil
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import nothing_charged, people, protected

from dalenius import Curator
from dalenius.accounting.events import Zcdp
from dalenius.errors import BudgetError, DaleniusError, NotAllowedError
from dalenius.ledger import Request

POLICY = """
[table]
name = "{name}"
source = "{source}"
unit = "user_id"
{more}
[columns.age]
type = "integer"
[contribution]
rows = 5
"""
BUDGET = "[budget]\nepsilon = 1.0\ndelta = 1e-6\n[analysts.ana]\nepsilon = 1.0"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path, here):
    """One protected table, half of its budget gone."""
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"user_id": [1, 2], "age": [20, 30]}), tmp_path / "data" / "a.parquet")
    curator = protect(tmp_path, "visits", "data/a.parquet")
    rho = curator.ledger.budget("visits").filter().price(0.5).rho
    curator.ledger.ask(Request("visits", "ana", "count", 0.5, Zcdp(rho)), lambda _: b"1")
    return tmp_path


def protect(folder, name, source, more=BUDGET, yes=False):
    (folder / f"{name}.toml").write_text(POLICY.format(name=name, source=source, more=more))
    curator = Curator()
    curator.protect(folder / f"{name}.toml", yes=yes, reason="r" if yes else "")
    return curator


def left():
    return Curator().ledger.balance("visits", "ana").remaining_epsilon


def test_a_new_session_sees_the_old_balance(folder):
    before = left()
    assert 0 < before < 1
    protect(folder, "visits", "data/a.parquet")
    assert left() == before


def copied(folder):
    shutil.copy(folder / "data/a.parquet", folder / "b.parquet")
    return "b.parquet"


def renamed(folder):
    (folder / "data/a.parquet").rename(folder / "b.parquet")
    return "b.parquet"


def linked(folder):
    (folder / "b.parquet").symlink_to(folder / "data/a.parquet")
    return "b.parquet"


def hard_linked(folder):
    (folder / "b.parquet").hardlink_to(folder / "data/a.parquet")
    return "b.parquet"


def rewritten_in_place(folder):
    pq.write_table(pa.table({"user_id": [1, 2], "age": [21, 31]}), folder / "data" / "a.parquet")
    return "data/a.parquet"


def among_others(folder):
    (folder / "more").mkdir()
    shutil.copy(folder / "data/a.parquet", folder / "more/a.parquet")
    pq.write_table(pa.table({"user_id": [3], "age": [40]}), folder / "more/b.parquet")
    return "more/*.parquet"


def respelled(folder):
    return "data/../data/[a].parquet"


TRICKS = [copied, renamed, linked, hard_linked, rewritten_in_place, among_others, respelled]


@pytest.mark.parametrize("trick", TRICKS)
def test_the_same_data_under_another_name_gets_no_budget_of_its_own(folder, trick):
    source = trick(folder)
    with pytest.raises(NotAllowedError, match="is known as table 'visits'"):
        protect(folder, "copy", source)
    assert Curator().ledger.datasets() == ["visits"]


@pytest.mark.parametrize("trick", [copied, linked, among_others])
def test_it_may_join_the_data_set_and_then_sees_the_old_balance(folder, trick):
    before = left()
    protect(folder, "copy", trick(folder), more='dataset = "visits"')
    assert Curator().ledger.datasets() == ["visits"] and left() == before
    assert {version.dataset for version in Curator().tables()} == {"visits"}


def test_a_source_that_was_left_behind_is_remembered(folder):
    pq.write_table(pa.table({"user_id": [3], "age": [40]}), folder / "other.parquet")
    protect(folder, "visits", "other.parquet", yes=True)
    assert Curator().tables()[0].data_version == 2
    with pytest.raises(NotAllowedError, match="is known as table 'visits'"):
        protect(folder, "again", "data/a.parquet")


def test_two_names_at_once_are_seen_too(folder):
    shutil.copy(folder / "data/a.parquet", folder / "x.parquet")
    pq.write_table(pa.table({"user_id": [9], "age": [9]}), folder / "x.parquet")
    shutil.copy(folder / "x.parquet", folder / "y.parquet")
    for name in ("x", "y"):
        (folder / f"{name}.toml").write_text(POLICY.format(name=name, source=f"{name}.parquet", more=BUDGET))
    with pytest.raises(NotAllowedError, match="is known"):
        Curator().protect(folder / "x.toml", folder / "y.toml")


def test_a_table_cannot_move_to_a_data_set_with_a_fresh_budget(folder):
    with pytest.raises(DaleniusError, match=r"known as|cannot be changed"):
        protect(folder, "visits", "data/a.parquet", more=f'dataset = "fresh"\n{BUDGET}', yes=True)
    assert Curator().ledger.datasets() == ["visits"]


def test_an_allotment_that_ended_and_came_back_remembers_what_was_spent(folder):
    before = left()
    protect(folder, "visits", "data/a.parquet", more=BUDGET.replace(".ana", ".bob"), yes=True)
    assert "ana" not in Curator().ledger.allotments("visits")
    protect(folder, "visits", "data/a.parquet", yes=True)
    assert left() == before


# --- the same, through `ask`

ASKED = "SELECT COUNT(*) FROM visits WHERE age > {}"
IN_ANOTHER_PROCESS = """
from dalenius import Curator
print(repr(Curator().analyst("eve").ask({question!r}, epsilon=0.1).remaining["dataset"]["epsilon"]))
"""


@pytest.fixture
def shop(tmp_path):
    """A table that three analysts ask about; together they hold more than there is."""
    folder = tmp_path / "shop"
    return protected(folder, people(victim=True), epsilon=1.0, analysts={"eve": 1.0, "mallory": 0.6, "trudy": 0.6})


def dataset_left(curator):
    return curator.ledger.balance("visits").remaining_epsilon


def test_a_new_curator_an_other_path_and_a_link_to_the_home_see_what_was_asked(shop, tmp_path):
    shop.analyst("eve").ask(ASKED.format(30), epsilon=0.5)
    left_over = dataset_left(shop)
    assert left_over < 1
    (tmp_path / "link").symlink_to(shop.home)
    for home in (shop.home, str(shop.home), shop.home / ".." / "home", tmp_path / "link"):
        again = Curator(home)
        assert dataset_left(again) == left_over
        same = again.analyst("eve").ask(ASKED.format(30), epsilon=0.5)
        assert same.free and dataset_left(again) == left_over
    with pytest.raises(BudgetError):
        Curator(tmp_path / "link").analyst("eve").ask(ASKED.format(40), epsilon=0.999)


def test_a_second_process_sees_the_old_balance_and_is_charged_beside_it(shop):
    shop.analyst("eve").ask(ASKED.format(30), epsilon=0.5)
    before = dataset_left(shop)
    code = IN_ANOTHER_PROCESS.format(question=ASKED.format(50))
    environment = {**os.environ, "DALENIUS_HOME": str(shop.home)}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert float(run.stdout) == dataset_left(shop) < before


@pytest.mark.parametrize("trick", ["copy", "link", "hard link"])
def test_what_was_asked_about_is_not_protected_anew(shop, trick):
    folder = shop.home.parent
    shop.analyst("eve").ask(ASKED.format(30), epsilon=0.5)
    source, other = folder / "visits.parquet", folder / "other.parquet"
    {"copy": lambda: shutil.copy(source, other), "link": lambda: other.symlink_to(source)}.get(
        trick, lambda: other.hardlink_to(source)
    )()
    before = dataset_left(shop)
    text = (folder / "visits.toml").read_text()
    (folder / "other.toml").write_text(
        text.replace('name = "visits"', 'name = "other"').replace("visits.parquet", "other.parquet")
    )
    with pytest.raises(NotAllowedError, match="is known as table 'visits'"):
        Curator(shop.home).protect(folder / "other.toml", yes=True, reason="r")
    assert dataset_left(Curator(shop.home)) == before
    with pytest.raises(DaleniusError):
        shop.analyst("eve").ask("SELECT COUNT(*) FROM other", epsilon=0.1)


def test_a_table_that_joined_the_data_set_spends_from_the_same_budget(shop):
    folder = shop.home.parent
    shutil.copy(folder / "visits.parquet", folder / "other.parquet")
    text = (folder / "visits.toml").read_text()
    head, rest = text.split("[budget]")
    rest = rest[rest.index("[columns.age]") :]
    head = head.replace('name = "visits"', 'name = "other"\ndataset = "visits"').replace(
        "visits.parquet", "other.parquet"
    )
    (folder / "other.toml").write_text(head + rest)
    curator = Curator(shop.home)
    curator.protect(folder / "other.toml")
    eve = curator.analyst("eve")
    before = dataset_left(curator)
    release = eve.ask("SELECT COUNT(*) FROM other", epsilon=0.5)
    assert not release.free and dataset_left(curator) < before
    with pytest.raises(BudgetError):
        eve.ask("SELECT COUNT(*) FROM visits", epsilon=0.95)


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_all_analysts_together_stay_within_the_total(tmp_path, accounting):
    """Three who may each spend most of it ask in turn, about different things, until none gets an answer."""
    analysts = {"eve": 0.8, "mallory": 0.8, "trudy": 0.8}
    curator = protected(tmp_path / "all", people(victim=True), epsilon=1.0, analysts=analysts, accounting=accounting)
    asking, number = list(analysts), 0
    while asking:
        who, number = asking[number % len(asking)], number + 1
        try:
            curator.analyst(who).ask(ASKED.format(19 + number % 70), epsilon=0.15)
        except BudgetError:
            asking.remove(who)
    assert number > 6
    ledger = curator.ledger
    total = ledger.balance("visits")
    assert total.spent_guarantee.epsilon <= 1.0
    assert total.spent_guarantee.epsilon > 0.8  # it was the total that stopped them, or nearly so
    charges = [entry.data for entry in ledger.records(("charge",))]
    amount = "rho" if accounting == "zcdp" else "epsilon"
    cap = ledger.budget("visits").filter().price(1.0)
    assert sum(each[amount] for each in charges) <= getattr(cap, amount) * (1 + 1e-12)
    for who, most in analysts.items():
        assert ledger.balance("visits", who).spent_guarantee.epsilon <= most


def test_an_analyst_pays_his_own_allotment_for_what_another_has_asked(shop):
    first = shop.analyst("eve").ask(ASKED.format(30), epsilon=0.5)
    before = dataset_left(shop)
    again = shop.analyst("mallory").ask(ASKED.format(30), epsilon=0.5)
    assert not again.free and again.charge["epsilon"] == 0.5
    assert again.noise_error[0][0] > first.noise_error[0][0]  # hers, and the full noise of the price on top
    assert dataset_left(shop) == before  # the data set has paid
    assert shop.ledger.balance("visits", "mallory").remaining_epsilon < 0.6


@pytest.mark.parametrize("name", ["bob", "", "eve ", "EVE", "eve\x00", "*", "%", "'; DROP TABLE charges; --"])
def test_a_name_without_an_allotment_gets_nothing(shop, name):
    with nothing_charged(shop), pytest.raises(DaleniusError):
        shop.analyst(name).ask(ASKED.format(30), epsilon=0.1)


def test_two_homes_would_be_two_budgets(shop, tmp_path):
    """Teeth: in a home of its own the same file starts anew, so what is seen above is the ledger's memory.

    That is why a home belongs to the owner: whoever may make one, and reads the file, needs no curator.
    """
    shop.analyst("eve").ask(ASKED.format(30), epsilon=0.5)
    fresh = Curator(tmp_path / "second")
    fresh.protect(shop.home.parent / "visits.toml")
    assert dataset_left(fresh) > dataset_left(shop)

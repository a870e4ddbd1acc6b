"""H16, through joins: whatever is joined, copied, named anew or called public, one data set has one budget."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import nothing_charged
from tests.attack.joined import shop_of, tables
from tests.kept import laid
from tests.shop import BUDGET, Shop

from dalenius import Curator
from dalenius.errors import BudgetError, DaleniusError, NotAllowedError, PolicyInvalidError

ONE = BUDGET.replace("50.0", "1.0")
TWO = ONE + "[analysts.eve]\nepsilon = 1.0\n"
# The same people by other ways.
ASKED = [
    "SELECT COUNT(*) FROM people WHERE age > {}",
    "SELECT COUNT(*) FROM orders WHERE amount > {}",
    "SELECT COUNT(*) FROM items WHERE price > {}",
    "SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE o.amount > {}",
    "SELECT COUNT(*) FROM orders a JOIN orders b USING (user_id) WHERE a.amount > {}",
    "WITH x AS (SELECT * FROM people) SELECT COUNT(*) FROM x WHERE age > {} AND smoker",
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount > {})",
    "SELECT COUNT(*) FROM (SELECT user_id, SUM(amount) AS t FROM orders GROUP BY user_id) x WHERE t > {}",
    "SELECT COUNT(*) FROM (SELECT user_id, age x FROM people UNION ALL SELECT user_id, amount FROM orders) WHERE x>{}",
    "SELECT COUNT(*) FROM people p JOIN regions r ON r.code = p.region WHERE age > {}",
]


@pytest.fixture
def shop(place):
    curator = laid(place, "test_h16_joins", lambda there: shop_of(there, victim=True, budget=TWO).curator)
    return Shop(curator, place)


def spent(curator):
    return curator.ledger.balance("shop").spent_guarantee.epsilon


def test_a_join_is_charged_once_to_the_data_set_of_all_its_tables(shop):
    before = shop.curator.ledger.balance("shop").charges
    release = shop.ana.ask(ASKED[3].format(3), epsilon=0.3)
    assert shop.curator.ledger.balance("shop").charges == before + 1
    assert shop.curator.ledger.datasets() == ["shop"]
    assert release.charge["epsilon"] == 0.3
    assert release.guarantee["unit"] == "user_id"


def test_joins_copies_and_names_draw_on_one_budget_until_it_is_gone(shop):
    """Two analysts, ten shapes of questions over all tables: together no more than there is."""
    answered, number, refused = 0, 0, 0
    while refused < 2 * len(ASKED):
        who = shop.curator.analyst("ana" if number % 2 else "eve")
        question = ASKED[number % len(ASKED)].format(number)
        number += 1
        try:
            who.ask(question, epsilon=0.2)
        except BudgetError:
            refused += 1
        else:
            answered, refused = answered + 1, 0
    assert 5 < answered < 40
    assert 0.8 < spent(shop.curator) <= 1.0
    for question in ASKED:
        with nothing_charged(shop.curator), pytest.raises(BudgetError):
            shop.ana.ask(question.format(77.75), epsilon=0.2)


def protect(shop, name, changes):
    text = (shop.folder / f"{name}.toml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (shop.folder / "new.toml").write_text(text)
    return Curator(shop.curator.home).protect(shop.folder / "new.toml", yes=True, reason="r")


FRESH = 'dataset = "fresh"\n' + ONE


@pytest.mark.parametrize("table", ["orders", "people"])
def test_a_copy_of_a_joined_table_gets_no_data_set_of_its_own(shop, table):
    shop.ana.ask(ASKED[3].format(3), epsilon=0.5)
    shutil.copy(shop.folder / f"{table}.parquet", shop.folder / "copy.parquet")
    changes = {f'name = "{table}"': 'name = "copy"', f"{table}.parquet": "copy.parquet", 'dataset = "shop"\n': FRESH}
    if table == "people":
        changes[TWO] = ""
    with pytest.raises(NotAllowedError, match="is known as table"):
        protect(shop, table, changes)
    assert Curator(shop.curator.home).ledger.datasets() == ["shop"]


def test_a_path_through_another_data_set_is_refused(shop):
    """A new table whose rows belong to people of 'shop' cannot be asked about from a purse of its own."""
    columns = {"order_id": [1, 2], "sku": ["a", "b"], "quantity": [1, 2], "price": [1.0, 2.0]}
    pq.write_table(pa.table(columns), shop.folder / "more.parquet")
    changes = {'name = "items"': 'name = "more"', "items.parquet": "more.parquet", 'dataset = "shop"\n': FRESH}
    with pytest.raises(PolicyInvalidError, match="no table 'orders' in data set 'fresh'"):
        protect(shop, "items", changes)
    assert Curator(shop.curator.home).ledger.datasets() == ["shop"]


@pytest.mark.parametrize("trick", ["the file itself", "a copy", "a link"])
def test_a_protected_file_cannot_be_called_public(shop, trick):
    """Public tables are read exactly and for nothing."""
    source, other = shop.folder / "orders.parquet", shop.folder / "open.parquet"
    if trick == "a copy":
        shutil.copy(source, other)
    elif trick == "a link":
        other.symlink_to(source)
    else:
        other = source
    with pytest.raises(DaleniusError, match=r"protected|known"):
        protect(shop, "people", {"products = { source": f'secrets = "{other.name}", products = {{ source'})
    with pytest.raises(DaleniusError):
        shop.ana.ask("SELECT COUNT(*) FROM people p JOIN secrets s ON s.amount = p.age", epsilon=0.1)


def test_two_data_sets_are_not_joined_to_pay_from_the_fuller_one(tmp_path):
    people = tables(victim=True)["people"]
    policy = f'unit = "user_id"\n{ONE}[contribution]\nrows = 1\n'
    shop = Shop.of(tmp_path, {"people": (people, policy), "friends": (people.slice(1), policy)})
    assert shop.curator.ledger.datasets() == ["friends", "people"]
    with nothing_charged(shop.curator), pytest.raises(NotAllowedError, match="not of one data set"):
        shop.ana.ask("SELECT COUNT(*) FROM people JOIN friends USING (user_id)", epsilon=0.1)


def test_a_table_beside_the_budget_would_be_seen(shop):
    """Teeth: what is asked of one table is gone from the others."""
    shop.ana.ask(ASKED[0].format(3), epsilon=0.9)
    for question in ASKED[1:]:
        with pytest.raises(BudgetError):
            shop.curator.analyst("eve").ask(question.format(3), epsilon=0.9)

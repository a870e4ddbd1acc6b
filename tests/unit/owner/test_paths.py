"""Paths at `protect`: their tables are there and agree, their keys are unique and of one type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.shop import Shop, data, written

from dalenius import Curator
from dalenius.errors import DaleniusError, NotAllowedError, PolicyInvalidError
from dalenius.owner.paths import repeated_keys


def protect(folder, tables=None, changes=None, only=None):
    files = written(folder, tables)
    for name, (old, new) in (changes or {}).items():
        file = folder / f"{name}.toml"
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))
    curator = Curator(folder / "home")
    curator.protect(*(file for file in files if only is None or file.stem in only), yes=True)
    return curator


PATH = "order_id -> orders.order_id -> orders.user_id"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"items": (PATH, "order_id -> nothing.order_id -> nothing.user_id")}, "no table 'nothing' in data set 'shop'"),
        ({"items": (PATH, "order_id -> people.user_id -> people.age")}, "'people' has another unit than the path says"),
        ({"items": (PATH, "order_id -> orders.order_id -> orders.region")}, "'orders' has another unit"),
        ({"items": (PATH, "order -> orders.order_id -> orders.user_id")}, "no column 'order'"),
        ({"items": (PATH, "order_id -> orders.order -> orders.user_id")}, "no column 'order'"),
        ({"items": (PATH, "sku -> orders.order_id -> orders.user_id")}, "are of different types"),
    ],
)
def test_a_path_that_leads_astray_is_refused(tmp_path, changes, words):
    with pytest.raises(PolicyInvalidError) as refusal:
        protect(tmp_path, changes=changes)
    assert words in str(refusal.value) and refusal.value.fix
    assert not (tmp_path / "home").exists()  # nothing was recorded


def test_tables_of_a_path_come_before_or_at_once(tmp_path):
    with pytest.raises(DaleniusError, match="no table 'orders'"):
        protect(tmp_path, only={"people", "items"})
    protect(tmp_path, only={"people", "orders"})
    assert len(protect(tmp_path, only={"items"}).tables()) == 3


def repeated(tables):
    ids = tables["orders"]["order_id"].to_pylist()
    return {**tables, "orders": tables["orders"].set_column(0, "order_id", [[*ids[:-1], ids[0]]])}


def test_a_key_that_is_there_twice_is_refused_without_saying_which(tmp_path):
    with pytest.raises(NotAllowedError, match=r"goes through orders\.order_id, which is not unique") as refusal:
        protect(tmp_path, repeated(data()))
    assert "100" not in str(refusal.value)  # no value of the data
    assert not (tmp_path / "home").exists()


def test_a_key_that_is_null_twice_is_no_key_of_anybody(tmp_path):
    tables = data()
    ids = [None, None, *tables["orders"]["order_id"].to_pylist()[2:]]
    shop = Shop.protected(tmp_path, {**tables, "orders": tables["orders"].set_column(0, "order_id", [ids])})
    question = "SELECT COUNT(*) FROM items"
    assert shop.count(question) == shop.plain(question)[0][0]
    joined = "SELECT COUNT(*) FROM orders o LEFT JOIN items i ON i.order_id = o.order_id"
    assert shop.count(joined) == shop.plain(joined)[0][0]


def test_keys_of_different_types_are_refused(tmp_path):
    tables = data()
    texts = [None if each is None else str(each) for each in tables["items"]["order_id"].to_pylist()]
    with pytest.raises(PolicyInvalidError, match="are of different types"):
        protect(tmp_path, {**tables, "items": tables["items"].set_column(1, "order_id", [texts])})
    wider = tables["items"]["order_id"].cast(pa.int32())
    shop = Shop.protected(tmp_path / "wider", {**tables, "items": tables["items"].set_column(1, "order_id", wider)})
    assert shop.count("SELECT COUNT(*) FROM orders JOIN items USING (order_id)") > 0


def test_decimals_that_need_not_fit_are_of_different_types(tmp_path):
    tables = data()
    narrow = tables["items"]["order_id"].cast(pa.decimal128(38, 10))
    whole = tables["orders"]["order_id"].cast(pa.decimal128(38, 0))
    tables["items"] = tables["items"].set_column(1, "order_id", narrow)
    tables["orders"] = tables["orders"].set_column(0, "order_id", whole)
    with pytest.raises(PolicyInvalidError, match="are of different types"):
        protect(tmp_path, tables)


def test_a_version_whose_keys_repeat_is_told(tmp_path):
    curator = protect(tmp_path)
    versions = {each.table: each for each in curator.tables()}
    assert repeated_keys(versions["items"], versions) is None
    assert repeated_keys(versions["people"], versions) is None
    pq.write_table(repeated(data())["orders"], tmp_path / "orders.parquet")
    assert "orders.order_id, which is not unique" in (repeated_keys(versions["items"], versions) or "")


def test_a_path_of_two_steps_leads_to_the_unit(tmp_path):
    """parts → items → orders → people."""
    items = data()["items"]
    keys = [*items["item_id"].to_pylist(), None, 999]
    text = (
        'unit = { path = "item -> items.item_id -> items.order_id -> orders.order_id -> orders.user_id" }\\n'
        'dataset = "shop"\\n[columns.weight]\\ntype = "integer"\\nbounds = [0, 10]\\n[contribution]\\nrows = 100\\n'
    ).replace("\\n", "\n")
    shop = Shop.protected(tmp_path)
    pq.write_table(pa.table({"item": keys, "weight": [at % 5 for at in range(62)]}), tmp_path / "parts.parquet")
    (tmp_path / "parts.toml").write_text(f'[table]\nname = "parts"\nsource = "parts.parquet"\n{text}')
    shop.curator.protect(tmp_path / "parts.toml", yes=True)
    owned = shop.plain("SELECT COUNT(*) FROM items")[0][0]
    assert shop.count("SELECT COUNT(*) FROM parts") == owned
    assert shop.count("SELECT COUNT(*) FROM parts p JOIN items i ON p.item = i.item_id") == owned
    whole = "people JOIN orders USING (user_id) JOIN items USING (order_id) JOIN parts ON item = item_id"
    assert shop.count(f"SELECT COUNT(*) FROM {whole}") == owned
    assert "does not say" in shop.error("SELECT COUNT(*) FROM parts p JOIN items i ON p.weight = i.quantity").message
    assert "orders" in shop.plan("SELECT COUNT(*) FROM parts").table.reads

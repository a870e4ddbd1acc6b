"""Questions over several tables against a hostile analyst: no row makes them fail, explode or meet another unit's."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dalenius import Curator
from dalenius.errors import DaleniusError, NotAllowedError, PolicyInvalidError, QuestionRefusedError
from dalenius.measuring._exact import exact
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask

CUSTOMERS = """
[table]
name = "customers"
source = "customers.parquet"
unit = "c_key"
dataset = "shop"
[budget]
epsilon = 100.0
delta = 1e-6
{period}
[analysts.ana]
epsilon = 100.0
[columns.age]
type = "integer"
bounds = [0, 120]
[columns.seg]
type = "category"
keys = ["a", "b"]
[columns.when]
type = "date"
bounds = ["2025-01-01", "2025-12-31"]
[contribution]
rows = 1
[public]
tables = {{ regions = "regions.parquet" }}
"""
ORDERS = """
[table]
name = "orders"
source = "{source}"
unit = "o_cust"
dataset = "shop"
[columns.price]
type = "number"
bounds = [0, 100]
[columns.u0]
type = "integer"
bounds = [0, 100]
[columns."raw o_cust"]
type = "integer"
bounds = [0, 100]
[columns.r]
type = "integer"
bounds = [0, 100]
[columns.o_cust]
type = "integer"
bounds = [0, 1]
[contribution]
rows = 10
"""
ITEMS = """
[table]
name = "items"
source = "items.parquet"
unit = { path = "i_order -> orders.o_key -> orders.o_cust" }
dataset = "shop"
[columns.qty]
type = "integer"
bounds = [0, 50]
[contribution]
rows = 20
"""


class Shop:
    """Customers, their orders, and what was in them; regions are public."""

    def __init__(self, folder, orders, items=(), *, key="int64", source="orders.parquet", period=""):
        made = folder / f"shop{len(list(folder.iterdir()))}"
        made.mkdir()
        owners = sorted({owner for _, owner, _ in orders} | {type(orders[0][1])(9)})
        day = pa.array([20100] * len(owners), pa.int32()).cast(pa.date32())
        customers = {"c_key": owners, "age": [30] * len(owners), "seg": ["a"] * len(owners), "when": day}
        pq.write_table(pa.table(customers), made / "customers.parquet")
        held = pa.table(
            {
                "o_key": pa.array([each for each, _, _ in orders], key),
                "o_cust": [each for _, each, _ in orders],
                "price": [each for _, _, each in orders],
                **{name: [50] * len(orders) for name in ("u0", "raw o_cust", "r")},
            }
        )
        if source.endswith("csv"):
            pyarrow.csv.write_csv(held, made / source)
        else:
            pq.write_table(held, made / source)
        lines = {"i_order": pa.array([each for each, _ in items], key), "qty": [each for _, each in items]}
        pq.write_table(pa.table(lines), made / "items.parquet")
        pq.write_table(pa.table({"seg": ["a"] * 10 + ["b"], "w": list(range(11))}), made / "regions.parquet")
        policies = {
            "customers": CUSTOMERS.format(period=period),
            "orders": ORDERS.format(source=source),
            "items": ITEMS,
        }
        for name, text in policies.items():
            (made / f"{name}.toml").write_text(text)
        self.curator = Curator(made / "home")
        files = [made / f"{name}.toml" for name in policies if items or name != "items"]
        self.curator.protect(*files, yes=True)

    def exact(self, sql, seconds=20.0):
        found = plan_ask(self.curator.analyst("ana")._asker, Ask(sql))
        return exact(found.plan, found.snapshot.engine(self.curator.engines), "salt", seconds=seconds)


FEW = [(1, 1, 10.0), (2, 2, 20.0), (3, 2, 30.0)]
TIED = "SELECT COUNT(*) FROM customers c JOIN orders o ON o.o_cust = c.c_key"

STACKED = (
    "SELECT c_key, r.seg, s.w FROM customers c JOIN regions r ON r.seg = c.seg JOIN regions s ON s.seg = c.seg "
    "UNION ALL SELECT c_key, seg, 1 FROM customers"
)


# --- rows that would make a comparison fail


def test_units_of_one_data_set_are_of_one_type(tmp_path):
    # In CSV units are texts: 'abc' is no integer, and '01' and '1' would be one unit on one side and two on the other.
    with pytest.raises(PolicyInvalidError, match="different types"):
        Shop(tmp_path, FEW, source="orders.csv")
    with pytest.raises(PolicyInvalidError, match="different types"):
        Shop(tmp_path, [(1, 1.0, 1.0)], items=[(1, 1)], source="orders.csv")
    assert Shop(tmp_path, FEW).exact(TIED) == [[3]]


@pytest.mark.parametrize("condition", ["o.o_key = c.c_key", "o.o_key = o.o_cust", "c.c_key = o.o_key"])
def test_columns_that_name_different_things_are_not_compared(tmp_path, condition):
    # c_key is a text here and o_key an integer: DuckDB would convert, and fail on the first key that is no number.
    shop = Shop(tmp_path, [(1, "1", 10.0), (2, "abc", 20.0)], items=[(1, 1)])
    with pytest.raises(NotAllowedError, match="says who somebody is"):
        shop.exact(f"{TIED} WHERE {condition}")
    assert shop.exact(TIED) == [[2]]


def test_a_key_that_the_policy_reads_as_a_number_is_still_compared_as_it_is(tmp_path):
    # o_cust is declared an integer between 0 and 1; in the file it is a text, and goes on.
    shop = Shop(tmp_path, [(1, "1", 10.0), (2, "7", 20.0), (3, "abc", 30.0)])
    per_unit = "(SELECT o_cust, SUM(price) AS s FROM orders GROUP BY o_cust)"
    stacked = "(SELECT o_cust, price FROM orders UNION ALL SELECT o_cust, price FROM orders)"
    assert shop.exact(f"SELECT COUNT(*) FROM customers c JOIN {per_unit} t ON t.o_cust = c.c_key") == [[3]]
    assert shop.exact(f"SELECT COUNT(*) FROM customers c JOIN {stacked} t ON t.o_cust = c.c_key") == [[6]]


@pytest.mark.parametrize("aggregate", ["SUM", "AVG"])
@pytest.mark.parametrize("quantity", [1, 50])
def test_sums_of_sums_do_not_overflow(tmp_path, aggregate, quantity):
    # 50²⁵ is beyond 2¹²⁷: in steps of 1, as whole numbers have them, it fits no integer of the engine.
    shop = Shop(tmp_path, FEW, items=[(1, 0), (2, quantity), (3, quantity)])
    inner = f"SELECT i_order, SUM({'*'.join(['qty'] * 25)}) AS n FROM items GROUP BY i_order"
    outer = f"SELECT o_cust, {aggregate}(n) AS m FROM orders JOIN ({inner}) s ON i_order = o_key GROUP BY o_cust"
    assert shop.exact(f"SELECT COUNT(*) FROM ({outer}) t WHERE m > 1e40") == [[int(quantity == 50)]]


def test_moments_that_cannot_be_printed_are_counted(tmp_path):
    # As a text, this key would stop the engine.
    for odd in (0, -9223372022400000001):
        shop = Shop(tmp_path, [(10, 1, 10.0), (odd, 2, 20.0)], items=[(10, 1)], key=pa.timestamp("us"))
        joined = "FROM customers c LEFT JOIN orders o ON o.o_cust = c.c_key"
        assert shop.exact(f"SELECT COUNT(o.o_key) {joined}") == [[2]]
        keys = "SELECT o_key, o_cust, SUM(price) AS s FROM orders GROUP BY o_key, o_cust"
        assert shop.exact(f"SELECT COUNT(o_key) FROM ({keys}) t") == [[2]]


def test_what_stands_in_a_union_is_finite(tmp_path):
    # Infinity modulo 7 is NaN, which DuckDB holds for larger than all numbers.
    huge = "SELECT o_cust, exp(exp(exp(price))) AS v FROM orders UNION ALL SELECT o_cust, 1 FROM orders"
    assert Shop(tmp_path, FEW).exact(f"SELECT COUNT(*) FROM ({huge}) t WHERE v % 7 > 0") == [[3]]


def test_keys_on_a_path_are_of_one_type_to_the_last_digit(tmp_path):
    from dalenius.tables.compatibility import comparable

    # DuckDB compares these two as DECIMAL(38,0): 1.3 and 1.4, both unique, would be one key.
    assert not comparable("DECIMAL(38,0)", "DECIMAL(38,20)")
    assert not comparable("HUGEINT", "UHUGEINT")
    assert comparable("INTEGER", "UBIGINT")


# --- work that explodes for one unit


@pytest.mark.parametrize("rows", [1, 400])
def test_a_heavy_unit_does_not_stop_a_self_join(tmp_path, rows):
    shop = Shop(tmp_path, [*FEW, *((100 + at, 3, 1.0) for at in range(rows))])
    joined = "".join(f" JOIN orders o{at} ON o{at}.o_cust = o0.o_cust" for at in range(1, 5))
    # 400⁵ rows without a limit of 10 for four of the five; the answer is clipped to 10⁵ for a unit.
    ((found,),) = shop.exact(f"SELECT COUNT(*) FROM orders o0{joined}", seconds=20.0)
    assert found == 1 + 2**5 + min(rows**5, 10**5)


@pytest.mark.parametrize("rows", [1, 60_000])
def test_a_heavy_unit_does_not_stop_an_exists(tmp_path, rows):
    # 60,000² comparisons, which no hash can spare, take minutes; 10 for each row do not.
    shop = Shop(tmp_path, [*FEW, *((100 + at, 3, at * 37 % 10007 / 101) for at in range(rows))])
    inner = "b.o_cust = a.o_cust AND exp(a.price / 10) + exp(b.price / 10) < a.price * b.price - 20000"
    asked = f"SELECT COUNT(*) FROM orders a WHERE EXISTS (SELECT 1 FROM orders b WHERE {inner})"
    assert shop.exact(asked, seconds=10.0) == [[0]]


def test_subqueries_do_not_double_without_end(tmp_path):
    inner = "SELECT price AS x FROM orders"
    for at in range(40):
        inner = f"SELECT x + x AS x FROM ({inner}) t{at}"
    with pytest.raises(QuestionRefusedError):
        Shop(tmp_path, FEW).exact(f"SELECT COUNT(*) FROM ({inner}) t WHERE x > 0")


def test_which_rows_take_part_depends_on_the_unit_alone(tmp_path):
    mine = [(100 + at, 3, float(at % 40)) for at in range(60)]
    asked = "SELECT SUM(a.price + b.price) FROM orders a JOIN orders b ON a.o_cust = b.o_cust AND b.price > 3"
    found = {
        shop.exact(asked)[0][0]
        for shop in (Shop(tmp_path, mine), Shop(tmp_path, mine[::-1]), Shop(tmp_path, [*mine[30:], *mine[:30]]))
    }
    assert len(found) == 1


@pytest.mark.parametrize(
    "sql",
    [
        f"{TIED} JOIN orders x ON x.o_cust = o.o_cust"
        + "".join(f" JOIN orders x{at} ON x{at}.o_cust = o.o_cust" for at in range(4)),
        "SELECT COUNT(*) FROM customers c" + "".join(f" JOIN regions r{at} ON r{at}.seg = c.seg" for at in range(5)),
        "SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM "
        + ", ".join(f"regions r{at}" for at in range(4))
        + " WHERE r0.w + r1.w + r2.w + r3.w < c.age)",
        "SELECT COUNT(*) FROM customers c"
        + "".join(f" JOIN regions r{at} ON r{at}.seg = c.seg" for at in range(3))
        + " WHERE EXISTS (SELECT 1 FROM regions x, regions y WHERE x.w + y.w < c.age)",
        # Two by two they have unique keys, but nothing ties any of them to the customer.
        "SELECT COUNT(*) FROM customers c, "
        + ", ".join(f"regions r{at}" for at in range(8))
        + " WHERE r0.w = r1.w AND r2.w = r3.w AND r4.w = r5.w AND r6.w = r7.w",
        f"SELECT COUNT(*) FROM ({STACKED}) t JOIN regions a ON a.seg = t.seg JOIN regions b ON b.seg = t.seg",
    ],
)
def test_joins_that_repeat_a_row_too_often_are_refused(tmp_path, sql):
    # Behind a condition that only the victim meets, the time that it takes would tell of the victim.
    with pytest.raises(QuestionRefusedError, match="repeats rows too often"):
        Shop(tmp_path, FEW).exact(sql)


def test_keys_do_not_count_as_repeating(tmp_path):
    shop = Shop(tmp_path, FEW, items=[(1, 1), (2, 1), (2, 1)])
    asked = "SELECT COUNT(*) FROM customers c JOIN orders o ON o.o_cust = c.c_key JOIN items i ON i.i_order = o.o_key"
    asked += "".join(f" JOIN orders x{at} ON x{at}.o_key = i.i_order" for at in range(8))
    assert shop.exact(asked) == [[3]]
    # A key that is compared with a column of the same table ties it to nothing.
    trick = "".join(f" JOIN orders x{at} ON x{at}.o_cust = o.o_cust AND x{at}.o_key = x{at}.o_key" for at in range(5))
    with pytest.raises(QuestionRefusedError, match="repeats rows too often"):
        shop.exact(TIED + trick)


# --- other people's rows, and nobody's


def test_rows_inside_a_public_exists_are_refused(tmp_path):
    inner = "SELECT 1 FROM orders o WHERE o.o_cust = c.c_key"
    asked = f"SELECT COUNT(*) FROM customers c WHERE EXISTS (SELECT 1 FROM regions r WHERE EXISTS ({inner}))"
    with pytest.raises(QuestionRefusedError, match="behind a public table"):
        Shop(tmp_path, FEW).exact(asked)


def test_a_path_and_periods_do_not_go_together(tmp_path):
    # An item of May may lead through an order of April: that row is another unit's, which May is not charged for.
    period = 'period = { column = "when", every = "month" }'
    with pytest.raises(PolicyInvalidError, match="per period"):
        Shop(tmp_path, FEW, items=[(1, 1)], period=period)


# --- another answer than was asked for


def test_units_of_a_left_join_are_counted_where_they_are(tmp_path):
    shop, left = Shop(tmp_path, FEW), "FROM customers c LEFT JOIN orders o ON o.o_cust = c.c_key"
    assert shop.exact(f"SELECT COUNT(DISTINCT c.c_key) {left}") == [[3]]
    assert shop.exact(f"SELECT COUNT(DISTINCT o.o_cust) {left}") == [[2]]


def test_groups_by_what_a_left_join_leaves_out_are_refused(tmp_path):
    # In SQL all customers without orders are one group, and so not within one unit.
    inner = "SELECT o.o_cust, COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.o_cust = c.c_key GROUP BY o.o_cust"
    with pytest.raises(QuestionRefusedError, match="not within one unit"):
        Shop(tmp_path, FEW).exact(f"SELECT COUNT(*) FROM ({inner}) t")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM (SELECT age FROM customers WHERE c_key = c_key) t", 3),
        ("SELECT COUNT(*) FROM (SELECT age FROM customers WHERE c_key IS NULL) t", 0),
        ("SELECT COUNT(DISTINCT k) FROM (SELECT c_key AS k FROM customers) t", 3),
        ("SELECT COUNT(DISTINCT c_key) FROM (SELECT age AS c_key FROM customers) t", 1),
    ],
)
def test_a_subquery_of_one_table_may_speak_of_its_unit(tmp_path, sql, expected):
    assert Shop(tmp_path, FEW).exact(sql) == [[expected]]


@pytest.mark.parametrize("name", ["u0", "raw o_cust", "r"])
def test_columns_may_be_called_as_ours_are(tmp_path, name):
    shop = Shop(tmp_path, FEW)
    assert shop.exact(f'SELECT SUM(o."{name}") FROM customers c JOIN orders o ON o.o_cust = c.c_key') == [[150]]
    twice = "FROM orders o JOIN orders p ON p.o_cust = o.o_cust"
    assert shop.exact(f'SELECT SUM(o."{name}" + p."{name}") {twice}') == [[500]]


@pytest.mark.parametrize("item", ["1", "COALESCE(SUM(price), 0)", "COUNT(*) + 1"])
def test_what_a_left_join_does_not_find_has_no_value(tmp_path, item):
    inner = f"SELECT o_cust, {item} AS n FROM orders GROUP BY o_cust"
    with pytest.raises(DaleniusError, match="only keys and aggregates"):
        Shop(tmp_path, FEW).exact(f"SELECT COUNT(n) FROM customers c LEFT JOIN ({inner}) s ON s.o_cust = c.c_key")


def test_a_comparison_as_it_is_and_one_as_the_policy_reads_it_are_two_questions(tmp_path):
    shop = Shop(tmp_path, [(1, 1, 10.0), (2, 2, 20.0), (3, 3, 30.0)])
    ana, tied = shop.curator.analyst("ana"), "FROM orders a JOIN orders b ON a.o_cust = b.o_cust JOIN customers c"
    same = f"SELECT COUNT(*) {tied} ON c.c_key = a.o_cust AND c.c_key = b.o_cust"
    keys = {
        plan_ask(ana._asker, Ask(f"{same} WHERE {extra}")).plan.key("1")
        for extra in ("a.o_cust = b.o_cust", "NOT a.o_cust <> b.o_cust")
    }
    assert len(keys) == 2

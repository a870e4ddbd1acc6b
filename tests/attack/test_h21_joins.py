"""H21, through joins: names, aliases, CTEs and public tables never become SQL of their own."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import files_under, nothing_charged
from tests.attack.joined import ran, shop_of
from tests.attack.test_h21_injection import LITERALS, TOKENS, failure, in_quotes, outside_of_quotes, unchanged
from tests.conftest import LONG
from tests.shop import Shop, written

from dalenius import Curator
from dalenius.errors import NOTHING, BudgetError, DaleniusError, EngineError, InternalError
from dalenius.measuring.engines.duckdb.backend import MultiFile

REFUSED = [
    "SELECT COUNT(*) FROM people JOIN orders USING (user_id); DROP TABLE people",
    "SELECT COUNT(*) FROM people JOIN read_parquet('orders.parquet') o USING (user_id)",
    "SELECT COUNT(*) FROM people JOIN 'orders.parquet' o USING (user_id)",
    'SELECT COUNT(*) FROM people JOIN "orders.parquet" o USING (user_id)',
    "SELECT COUNT(*) FROM people JOIN '/etc/passwd' o ON TRUE",
    "SELECT COUNT(*) FROM people JOIN glob('*') g ON TRUE",
    "SELECT COUNT(*) FROM people JOIN query('SELECT 1') q ON TRUE",
    "SELECT COUNT(*) FROM people JOIN duckdb_settings() s ON TRUE",
    "SELECT COUNT(*) FROM people JOIN information_schema.tables t ON TRUE",
    "SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM read_csv('regions.csv'))",
    "SELECT COUNT(*) FROM people WHERE region IN (SELECT code FROM read_csv('regions.csv'))",
    "SELECT COUNT(*) FROM people WHERE user_id IN (FROM 'orders.parquet')",
    "WITH x AS (COPY people TO 'out.csv') SELECT COUNT(*) FROM people JOIN orders USING (user_id)",
    "WITH x AS (DELETE FROM people RETURNING *) SELECT COUNT(*) FROM x",
    "WITH x AS (SELECT * FROM read_text('/etc/passwd')) SELECT COUNT(*) FROM people JOIN x ON TRUE",
    "WITH x AS MATERIALIZED (SELECT * FROM '/etc/passwd') SELECT COUNT(*) FROM x",
    "SELECT COUNT(*) FROM s0_0 JOIN people USING (user_id)",
    "SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE s0_0.u0 = 3",
    "SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE u0 = 3",
    'SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p."raw user_id" = 3',
    'SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE "unit 0" = 3',
    'SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE "people.user_id" = 3',
    'SELECT COUNT(*) FROM orders JOIN orders b USING (user_id) WHERE "orders 2".amount > 3',
    "SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE p.filename = 'x'",
    "SELECT COUNT(*) FROM people p JOIN orders o USING (user_id) WHERE o.rowid = 3",
    "SELECT COUNT(*) FROM people p JOIN regions r ON r.code = p.region WHERE r.filename LIKE '%'",
]


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return shop_of(tmp_path_factory.mktemp("h21-joins"), victim=True)


@pytest.mark.parametrize("question", REFUSED)
def test_it_is_refused_before_the_data_is_touched(shop, monkeypatch, question):
    monkeypatch.setattr(MultiFile, "run", lambda *_, **__: pytest.fail("the data was touched"))
    before = files_under(shop.folder)
    with nothing_charged(shop.curator), pytest.raises(DaleniusError) as refusal:
        shop.ana.ask(question, epsilon=0.1)
    assert refusal.value.exit_code in (2, 3)
    assert not isinstance(refusal.value, InternalError)
    assert not unchanged(before, files_under(shop.folder))


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("text", [each for each in LITERALS if each.strip()], ids=ascii)
def test_hostile_aliases_and_names_of_subqueries_reach_no_engine(shop, monkeypatch, text):
    one, two, three = (quoted(f"zq7{text}{at}7qz") for at in range(3))
    seen = ran(monkeypatch)
    question = (
        f"WITH {three} AS (SELECT user_id AS {one}, amount AS {two} FROM orders AS {two}) SELECT COUNT(*) AS {one} "
        f"FROM people AS {one} JOIN {three} AS {two} ON {one}.user_id = {two}.{one} WHERE {two}.{two} > 3 AND EXISTS "
        f"(SELECT 1 FROM orders AS {three} WHERE {three}.user_id = {one}.user_id) ORDER BY {one}"
    )
    truth = "SELECT COUNT(*) FROM people JOIN orders USING (user_id) WHERE amount > 3"
    assert shop.plan(question).measures[0].clip == 20
    release = shop.ana.ask(question, epsilon=0.01)
    assert release.columns[0] == f"zq7{text}07qz"
    assert len(seen) == (0 if release.free else 1)
    assert all("zq7" not in each and "7qz" not in each for each in seen)
    assert shop.exact(question) == shop.exact(truth)  # whoever has an order has one


@pytest.mark.parametrize("text", LITERALS, ids=ascii)
def test_a_hostile_text_in_a_join_is_a_constant_and_nothing_more(shop, monkeypatch, text):
    marker = f"zq7{text}7qz"
    seen = ran(monkeypatch)
    value = in_quotes(marker)
    question = (
        f"SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id AND o.note <> {value} WHERE NOT EXISTS "
        f"(SELECT 1 FROM items i WHERE i.order_id = o.order_id AND i.sku || {value} = {value}) "
        f"AND p.note IN ('x', {value})"
    )
    shop.ana.ask(question, epsilon=0.01)
    assert len(seen) == 1 and in_quotes(marker) in seen[0]
    bare = outside_of_quotes(seen[0])
    assert "zq7" not in bare and "7qz" not in bare


def test_hostile_columns_and_keys_of_a_public_table_are_names_and_texts(tmp_path, monkeypatch):
    """Its owner may be careless: column names and values are never read as SQL."""
    names = ["u0", "raw code", "column code", "'; DROP TABLE x; --", 'a"b', "{scan}", "$1", "x\ty", "SELECT", "n.m"]
    values = ["n", "s", "e", "w", "'; DROP TABLE x; --", 'a"b', "{scan}", "\\", "\x1f", "%", "zq7", "é漢🙂", "null", ""]
    table = {"code": values, **{name: [f"zq7{name}{at}" for at in range(len(values))] for name in names}}
    files = written(tmp_path, rows=1000)
    pq.write_table(pa.table(table), tmp_path / "odd.parquet")
    files[0].write_text(files[0].read_text().replace("tables = {", 'tables = { odd = "odd.parquet",'))
    curator = Curator(tmp_path / "home")
    curator.protect(*files, yes=True)
    shop = Shop(curator, tmp_path)
    seen = ran(monkeypatch)
    for name in names:
        column = quoted(name)
        question = f"SELECT {column}, COUNT(*) FROM people JOIN odd ON region = code GROUP BY {column}"
        plan, (counts,) = shop.plan(question), shop.exact(question)
        assert sum(counts) == 11 and len(plan.cells) == len(values)
        found = {cell[0]: count for cell, count in zip(plan.cells, counts, strict=True) if count}
        assert found == {f"zq7{name}{at}": n for at, n in enumerate((4, 4, 3))}, name
        assert shop.exact(
            f"SELECT COUNT(*) FROM people p, odd o WHERE p.region = o.code AND o.{column} LIKE 'zq7%'"
        ) == [[11]]
    for value in values:
        if value == "\x1f":  # which no question may hold
            continue
        assert shop.exact(f"SELECT COUNT(*) FROM people JOIN odd ON region = code WHERE code = {in_quotes(value)}")
    assert seen and all("zq7" not in outside_of_quotes(each) for each in seen)


@pytest.mark.parametrize("name", ["a b", "x;y", "1st", 'q"', "people", "PEOPLE", "select 1", "../x", "union", "source"])
def test_names_of_public_tables_are_plain_words_and_nobody_elses(tmp_path, name):
    files = written(tmp_path)
    shown = name.replace('"', '\\"')
    files[0].write_text(files[0].read_text().replace("tables = {", f'tables = {{ "{shown}" = "regions.csv",'))
    curator = Curator(tmp_path / "home")
    if name in {"union", "source"}:  # words of ours, which must not be mixed up with them
        curator.protect(*files, yes=True)
        shop = Shop(curator, tmp_path)
        both = "SELECT user_id, region FROM people UNION ALL SELECT user_id, region FROM people"
        assert shop.count(f'SELECT COUNT(*) FROM ({both}) u JOIN "{name}" v ON v.code = u.region') == 22
        return
    with pytest.raises(DaleniusError):
        curator.protect(*files, yes=True)


# --- token soup

VALID = [
    "SELECT COUNT(*) FROM people p JOIN orders o ON p.user_id = o.user_id WHERE o.amount > 3",
    "SELECT r.name, SUM(o.amount) FROM orders o, regions r WHERE o.region = r.code GROUP BY r.name ORDER BY 2 LIMIT 2",
    "SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user_id = p.user_id AND o.amount > 9)",
    "SELECT COUNT(*) FROM people WHERE user_id NOT IN (SELECT user_id FROM orders WHERE status = 'done')",
    "SELECT AVG(t) FROM (SELECT user_id, MAX(amount) t FROM orders GROUP BY user_id HAVING COUNT(*) > 1) x WHERE t < 9",
    "WITH a AS (SELECT * FROM orders WHERE amount > 5) SELECT COUNT(*) FROM a x JOIN a y USING (user_id)",
    "SELECT SUM(x) FROM (SELECT user_id, amount AS x FROM orders UNION ALL SELECT user_id, age FROM people) u",
    "SELECT COUNT(o.amount) FROM people p LEFT JOIN orders o USING (user_id) JOIN items i USING (order_id)",
]
MORE = (
    "JOIN LEFT RIGHT FULL CROSS NATURAL USING ON EXISTS NOT IN WITH RECURSIVE AS UNION ALL LATERAL people orders items "
)
MORE += (
    "regions products p o r x a u p.user_id o.user_id user_id order_id code o.* p.* * ( ) (SELECT 1) region note sku"
)


def mutated(chance: random.Random) -> str:
    parts = re.findall(r"'(?:[^']|'')*'|\w+|\s+|[^\w\s]", chance.choice(VALID))
    tokens = [*TOKENS, *MORE.split() * 4]
    for _ in range(chance.choice((1, 1, 2, 3, 5))):
        at, what = chance.randrange(len(parts) + 1), chance.randrange(5)
        if what == 0:
            parts.insert(at, f" {chance.choice(tokens)} ")
        elif what == 1 and at < len(parts):
            parts[at] = f" {chance.choice(tokens)} "
        elif what == 2:
            del parts[at : at + chance.randrange(1, 4)]
        elif what == 3:
            parts[at:at] = parts[at : at + chance.randrange(1, 9)]
        else:
            other = re.findall(r"\w+|\s+|[^\w\s]", chance.choice(VALID))
            start = chance.randrange(len(other))
            parts[at:at] = other[start : start + chance.randrange(1, 12)]
        parts = parts or [""]
    return "".join(parts)


def test_mutated_joins_are_answered_or_refused_and_nothing_else(tmp_path):
    """Only our own errors come out; what is refused costs nothing and touches no file."""
    from tests.shop import BUDGET

    shop = shop_of(tmp_path, victim=False, budget=BUDGET.replace("50.0", "1000000.0"))
    before, chance = files_under(tmp_path), random.Random(7)
    refused = answered = 0
    many = 20_000 if LONG else 400
    for number in range(many):
        question = mutated(chance)
        error = failure(shop.ana, question)
        if error is None:
            answered += 1
            continue
        assert isinstance(error, DaleniusError), (number, question, repr(error))
        assert not isinstance(error, InternalError | EngineError | BudgetError), (number, question)
        assert error.charge == NOTHING and error.exit_code in (2, 3), (number, question)
        refused += 1
    assert not unchanged(before, files_under(tmp_path))
    assert refused > answered > many / 50

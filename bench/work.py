"""What functions cost in one row, against the weights of `measuring.work`; and what one unit adds to a question.

    python bench/work.py            # weights that are too low on this machine, worst texts and numbers of each function
    python bench/work.py pairs      # questions on neighbours: a hundredth of the rows does all the work, or nobody does

Costs are CPU seconds of one thread, the least of several runs, so that others who work meanwhile matter little. Weights
are for the machine of bench/RESULTS.md: on another one compare the ratio of each to the median ratio.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from dalenius.measuring.engines.duckdb.rendering import Renderer, heavier
from dalenius.measuring.expressions import Call, Column, Expression, Type, number, text
from dalenius.measuring.functions import FUNCTIONS
from dalenius.measuring.work import LONGEST_TEXT, Meter, Work, ballast
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask

ROWS = 20_480
RUNS = 3
TEXTS = {
    "empty": "''",
    "ascii": f"left('a' || i || repeat('abcdefgh ', {LONGEST_TEXT}), {LONGEST_TEXT})",
    "same": f"left(repeat('a', {LONGEST_TEXT}) || i, {LONGEST_TEXT})",
    "two bytes": f"left('ä' || i || repeat('ÄäöÜßéñ ', {LONGEST_TEXT}), {LONGEST_TEXT})",
    "four bytes": f"left('😀' || i || repeat('😀', {LONGEST_TEXT}), {LONGEST_TEXT})",
    "spaces": f"left(repeat(' ', {LONGEST_TEXT - 7}) || i, {LONGEST_TEXT})",
    "beside a double": "'2.470328229206232720882843' || i || 'e-324'",
    "between doubles": "'9007199254740993' || repeat('0', 10) || (100000 + i)",
    "digits before an exponent": "'-1.2345678901234567' || (10 + i % 90) || 'e-290'",
    "digits": f"left(i || repeat('9', {LONGEST_TEXT}), {LONGEST_TEXT})",
}
NUMBERS = {"usual": "i / 7.0", "huge": "1e308 - i", "tiny": "5e-324 * (i + 1)", "negative": "-i / 3.0"}
X, N, D = Column("x", Type.TEXT), Column("n", Type.NUMBER), Column("d", Type.DATE)
PATTERNS = ("%zzz%", "%" + "a" * 20 + "b%", "a%", "%a%b%q%", "%a_b%", "%" + "_" * 20 + "b%", "%" + "😀" * 90 + "b%")


def calls() -> list[Expression]:
    """Each function on arguments of its types."""
    found: list[Expression] = []
    for name, function in FUNCTIONS.items():
        first = [X if Type.TEXT in function.takes[0] else D if Type.DATE in function.takes[0] else N]
        kind = function.gives or Type.TEXT
        match name:
            case "like" | "ilike":
                found += [Call(name, (X, text(each)), kind) for each in PATTERNS]
            case "contains" | "starts_with" | "ends_with" | "position":
                found += [Call(name, (X, text(each.strip("%"))), kind) for each in PATTERNS]
            case "replace":
                found += [Call(name, (X, text(one), text(two)), kind) for one, two in (("a", "b" * 10), ("a" * 50, ""))]
            case "trim" | "ltrim" | "rtrim":
                found += [Call(name, (X, text(each)), kind) for each in ("*", "a😀 ", "abcdefghij")] + [
                    Call(name, (X,), kind)
                ]
            case "regexp":
                shown = ("gift|card", "(a|b)*a(a|b){3}c$", "^[^q]{9}q", "(?i)[^a-z]{3}x", "^(a|.b)*c.{2}$", ".*q$")
                found += [Call(name, (X, text(each)), kind) for each in shown]
            case "split_part":
                found += [Call(name, (X, text(each), number(190)), kind) for each in ("a", " ", "😀")]
            case "left" | "right":
                found += [Call(name, (X, number(each)), kind) for each in (5, LONGEST_TEXT - 1, -1)]
            case "substring":
                found.append(Call(name, (X, number(100), number(90)), kind))
            case "strftime":
                found.append(Call(name, (D, text("%Y" * 40)), kind))
            case "date_part" | "date_trunc":
                found.append(Call(name, (text("week"), D), function.gives or Type.DATE))
            case "date_add":
                found.append(Call(name, (text("month"), D, number(3)), Type.DATE))
            case "date_diff" | "date_sub":
                found.append(Call(name, (text("month"), D, D), kind))
            case "mod":
                found += [Call(name, (number(1e308), N), kind), Call(name, (N, number(7)), kind)]
            case "in":
                found.append(Call(name, (X, *(text(f"v{each}") for each in range(20))), kind))
            case "case" | "and" | "or" | "not" | "finite" | "coalesce" | "nullif" | "round" | "intdiv":
                continue  # made of others, or next to nothing
            case _:
                found.append(Call(name, tuple(first * (function.least or len(function.takes))), kind))
                if Type.NUMBER in function.takes[0] and Type.TEXT in function.takes[0]:
                    found.append(Call(name, (N,) * (function.least or len(function.takes)), kind))
    return found


def weights() -> None:
    """Prints each function's worst cost, its weight, and a mark where it is too low."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET disabled_optimizers = 'statistics_propagation'")
    renderer, meter, ratios = Renderer({"x": "x", "n": "n", "d": "d"}), Meter({}), []

    def taken(sql: str) -> float:
        found = []
        for _ in range(RUNS):
            start = time.process_time()
            connection.execute(sql).fetchall()
            found.append(time.process_time() - start)
        return min(found) / ROWS * 1e9

    worst: dict[Expression, float] = {}
    for kind, value in TEXTS.items():
        for size, other in NUMBERS.items():
            if kind != "ascii" and size != "usual":
                continue
            day = "DATE '2000-01-01' + (i % 9000)::INTEGER"
            rows = f"SELECT {value} AS x, {other} AS n, {day} AS d FROM range({ROWS}) r(i)"
            connection.execute(f"CREATE OR REPLACE TABLE t AS {rows}")
            base = taken("SELECT count(x), count(n), count(d) FROM t")
            for each in calls():
                cost = taken(f"SELECT count({renderer.sql(each)}), count(x), count(n), count(d) FROM t") - base
                worst[each] = max(worst.get(each, 0.0), cost)
    for expression, cost in worst.items():
        weight = meter(expression).worst
        ratios.append(cost / weight)
        mark = "  TOO LOW" if cost > weight * 1.2 + 60 else ""
        shown = renderer.sql(expression).replace("\n", " ")[:60]
        print(f"{shown:62} {cost:10.0f} ns, weight {weight:10.0f}{mark}")
    print(f"median of cost / weight (statements take some 50 ns a row themselves): {statistics.median(ratios):.2f}")
    for load in (Work(2_000), Work(20_000), Work(200_000)):
        plain = taken("SELECT count(*) FROM t WHERE random() < 2")
        cost = taken(f"SELECT count(*) FROM t WHERE {heavier(load)}") - plain
        print(f"ballast for {load.worst:9.0f} ns: {cost:8.0f} ns, meant {ballast(load):8.0f}")


PAIRS = {
    "ILIKE under a condition": "SELECT COUNT(*) FROM t WHERE name = 'bob' AND ({})",
    "ILIKE in FILTER": "SELECT COUNT(*) FILTER (WHERE name = 'bob' AND ({})) FROM t",
    "CASE": "SELECT SUM(CASE WHEN name = 'bob' THEN CASE WHEN {} THEN 1 ELSE 2 END ELSE 0 END) FROM t",
    "long text of one": "SELECT COUNT(*) FROM (SELECT CASE WHEN name = 'bob' THEN note ELSE '' END AS note, age FROM t)"
    " WHERE {}",
    "texts as they are": "SELECT COUNT(*) FROM t WHERE {}",
    "no work": "SELECT COUNT(*), SUM(age) FROM t WHERE name = 'bob'",
    "groups": "SELECT age, COUNT(*) FROM t WHERE {} GROUP BY age",
}


def pairs(rows: int = 1_000_000) -> None:
    """The time of questions where bob has a hundredth of the rows, and where nobody is called so."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dalenius import Curator
    from dalenius.measuring._exact import exact

    with TemporaryDirectory() as folder:
        held: dict[str, Any] = {}
        for side, name in (("with", "bob"), ("without", "joe")):
            home = Path(folder) / side
            home.mkdir()
            bob = [at % 100 == 0 for at in range(rows)]
            table = pa.table(
                {
                    "id": [0 if each else at for at, each in enumerate(bob)],
                    "name": [name if each else "joe" for each in bob],
                    "note": ["😀ä" * 100 if each and name == "bob" else "" for each in bob],
                    "age": [at % 80 for at in range(rows)],
                }
            )
            pq.write_table(table, home / "t.parquet")
            (home / "t.toml").write_text(POLICY)
            curator = Curator(home / "home")
            curator.protect(home / "t.toml")
            held[side] = curator
        for terms in (0, 1, 3, 20):
            tested = " OR ".join(f"note ILIKE '%b{at}%'" for at in range(terms)) or "age < 50"
            for label, question in PAIRS.items():
                plans = {
                    side: plan_ask(each.analyst("eve")._asker, Ask(question.format(tested))).plan  # noqa: SLF001
                    for side, each in held.items()
                }
                taken: dict[str, list[float]] = {"with": [], "without": []}
                for _ in range(5):
                    for side, curator in held.items():
                        (version,) = curator.tables()
                        engine = curator.engines.of(version.fingerprint, plans[side].table)
                        start = time.process_time()
                        exact(plans[side], engine, "salt")
                        taken[side].append(time.process_time() - start)
                one, other = min(taken["with"]), min(taken["without"])
                print(f"{terms:3} × {label:26} {other * 1000:8.0f} ms, with bob {one * 1000:8.0f}: {one / other:5.2f}")


POLICY = """
[table]
name = "t"
source = "t.parquet"
unit = "id"
[budget]
epsilon = 50.0
delta = 1e-6
[analysts.eve]
epsilon = 50.0
[columns.name]
type = "category"
[columns.note]
type = "text"
[columns.age]
type = "integer"
bounds = [0, 100]
[contribution]
rows = 3
"""


if __name__ == "__main__":
    pairs() if "pairs" in sys.argv[1:] else weights()

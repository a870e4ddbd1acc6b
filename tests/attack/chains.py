"""Chains of questions, for `test_known_chains`: made-up questions about one small table, asked in a row without noise.

Without noise, and at limits that nobody reaches, an answer is the truth of the data as they are now, whether it was
paid for or follows from others. So one that follows from what it should not, another filter, other data, somebody
else's answers, is a wrong number. At limits that cut off much, in some of the chains, a count or a sum that is free
lies between the truth and what is left where all rows of a unit share its limit: no tighter limit served.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius import Curator
from dalenius.errors import DaleniusError
from dalenius.measuring.plan import Limits

POLICY = """
[table]
name = "t"
source = "t.parquet"
unit = "person"
[budget]
epsilon = 1000000.0
delta = 1e-6
{pure}
share_answers = false
[analysts.ana]
epsilon = 500000.0
[analysts.bob]
epsilon = 500000.0
[columns.region]
type = "category"
keys = ["n", "s", "e", "w"]
[columns.smoker]
type = "boolean"
default = false
[columns.age]
type = "integer"
bounds = [0, 9]
[columns.amount]
type = "number"
bounds = [0, 20]
step = 0.5
[contribution]
rows = {rows}
totals = {{ amount = {total}, age = {total} }}
"""
KEYS = ("region", "smoker", "age", "age // 3", "CASE WHEN age < 5 THEN 'young' ELSE 'old' END", "age >= 4")
CONDITIONS = (
    "region = 'n'",
    "region IN ('n', 's')",
    "region <> 'w'",
    "region IS NOT NULL",
    "region IS NULL",
    "smoker",
    "NOT smoker",
    "age < 3",
    "age < 6",
    "age >= 3",
    "age BETWEEN 3 AND 5",
    "age IS NOT NULL",
    "amount < 10",
    "amount >= 10",
    "amount < 5",
)
MEASURES = ("COUNT(*)", "COUNT(age)", "SUM(amount)", "AVG(amount)", "SUM(age)", "COUNT(*) FILTER (WHERE age < 6)")
PRICES = (1.0, 4.0, 16.0)
LOW = 0.02  # what is asked for again in other words: it may follow
FEW = (("region", "smoker"), CONDITIONS[:7])  # keys and conditions of workloads: few cells are planned quickly


@dataclass
class Seen:
    """What became of some chains."""

    chains: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


@contextmanager
def without_noise(monkeypatch: Any):
    """Every mechanism releases what it was given; whoever looks at data is counted."""
    from dalenius.mechanisms.discrete_gaussian import DiscreteGaussian
    from dalenius.mechanisms.laplace import Laplace
    from dalenius.queries import answering
    from dalenius.queries.workloads import measuring

    looks = [0]
    with monkeypatch.context() as patched:
        for mechanism in (DiscreteGaussian, Laplace):
            release = mechanism.release

            def exactly(self: Any, vector: Any, *more: Any, release: Any = release, **named: Any) -> Any:
                found = release(self, vector, *more, **named)
                value = np.array(list(vector), dtype=object)
                return type(found)(value, *[getattr(found, each) for each in list(found.__dataclass_fields__)[1:]])

            patched.setattr(mechanism, "release", exactly)
        for module in (answering, measuring):
            own = module.exact

            def counted(*given: Any, own: Any = own, **named: Any) -> Any:
                looks[0] += 1
                return own(*given, **named)

            patched.setattr(module, "exact", counted)
        yield looks


def rows_of(random: Random) -> pa.Table:
    """Some people with a few rows each; anything but the person may be missing."""
    found = [
        (
            person,
            random.choice(["n", "s", "e", "w", None, "x"]),
            random.choice([True, False, None]),
            random.choice([None, *range(10)]),
            random.choice([None, *(half / 2 for half in range(41))]),
        )
        for person in range(random.randint(8, 20))
        for _ in range(random.randint(1, 4))
    ]
    names = ["person", "region", "smoker", "age", "amount"]
    types = [pa.int64(), pa.string(), pa.bool_(), pa.int64(), pa.float64()]
    return pa.table(
        {
            name: pa.array(list(own), type_)
            for name, type_, own in zip(names, types, zip(*found, strict=True), strict=True)
        }
    )


def question(
    random: Random, keys: tuple[str, ...] = KEYS, conditions: tuple[str, ...] = CONDITIONS
) -> tuple[list[str], list[str], list[str]]:
    """Keys, conditions and measures; few kinds of them, so that questions meet."""
    grouped = random.sample(keys, random.choice([0, 1, 1, 2, 2]))
    kept = random.sample(conditions, random.choice([0, 0, 0, 1, 2]))
    measures = random.sample(MEASURES, random.choice([1, 1, 2]))
    return grouped, kept, measures


def sql_of(asked: tuple[list[str], list[str], list[str]]) -> str:
    keys, conditions, measures = asked
    columns = [*(f"{key} AS k{at}" for at, key in enumerate(keys)), *(f"{m} AS m{at}" for at, m in enumerate(measures))]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    group = f" GROUP BY {', '.join(f'k{at}' for at in range(len(keys)))}" if keys else ""
    return f"SELECT {', '.join(columns)} FROM t{where}{group}"


def truth_of(
    folder: Path, asked: tuple[list[str], list[str], list[str]], limits: tuple[int, int] | None = None
) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """By plain DuckDB, on the values as the policy reads them; with limits, where all rows of a unit share them."""
    source = f"""(SELECT person, CASE WHEN region IN ('n', 's', 'e', 'w') THEN region END AS region,
        COALESCE(smoker, false) AS smoker, age, amount FROM read_parquet('{folder / "t.parquet"}'))"""
    keys, conditions, measures = asked
    if limits is not None:
        rows, total = limits
        source = f"""(SELECT *, LEAST(1.0, {rows} / COUNT(*) OVER (PARTITION BY person)) AS of_rows,
            COALESCE(LEAST(1.0, {total} / SUM(amount) OVER (PARTITION BY person)), 1.0) AS of_amount,
            COALESCE(LEAST(1.0, {min(total, 9 * rows)} / SUM(age) OVER (PARTITION BY person)), 1.0) AS of_age
            FROM {source})"""  # so many rows of 9 years at most: then so much in all
        measures = [_SHARED.get(each, each) for each in measures]
    text = sql_of((keys, conditions, measures)).replace("FROM t", f"FROM {source} AS t", 1)
    found = duckdb.execute(text).fetchall()
    return {tuple(row[: len(keys)]): tuple(row[len(keys) :]) for row in found if None not in row[: len(keys)]}


_SHARED = {
    "COUNT(*)": "SUM(of_rows)",
    "COUNT(age)": "SUM(of_rows) FILTER (WHERE age IS NOT NULL)",
    "SUM(amount)": "SUM(amount * of_amount)",
    "SUM(age)": "SUM(age * of_age)",
    "COUNT(*) FILTER (WHERE age < 6)": "SUM(of_rows) FILTER (WHERE age < 6)",
}


class Chain:
    """One home, and what is asked there."""

    def __init__(self, folder: Path, random: Random, looks: list[int], seen: Seen) -> None:
        self.folder, self.random, self.looks, self.seen = folder, random, looks, seen
        self.pure = random.random() < 0.3
        self.tight = random.random() < 0.4
        self.rows, self.total = (2, 20) if self.tight else (1000, 4000)
        pq.write_table(rows_of(random), folder / "t.parquet")
        self.curator = Curator(folder / "home")
        self._protect()
        self.asked: list[tuple[list[str], list[str], list[str]]] = []
        self.paid: set[str] = set()

    def _protect(self) -> None:
        pure = 'accounting = "pure"' if self.pure else ""
        text = POLICY.format(rows=self.rows, total=self.total, pure=pure)
        (self.folder / "t.toml").write_text(text.replace("delta = 1e-6\n", "") if self.pure else text)
        self.curator.protect(self.folder / "t.toml", yes=True)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            way = self.random.choice(("ask",) * 8 + ("coarser",) * 13 + ("workload", "refresh", "policy", "people"))
            getattr(self, way)()
        self.seen.chains += 1

    def ask(self, asked: tuple[list[str], list[str], list[str]] | None = None) -> None:
        price = self.random.choice(PRICES) if asked is None else LOW
        asked = question(self.random) if asked is None else asked
        who = "ana" if self.random.random() < 0.8 else "bob"
        self.asked.append(asked)
        # Limits of its own must not serve whoever asks without.
        typed = Limits(rows=1, search=self.random.choice([0, None])) if self.random.random() < 0.1 else None
        if typed is not None and self.random.random() < 0.5:  # twice, at two prices: they could be combined
            self.curator.analyst(who).ask(sql_of(asked), epsilon=price / 2, limits=typed)
            self.paid.add(who)
        before, entries = self.looks[0], self._entries()
        try:
            release = self.curator.analyst(who).ask(sql_of(asked), epsilon=price, limits=typed)
        except DaleniusError as error:
            self.seen.steps[f"refused {error.code}"] += 1
            if error.code == "ledger.corrupt":  # as for who would read what somebody else has paid for
                self._wrong(asked, str(error))
            return
        self.seen.steps["free" if release.free else "paid"] += 1
        if not release.free:
            self.paid.add(who)
        else:
            if self.looks[0] != before or self._entries() != entries:
                self._wrong(asked, "was looked at, or recorded, though it was free")
            if who not in self.paid:
                self._wrong(asked, f"was free for {who}, who has paid for nothing")
        if typed is None:
            self._compare(asked, release)

    def coarser(self) -> None:
        """Something that may follow from what was asked: a key less, a condition more."""
        if not self.asked:
            return
        keys, conditions, measures = self.random.choice(self.asked)
        if keys and self.random.random() < 0.5:
            keys = keys[:-1]
        elif conditions and self.random.random() < 0.3:
            conditions = [f"NOT ({' AND '.join(conditions)})"]
        else:
            near = [each for each in CONDITIONS if any(each.replace("NOT ", "").split()[0] in key for key in keys)]
            conditions = [*conditions, self.random.choice(near or CONDITIONS)]
            keys = keys[: self.random.randint(0, len(keys))]
        self.ask((keys, conditions, measures[:1]))

    def workload(self) -> None:
        asked = [question(self.random, *FEW) for _ in range(self.random.randint(2, 3))]
        try:
            found = self.curator.analyst("ana").ask_many([sql_of(each) for each in asked], epsilon=2.0)
        except DaleniusError as error:
            self.seen.steps[f"refused {error.code}"] += 1
            return
        self.seen.steps["workload"] += 1
        self.paid.add("ana")
        self.asked += asked
        for each, release in zip(asked, found.releases, strict=True):
            if not self.tight:
                self._compare(each, release)

    def refresh(self) -> None:
        pq.write_table(rows_of(self.random), self.folder / "t.parquet")
        self.curator.refresh("t")
        self.seen.steps["refresh"] += 1

    def people(self) -> None:
        pq.write_table(rows_of(self.random), self.folder / "t.parquet")
        self.curator.refresh("t", new_people=True, yes=True, reason="a new year with other people")
        self.paid.clear()
        self.seen.steps["people"] += 1

    def policy(self) -> None:
        self.rows += 1 if self.rows % 2 == 0 else -1
        self._protect()
        self.seen.steps["policy"] += 1

    def _entries(self) -> int:
        return len(list(self.curator.ledger.records(("charge", "answer", "grant"))))

    def _compare(self, asked: tuple[list[str], list[str], list[str]], release: Any) -> None:
        if self.tight:
            self._between(asked, release)
            return
        truth, keys = truth_of(self.folder, asked), len(asked[0])
        for row in release.rows:
            expected = truth.get(tuple(row[:keys]))
            for place, value in enumerate(row[keys:]):
                wanted = None if expected is None else expected[place]
                average = asked[2][place].startswith("AVG")
                if average and (wanted is None or value is None):
                    continue  # of no rows there is none
                if not math.isclose(float(value or 0.0), float(wanted or 0.0), rel_tol=1e-6, abs_tol=1e-4):
                    self._wrong(asked, f"{row} is not {expected} (free: {release.free})")
                    return

    def _between(self, asked: tuple[list[str], list[str], list[str]], release: Any) -> None:
        """That no more was cut off from a free count or sum than any answer at the table's own limits has cut off.

        At the worst all rows of a unit share its limit. Workloads find limits for all their questions, and say so.
        """
        if not release.free or any("workload" in note for note in release.notes):
            return
        truth, keys = truth_of(self.folder, asked), len(asked[0])
        least = truth_of(self.folder, asked, (self.rows, self.total))
        for row in release.rows:
            for place, value in enumerate(row[keys:]):
                if asked[2][place].startswith("AVG"):
                    continue
                ends = [found.get(tuple(row[:keys]), (0,) * len(asked[2]))[place] or 0 for found in (least, truth)]
                if not float(ends[0]) - 1.01 <= float(value) <= float(ends[1]) + 1.01:  # it is rounded
                    self._wrong(asked, f"{row} is not between {ends}")
                    return

    def _wrong(self, asked: tuple[list[str], list[str], list[str]], why: str) -> None:
        self.seen.wrong.append(f"{sql_of(asked)}: {why}")


def run_chains(folder: Path, chains: int, seed: int, looks: list[int], start: int = 0, steps: int = 8) -> Seen:
    """So many chains, each in a home of its own, up to the first that is wrong."""
    seen = Seen()
    for number in range(start, start + chains):
        own = folder / str(number)
        own.mkdir()
        Chain(own, Random(f"{seed} {number}"), looks, seen).run(steps)
        if seen.wrong:
            break
    return seen

"""OpenDP's Polars context, which reads the file lazily.

    python bench/peers/opendp_polars.py PURCHASES.parquet

The unit is the user (`identifier`), cut to 10 rows. An average is its noisy sum over its noisy length. Float sums and
quantiles need a public bound on the rows of the table: twice their number. `release()` calibrates by a search that
takes about a second whatever the size of the data; it is in "seconds", not in "run_seconds".
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import polars as pl  # type: ignore[import-not-found]

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.peers.timing import DELTA, EPSILON, REGIONS, ROWS_PER_USER, Question, Rows, report

dp: Any = import_module("opendp.prelude")  # its stubs leave out what is used here


def main() -> None:
    """Times all questions."""
    dp.enable_features("contrib")
    data = pl.scan_parquet(sys.argv[1])
    most = 2 * data.select(pl.len()).collect().item()

    def private() -> Any:
        context = dp.Context.compositor(
            data=data,
            privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
            privacy_loss=dp.loss_of(epsilon=EPSILON, delta=DELTA),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=[], max_length=most)],
        )
        return context.query().truncate_per_group(ROWS_PER_USER)

    size = dp.len(signed=True).alias("n")
    total = pl.col("amount").fill_null(0.0).fill_nan(0.0).dp.sum((0.0, 5000.0))
    middle = pl.col("age").fill_null(0).dp.median(list(range(121)))
    public = pl.LazyFrame({"region": list(REGIONS)})

    def regions() -> Any:
        return private().group_by("region").agg(size, total).with_keys(public)

    def averaged(rows: Rows) -> Rows:
        return [(region, n, amount / n if n else None) for region, n, amount in rows]

    def question(asked: Callable[[], Any], then: Callable[[Rows], Rows] = lambda rows: rows) -> Question:
        def prepare() -> Callable[[], Rows]:
            released = asked().release()
            return lambda: then(released.collect().rows())

        return prepare

    questions = {
        "count": question(lambda: private().select(size)),
        "sum": question(lambda: private().select(total)),
        "region": question(regions, averaged),
        "median": question(lambda: private().select(middle)),
        "product": question(lambda: private().group_by("product").agg(size)),
    }
    report(questions, ("opendp", "polars"))


if __name__ == "__main__":
    main()

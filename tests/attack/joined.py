"""A data set of three tables and two public ones, with a victim or without: what attacks through joins share.

The victim is one person with 500 orders of 500 items, all with values that nobody else has.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.attack.hostile import RARE, VICTIM, VICTIM_ROWS
from tests.shop import Shop

from dalenius.measuring.engines.duckdb.backend import MultiFile

UNITS, EACH = 30, 3
LAST = date(2025, 12, 31)


def tables(*, victim: bool) -> dict[str, pa.Table]:
    """Ordinary people with three orders of two items each, and the victim or not."""
    people: dict[str, list[Any]] = {
        "user_id": list(range(UNITS)),
        "age": [20 + at for at in range(UNITS)],
        "region": ["nse"[at % 3] for at in range(UNITS)],  # nobody lives in the west
        "smoker": [at % 4 == 0 for at in range(UNITS)],
        "note": [f"{at % 5}" for at in range(UNITS)],
    }
    count = UNITS * EACH
    orders: dict[str, list[Any]] = {
        "order_id": list(range(count)),
        "user_id": [at % UNITS for at in range(count)],
        "amount": [float(at % 50) for at in range(count)],
        "status": ["open" if at % 2 else "done" for at in range(count)],
        "region": ["nse"[at % 3] for at in range(count)],
        "day": [date(2025, 1, 1) + timedelta(days=at) for at in range(count)],
        "note": [f"{at % 7}" for at in range(count)],
    }
    items: dict[str, list[Any]] = {
        "item_id": list(range(2 * count)),
        "order_id": [at % count for at in range(2 * count)],
        "sku": ["ab"[at % 2] for at in range(2 * count)],
        "quantity": [at % 5 for at in range(2 * count)],
        "price": [float(at % 20) for at in range(2 * count)],
    }
    if victim:
        more = VICTIM_ROWS
        added: tuple[tuple[dict[str, list[Any]], dict[str, list[Any]]], ...] = (
            (people, {"user_id": [VICTIM], "age": [90], "region": ["w"], "smoker": [None], "note": [RARE]}),
            (
                orders,
                {
                    "order_id": list(range(10_000, 10_000 + more)),
                    "user_id": [VICTIM] * more,
                    "amount": [100.0] * more,
                    "status": ["open"] * more,
                    "region": ["w"] * more,
                    "day": [LAST] * more,
                    "note": [RARE] * more,
                },
            ),
            (
                items,
                {
                    "item_id": list(range(10_000, 10_000 + more)),
                    "order_id": list(range(10_000, 10_000 + more)),
                    "sku": ["c"] * more,
                    "quantity": [10] * more,
                    "price": [50.0] * more,
                },
            ),
        )
        for held, rare in added:
            for name, values in rare.items():
                held[name] += values
    return {"people": pa.table(people), "orders": pa.table(orders), "items": pa.table(items)}


def shop_of(folder: Path, *, victim: bool, rows: int = 20, **changes: Any) -> Shop:
    """The data set, protected; at most ``rows`` orders and items of one person count."""
    return Shop.protected(folder, tables(victim=victim), rows=rows, **changes)


def weights_of(shop: Shop, question: str) -> dict[tuple[Any, ...], int]:
    """The weight of every key that occurs, before noise, where keys have to be found."""
    plan, reading = shop.planned(question)
    cells, found = reading.engine(shop.curator.engines).weights(plan, "a salt")
    return dict(zip(cells, found, strict=True))


def ran(monkeypatch: Any) -> list[str]:
    """From now on, every statement over several tables that runs."""
    seen: list[str] = []
    run = MultiFile.run

    def spied(self: MultiFile, sql: str, *, seconds: float = 60.0) -> list[tuple[Any, ...]]:
        seen.append(sql)
        return run(self, sql, seconds=seconds)

    monkeypatch.setattr(MultiFile, "run", spied)
    return seen

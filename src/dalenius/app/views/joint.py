"""What joint computations tell, on a terminal and in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console


def security(parties: int, threshold: int) -> str:
    """What is reached, in one sentence for people."""
    if threshold * 2 >= parties:
        reached = "sums only: products need a majority that does not collude"
    else:
        reached = f"{threshold} of {parties} parties together learn nothing else, if all follow the protocol"
    wrong = "noticed, and its sender named" if parties >= 3 * threshold + 1 else "noticed, but not whose it is"
    return f"Security: {reached}. A wrong share in a sum is {wrong}. A party may take the result and leave."


def sum_security(parties: int, threshold: int) -> str:
    """What is reached by a joint answer, in a few sentences for people."""
    if parties == threshold + 1:
        wrong = "not noticed"
    else:
        wrong = "noticed, and its sender named" if parties >= 3 * threshold + 1 else "noticed, but not whose it is"
    return (
        f"Security: towards {threshold} of {parties} parties together the answer is as private as ε says, if all follow"
        f" the protocol. A wrong share is {wrong}. A party may take the answer and leave."
    )


def print_trial(console: Console, data: Mapping[str, Any]) -> None:
    """That all parties reach one another."""
    console.print(Text(f"All {len(data['parties'])} parties met: {', '.join(data['parties'])}.", "bold"))
    rate = data["products"] / data["in_s"]
    console.print(
        f"They met in {data['met_in_s']:.2f} s, then multiplied {data['products']:,} random numbers:"
        f" {rate:,.0f} a second.",
        highlight=False,
    )
    console.print(Text(security(len(data["parties"]), data["threshold"]), "dim"))


def print_auction(console: Console, data: Mapping[str, Any]) -> None:
    """The price, and what was learned beside it: nothing."""
    counted = f"{data['counted']:,} of {data['bids']:,} bids counted"
    if data["price"] is None:
        console.print(Text("No price clears the market: more is wanted than offered at each.", "bold"))
    else:
        console.print(Text(f"The market clears at price number {data['price']:,}.", "bold"))
    console.print(f"{counted}. The servers learned this, and nothing else of any bid.", highlight=False)
    if "seconds" in data:
        found = "there is none, too" if data["openly"] is None else f"the price is number {data['openly']:,}"
        console.print(
            f"{data['prices']:,} prices, {data['parties']} servers, {data['seconds']:.2f} s. The bids were made up,"
            f" so we may check: in the clear {found}.",
            highlight=False,
        )
    if data.get("amount") is not None:
        console.print(
            f"A made-up bidder opens its amount from the three answers: {data['amount']:,} (bid: {data['bid']:,}).",
            highlight=False,
        )
    console.print(Text(security(data["parties"], data["threshold"]), "dim"))


def draw_market(target: Path, curves: NDArray[np.int64], price: int | None) -> None:
    """Demand and supply of a made-up market, and the price that was found without looking at them."""
    from dalenius.queries.charts import axes_in

    with axes_in(target) as axes:
        axes.plot(curves.clip(min=0).sum(axis=0), color="#4477aa", label="demand")
        axes.plot((-curves).clip(min=0).sum(axis=0), color="#cc6677", label="supply")
        if price is not None:
            axes.axvline(price, color="#333333", linewidth=0.8, label=f"price found jointly: {price:,}")
        axes.set_xlabel("price")
        axes.set_ylabel("amount")
        axes.set_title(f"{curves.shape[0]:,} made-up bidders, drawn afterwards", loc="left")
        axes.legend(frameon=False)

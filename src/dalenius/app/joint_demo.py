"""The demonstration of an auction: three parties on this machine, and bids that are made up."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

AUCTION = "beets"


def hold_demo(names: Sequence[str], bidders: int, prices: int) -> tuple[dict[str, Any], NDArray[np.int64]]:
    """Lays a home for each server, hands in made-up bids, and holds the auction: what came out, and the bids."""
    import numpy as np
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from dalenius.joint.auction import clear_openly, made_up_market
    from dalenius.joint.bids import open_amount, seal_bid
    from dalenius.joint.rehearsal import lay, waiting
    from dalenius.joint.serving import begin
    from dalenius.joint.tasks import auction_folder, read_bids

    threshold = (len(names) - 1) // 2
    curves = made_up_market(bidders, prices, np.random.default_rng())
    with tempfile.TemporaryDirectory(prefix="dalenius-joint-") as place:
        parties = lay(Path(place), names)
        cards = [each.card for each in parties]
        folders = [auction_folder(each.folder.parent, AUCTION) for each in parties]
        for folder in folders:
            (folder / "bids").mkdir(parents=True)
        keys = [X25519PrivateKey.generate() for _ in curves]
        for number, (curve, key) in enumerate(zip(curves, keys, strict=True)):
            sealed = seal_bid(AUCTION, curve, cards, threshold, key).pack()
            for folder in folders:
                (folder / "bids" / f"{number:05}.bid").write_bytes(sealed)
        with waiting(parties[1:]):
            began = time.perf_counter()
            bids, digest = read_bids(folders[0])
            task = {"name": "auction", "auction": AUCTION, "prices": prices, "bids": len(bids), "digest": digest}
            data = dict(asyncio.run(begin(parties[0], names[1:], task)))
            data["seconds"] = time.perf_counter() - began
            amount = None
            if data["price"] is not None:
                answers = [(folder / "amounts" / "00000.amount").read_bytes() for folder in folders]
                amount = open_amount(AUCTION, answers, cards, threshold, keys[0])
    data |= {
        "prices": prices,
        "parties": len(names),
        "threshold": threshold,
        "openly": clear_openly(curves),
        "amount": amount,
        "bid": None if data["price"] is None else int(curves[0, data["price"]]),
    }
    return data, curves

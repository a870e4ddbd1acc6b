"""What was asked, kept with its answer so that later questions can follow from it: encrypted under a key of the home.

The ledger's file holds prices and noisy numbers, and of questions their hashes. Who reads that file alone, or a release
in it, learns no more about what somebody asked from what is kept here.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import TYPE_CHECKING, Any

from dalenius.ledger import sealing

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger

ASKED = "sealed"  # under which it stands in a stored answer
_PURPOSE = b"dalenius: what was asked, 1"
_LARGEST = 2**22  # bytes, once it is unpacked: what is longer is not looked at


def seal(ledger: Ledger, data: Any) -> str:
    """JSON that only this home reads."""
    plain = zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 1)
    return base64.b64encode(sealing.seal(ledger, plain, _PURPOSE)).decode()


def unseal(ledger: Ledger, text: str) -> Any:
    """As `seal` wrote it; None where it was not written with this home's key, as in a ledger that has moved."""
    return unseal_sized(ledger, text)[0]


def unseal_sized(ledger: Ledger, text: str) -> tuple[Any, int]:
    """The same, with how many bytes it is."""
    try:
        plain = sealing.unseal(ledger, base64.b64decode(text, validate=True), _PURPOSE)
        if plain is None:
            return None, 0
        written = zlib.decompressobj().decompress(plain, _LARGEST)
        return json.loads(written), len(written)
    except (ValueError, zlib.error):
        return None, 0

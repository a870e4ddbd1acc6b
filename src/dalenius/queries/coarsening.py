"""An answer from another one: the noisy integers that are stored, with the noise of the own price on top.

Guarantee:
    Every measure's stored integers get noise of its own mechanism at the price that the asker typed, in full, as fresh
    integers would. Towards this asker the answer is as private as that mechanism, whatever noise is there already;
    towards all together it is post-processing of what was released before. Why, and when: `dalenius.ledger.sharing`.

What an interval covers is another matter: there both noises count.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dalenius.errors import LedgerCorruptError
from dalenius.mechanisms import noise
from dalenius.queries.answering import COARSENED, FORMAT, law_to_json

if TYPE_CHECKING:
    from dalenius.measuring.plan import Plan
    from dalenius.queries.rules.price import Priced


def shareable(plan: Plan) -> bool:
    """Whether nothing in a question's answer depends on an earlier draw of noise but the noise itself.

    Found keys and limits do: the noise has chosen what was measured. So do the counts of quantiles, which are stored
    rounded (`pack`): rounded after the noise they move in larger steps than one unit moves them, and what is added
    for one unit's step would not hide those.
    """
    trees = any(each.primitive.tree for each in plan.measures)
    return plan.selection is None and not plan.searched and not trees


def coarsened(plan: Plan, priced: Priced, content: bytes) -> bytes:
    """The bytes of an answer at ``priced``, from those of another analyst's. Never looks at the data."""
    data = json.loads(content)
    stored = data["measures"]
    sizes = [len(plan.cells) * each.width for each in plan.measures]
    plain = data["format"] == FORMAT and not {"cells", "limits"} & set(data) and shareable(plan)
    if not plain or [len(each["values"]) for each in stored] != sizes:
        raise LedgerCorruptError(
            "A stored answer cannot be read.", why="It has another form.", fix="Update dalenius, or ask the owner."
        )
    noise.fresh_key()
    measures: list[dict[str, Any]] = []
    for mechanism, each in zip(priced.mechanisms, stored, strict=True):
        integers = [int(value) for value in each["values"]]
        values = mechanism.release(integers).value.tolist() if integers else []
        law = law_to_json(mechanism.noise) | {"beside": each["law"]}
        measures.append({"law": law, "values": [str(value) for value in values]})
    found = {"format": COARSENED, "epsilon": priced.epsilon, "rho": priced.rho, "measures": measures}
    return json.dumps(found, separators=(",", ":")).encode()

"""A model as a folder: `card.json`, `card.md` and `weights.json`. Reading one back checks it; no code in it runs."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius._fields import once
from dalenius.errors import InputError, LedgerCorruptError, SourceUnavailableError
from dalenius.learning.card import FORMAT, WEIGHTS, card_of, page_of
from dalenius.learning.release import TrainedModel
from dalenius.learning.stored import MOST_BYTES, StoredModel
from dalenius.ledger import receipts
from dalenius.ledger.chain import digest
from dalenius.ledger.home import public_key as read_key
from dalenius.releasing.targets import unwritable
from dalenius.releasing.whole_table import NOTHING_PAID
from dalenius.tables.sources.homes import check_output

if TYPE_CHECKING:
    from dalenius.learning.scoring import Scored

CARD, PAGE = "card.json", "card.md"
FILES = (CARD, PAGE, WEIGHTS)


def check_folder(folder: Path) -> None:
    """Refuses a folder that a model cannot be written into, before anything is charged for one."""
    for name in FILES:
        check_output(folder / name)
    if folder.exists() and not folder.is_dir():
        raise SourceUnavailableError(
            f"{folder.name} is a file.", why="A model is a folder of three files.", fix="Name another folder."
        )
    if folder.is_dir():
        others = sorted(each.name for each in folder.iterdir() if each.name not in FILES)
        if others:
            raise InputError(
                f"The folder {folder.name} holds something else.",
                why="A model has a folder of its own, so that nothing is taken for a part of it.",
                fix="Name a new folder.",
            )
    above = folder if folder.is_dir() else folder.absolute().parent
    if not above.is_dir():
        raise SourceUnavailableError(
            f"There is no folder to make {folder.name} in.", why="Only one folder is made.", fix="Make the one above."
        )
    if not os.access(above, os.W_OK):
        raise unwritable(folder, PermissionError(13, "Permission denied"))


def save(found: TrainedModel, folder: Path, scored: Scored | None = None) -> list[Path]:
    """Writes a model into a folder; the card last, so that a folder with a card is whole."""
    check_folder(folder)
    content = found.stored.content()
    card = card_of(found, content, scored)
    text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        folder.mkdir(exist_ok=True)
        (folder / CARD).unlink(missing_ok=True)  # of a model that was here before
        for name, bytes_ in ((WEIGHTS, content), (PAGE, page_of(card).encode()), (CARD, text.encode())):
            _write(folder / name, bytes_)
    except OSError as error:
        raise unwritable(folder, error) from None
    return [folder / name for name in FILES]


def load_model(folder: Path | str, *, public_key: Path | str | None = None) -> TrainedModel:
    """A model from its folder, checked: its weights are those that its receipt is for.

    Args:
        folder: As `TrainedModel.save` wrote it.
        public_key: The key of the curator that trained it (`keys/signing.pub` of its home). Without it nothing says
            who wrote the receipt.

    Raises:
        LedgerCorruptError: Weights, card and receipt do not fit each other, or the receipt is not of that key.
    """
    place = Path(folder)
    content, card = _read(place / WEIGHTS), _json(place / CARD)
    receipt = card.get("receipt")
    if card.get("format") != FORMAT or not isinstance(receipt, dict):
        raise InputError(
            f"{place.name} holds no model.", why=f"Its {CARD} is not a card of ours.", fix="Name another folder."
        )
    known = receipts.Receipt.__dataclass_fields__
    if set(receipt) != set(known) or not all(type(receipt[name]) is str for name in ("release", "signature", "id")):
        raise _unfit("The receipt on its card is not one.")
    if receipt["release"] != digest(content):
        raise _unfit(f"{WEIGHTS} is not what its receipt is for.")
    if public_key is not None:
        receipts.check(receipts.Receipt(**receipt), read_key(Path(public_key)))
    stored = StoredModel.read(content)
    guarantee, paid = stored.guarantee, receipt["charge"]
    if not isinstance(paid, dict) or not paid.get("epsilon") == stored.epsilon == guarantee["epsilon"]:
        raise _unfit("Its guarantee is not that of the receipt.")
    if card.get("guarantee") != guarantee:
        raise _unfit("The card promises something else than the model.")
    found = TrainedModel(stored, {}, guarantee, dict(NOTHING_PAID), {}, True, receipt)
    if card_of(found, content) | {"score": card.get("score")} != card:
        raise _unfit("The card says something else than the model.")
    return found


def _unfit(why: str) -> LedgerCorruptError:
    return LedgerCorruptError(
        "This model is not what its card says.",
        why=why,
        fix="Get it again from who trained it: by the number of its release that is free.",
    )


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as source:
            found = source.read(MOST_BYTES + 1)
    except OSError:
        raise SourceUnavailableError(
            f"{file.name} cannot be read.", why="A model is a folder with that file.", fix="Name such a folder."
        ) from None
    return found


def _json(file: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(_read(file), object_pairs_hook=once)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise InputError(f"{file.name} is not a card.", why="A card is JSON.", fix="Name the folder of a model.")
    return data


def _write(file: Path, content: bytes) -> None:
    """All of it or nothing."""
    beside = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    try:
        beside.write_bytes(content)
        beside.replace(file)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise

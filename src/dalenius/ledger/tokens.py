"""Tokens: who may use a server, as what, and until when.

A token is a text of 256 random bits that is shown once. The history keeps its SHA-256 (a fast hash is right: there is
nothing to guess in 256 bits), role, analyst and end, as entries of kind "token"; so a token is given and revoked on
record, and every process that shares the ledger sees it at its next check (`projection`).
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from dalenius.errors import AuthMissingError, InputError, UnknownTokenError
from dalenius.ledger.actions import check_named
from dalenius.ledger.chain import Entry, digest

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger

USUAL_LIFE, LONGEST_LIFE = timedelta(days=30), timedelta(days=366)
LONGEST_NOTE = 200

_FORM = re.compile("dalenius_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")
_ID, _HASH = re.compile("[0-9a-f]{12}"), re.compile("[0-9a-f]{64}")
# What a text of another form, or with an id that nobody was given, is compared with: no text is known to hash to it.
_NO_TOKEN, _NO_HASH = f"dalenius_{'0' * 12}_{'0' * 43}", "0" * 64


class Role(StrEnum):
    """What a token is good for."""

    OWNER = "owner"
    ANALYST = "analyst"
    AUDITOR = "auditor"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token; not the token itself."""

    id: str  # 12 hexadecimal digits, no secret
    role: Role
    analyst: str  # '' unless the role is that of an analyst
    created: str  # times are ISO 8601, UTC
    expires: str
    revoked: str  # '' if it was not
    trusted: bool  # answers leave as soon as they are ready, not at a time fixed beforehand
    note: str

    @property
    def state(self) -> str:
        """'active', 'expired' or 'revoked', as of now."""
        if self.revoked:
            return "revoked"
        return "active" if datetime.now(UTC) < datetime.fromisoformat(self.expires) else "expired"

    def to_dict(self) -> dict[str, Any]:
        """As JSON: never the secret, nor its hash."""
        return {**asdict(self), "role": self.role.value, "state": self.state}


class Tokens:
    """The tokens of one ledger. May be used by many threads at once.

    >>> import tempfile; from pathlib import Path; from dalenius.ledger import Ledger
    >>> tokens = Tokens(Ledger.create(Path(tempfile.mkdtemp()) / "home"))
    >>> text, token = tokens.create(Role.AUDITOR)
    >>> tokens.check(text) == token
    True
    >>> tokens.revoke(token.id).state
    'revoked'
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def create(
        self,
        role: Role | str,
        analyst: str = "",
        *,
        expires: timedelta = USUAL_LIFE,
        trusted: bool = False,
        note: str = "",
    ) -> tuple[str, Token]:
        """A new token: its text, which is kept nowhere, and what is known of it."""
        role = _role(role)
        _check_analyst(role, analyst)
        _check_life(expires)
        if len(note) > LONGEST_NOTE or not note.isprintable():
            raise InputError(
                "This is no note.", why=f"A note has up to {LONGEST_NOTE} printable characters.", fix="Shorten it."
            )
        name = secrets.token_hex(6)
        text = f"dalenius_{name}_{base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b'=').decode()}"
        end = (datetime.now(UTC) + expires).isoformat(timespec="milliseconds")
        data = {
            "action": "create",
            "id": name,
            "hash": digest(text.encode()),
            "role": role.value,
            "analyst": analyst,
            "expires": end,
            "trusted": bool(trusted),
            "note": note,
        }
        entry = self._ledger.record("token", data)
        return text, Token(name, role, analyst, entry.time, end, "", bool(trusted), note)

    def revoke(self, id: str) -> Token:  # noqa: A002
        """Ends a token, at once and for good; one that was revoked before stays as it is."""
        with self._ledger.turn() as (view, append):  # of two who revoke, one writes
            known = dict(view.state.tokens)
            if id not in known:
                raise UnknownTokenError(
                    "There is no such token.",
                    why="No token has this id.",
                    fix="Run 'dalenius token list' for those there are.",
                )
            if not known[id][0].revoked:
                follow(known, append("token", {"action": "revoke", "id": id}))
        return known[id][0]

    def all(self) -> list[Token]:
        """Every token that was ever given, oldest first."""
        with self._ledger.state() as state:
            return [token for token, _ in state.tokens.values()]

    def check(self, text: str) -> Token:
        """The token with this text, if it is good now.

        Why one is not is never said, and takes the same path: who tries texts learns nothing from trying.
        """
        match = _FORM.fullmatch(text)  # all of it ASCII
        name, given = (match[1], text) if match else ("", _NO_TOKEN)
        token, kept = self._find(name)
        fits = hmac.compare_digest(digest(given.encode()), kept)
        if token is None or not fits or token.state != "active":
            raise AuthMissingError(
                "This needs a valid token.",
                why="None was given, or it is not one that is valid now.",
                fix="Ask the owner for a token ('dalenius token create').",
            )
        return token

    def is_good(self, id: str) -> bool:  # noqa: A002
        """Whether a token that was checked before is still good now."""
        token, _ = self._find(id)
        return token is not None and token.state == "active"

    def _find(self, name: str) -> tuple[Token | None, str]:
        """A token and its hash, with all that was written until now, by whichever process."""
        with self._ledger.state() as state:
            return state.tokens.get(name, (None, _NO_HASH))


def follow(known: dict[str, tuple[Token, str]], entry: Entry) -> None:
    """The next entry of kind "token". One that makes no sense gives nobody anything."""
    data = entry.data
    name = str(data.get("id"))
    if data.get("action") == "revoke" and name in known:
        token, kept = known[name]
        known[name] = replace(token, revoked=token.revoked or entry.time), kept
    elif data.get("action") == "create" and name not in known:  # none comes back by being given again
        with suppress(KeyError, TypeError, ValueError, AttributeError, InputError):
            known[name] = _read(entry.time, data)


def _read(time: str, data: dict[str, Any]) -> tuple[Token, str]:
    token = Token(
        data["id"],
        Role(data["role"]),
        data["analyst"],
        time,
        data["expires"],
        "",
        data["trusted"] is True,
        str(data["note"]),
    )
    _check_analyst(token.role, token.analyst)
    if (
        not (_ID.fullmatch(token.id) and _HASH.fullmatch(data["hash"]))
        or datetime.fromisoformat(token.expires).tzinfo is None
    ):
        raise ValueError("not a token that was written here")
    return token, data["hash"]


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        raise InputError(
            "There is no such role.", why=f"Roles are {', '.join(Role)}.", fix="Choose the one that does the least."
        ) from None


def _check_analyst(role: Role, analyst: str) -> None:
    if role is Role.ANALYST:
        check_named(analyst, "analyst")
    elif analyst != "":
        raise InputError(
            f"A token for the {role} names no analyst.",
            why="Only an analyst's token asks in somebody's name.",
            fix="Leave the name out, or give the role of an analyst.",
        )


def _check_life(expires: timedelta) -> None:
    if not timedelta(0) < expires <= LONGEST_LIFE:
        raise InputError(
            "A token cannot live that long."
            if expires > LONGEST_LIFE
            else "This token would have ended before it began.",
            why=f"A token lives for up to {LONGEST_LIFE.days} days.",
            fix="Give a life such as 30 days, and a new token when it has ended.",
        )

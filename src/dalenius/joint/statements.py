"""What each party signs before anybody looks: that it has charged its own ledger for this run.

Signed with the key of the party's certificate, so that it can be checked with the card alone. The ledger's entry is
named by its hash, which its owner can find again, and which tells others nothing of what else is in the ledger.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dalenius.errors import PartyRefusedError, SourceUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dalenius.joint.config import Card, Party

SIZE = 768
"""Bytes of a signed statement, the same for all."""
_SIGNATURE = 64
_CONTEXT = b"dalenius: charged for a joint run\0"


@dataclass(frozen=True)
class Statement:
    """A party's word that it has charged.

    Attributes:
        run: The run's id.
        party: Who says it.
        terms: SHA-256 of what all parties said they compute.
        entry: The hash of the ledger's entry.
        epsilon: What was charged.
    """

    run: bytes
    party: str
    terms: str
    entry: str
    epsilon: float

    def _body(self) -> bytes:
        told = {
            "run": self.run.hex(),
            "party": self.party,
            "terms": self.terms,
            "entry": self.entry,
            "epsilon": self.epsilon,
        }
        return json.dumps(told, sort_keys=True).encode().ljust(SIZE - _SIGNATURE)

    def signed(self, party: Party) -> bytes:
        """As it is sent."""
        body = self._body()
        signature: bytes = _signing(party).sign(_CONTEXT + body)
        return body + signature

    @classmethod
    def verified(cls, data: bytes, card: Card, expected: Statement) -> Statement:
        """What a party signed, if it says what was agreed.

        Raises:
            PartyRefusedError: The signature is another's, or it speaks of another run, price or question.
        """
        from cryptography.exceptions import InvalidSignature

        body = data[:-_SIGNATURE]
        try:
            _public(card).verify(data[-_SIGNATURE:], _CONTEXT + body)
            told: Any = json.loads(body)
            found = cls(bytes.fromhex(told["run"]), told["party"], told["terms"], told["entry"], told["epsilon"])
            bytes.fromhex(found.entry)
        except (InvalidSignature, ValueError, KeyError, TypeError):
            raise _refused(card.name, "Its signature does not fit its certificate, or it is damaged.") from None
        wrong = [
            name
            for name, own, theirs in (
                ("run", expected.run, found.run),
                ("party", card.name, found.party),
                ("question", expected.terms, found.terms),
                ("price", expected.epsilon, found.epsilon),
            )
            if own != theirs
        ]
        if wrong or len(found.entry) != 64:
            raise _refused(card.name, f"It speaks of another {', '.join(wrong) or 'entry'}.")
        return found


def digest_task(task: Mapping[str, Any], names: tuple[str, ...], threshold: int) -> str:
    """What all parties said they compute, as one hash."""
    told = json.dumps([task, list(names), threshold], sort_keys=True, allow_nan=False)
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def _refused(party: str, why: str) -> PartyRefusedError:
    return PartyRefusedError(
        f"The party '{party}' has not shown that it charged its ledger, so nobody looked.",
        why=why,
        fix="Ask there what happened, then start a new run.",
        party=party,
    )


def _signing(party: Party) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key((party.folder / "tls.key").read_bytes(), None)
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SourceUnavailableError(
            "This party's key is missing or damaged.",
            why="It lies in joint/tls.key.",
            fix="Restore it from your backup, or begin anew with 'dalenius joint init' and give out the new card.",
        )
    return key


def _public(card: Card) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = x509.load_der_x509_certificate(card.der).public_key()
    if not isinstance(key, Ed25519PublicKey):
        raise _refused(card.name, "Its certificate has a key of another kind.")
    return key

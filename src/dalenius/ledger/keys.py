"""The two secrets of a ledger: the chain's HMAC key, and the Ed25519 key that signs receipts.

They lie in `keys/`, outside the ledger's file: who can only write the file cannot make a history that verifies. Who has
the keys can; that limit is in docs/sharp-edges.md.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import LedgerCorruptError, LedgerUnavailableError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FOLDER = "keys"
_CHAIN, _SIGNING, _PUBLIC = "chain.key", "signing.key", "signing.pub"


@dataclass(frozen=True)
class Keys:
    """The keys of one ledger."""

    folder: Path
    chain: bytes

    @classmethod
    def create(cls, home: Path) -> Keys:
        """New keys in ``home``; existing ones are used as they are, never overwritten."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        folder = home / FOLDER
        if (folder / _PUBLIC).exists():  # the last of the three to be written
            return cls.load(home)
        folder.mkdir(mode=0o700, exist_ok=True)
        signing = Ed25519PrivateKey.generate()
        private = signing.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        public = signing.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        chain = secrets.token_bytes(32)
        for name, content in ((_CHAIN, chain.hex().encode()), (_SIGNING, private), (_PUBLIC, public)):
            (folder / name).unlink(missing_ok=True)  # of an attempt that broke off before anything used it
            _write_new(folder / name, content)
        return cls(folder, chain)

    @classmethod
    def load(cls, home: Path) -> Keys:
        """The keys in ``home``."""
        folder = home / FOLDER
        try:
            chain = bytes.fromhex((folder / _CHAIN).read_text().strip())
        except (OSError, ValueError):
            chain = b""
        if len(chain) != 32:
            raise LedgerUnavailableError(
                "The ledger's chain key is missing or unreadable.",
                why=f"Every entry is authenticated with {FOLDER}/{_CHAIN}.",
                fix=f"Restore the folder {FOLDER} of this home from your backup.",
            )
        return cls(folder, chain)

    @cached_property
    def signing(self) -> Ed25519PrivateKey:
        """The key that signs receipts."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            key = load_pem_private_key((self.folder / _SIGNING).read_bytes(), None)
        except (OSError, ValueError, TypeError):
            key = None
        if not isinstance(key, Ed25519PrivateKey):
            raise LedgerUnavailableError(
                "The key that signs receipts is missing or unreadable.",
                why=f"It lies in {FOLDER}/{_SIGNING}.",
                fix=f"Restore the folder {FOLDER} of this home from your backup.",
            )
        return key

    @property
    def public_file(self) -> Path:
        """The public key, for whoever checks receipts."""
        return self.folder / _PUBLIC


def public_key(file: Path) -> Ed25519PublicKey:
    """The public key in a PEM file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(file.read_bytes())
    except OSError:
        raise LedgerUnavailableError(
            "The public key cannot be read.", why=f"Looked for {file.name}.", fix="Give it with --public-key FILE."
        ) from None
    except ValueError:
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise LedgerCorruptError(
            f"{file.name} is not an Ed25519 public key.",
            why="Receipts are signed with Ed25519.",
            fix=f"Ask the owner for {FOLDER}/{_PUBLIC}.",
        )
    return key


def _write_new(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())

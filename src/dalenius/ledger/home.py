"""The home, where ledger and policies lie: `--home`, else `DALENIUS_HOME`, else the nearest `.dalenius` upwards.

The two secrets of the ledger lie in it as well.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dalenius.errors import HomeMissingError, LedgerCorruptError, LedgerUnavailableError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FOLDER = ".dalenius"
VARIABLE = "DALENIUS_HOME"
KEYS = "keys"  # the folder in it
_CHAIN, _SIGNING, _PUBLIC = "chain.key", "signing.key", "signing.pub"


def find_home(given: Path | None = None, start: Path | None = None) -> Path:
    """Finds the home folder.

    A home that was named, by option or variable, is taken at its word: if it is missing we do not search
    on, since charging another ledger than the one that was meant would be worse than stopping.

    Args:
        given: The value of `--home`.
        start: Where the search upwards begins; the working directory by default.

    Raises:
        HomeMissingError: There is none; names the folders that were tried.
    """
    named = given if given is not None else _from_environment()
    if named is not None:
        if named.is_dir():
            return named.resolve()
        source = "--home" if given is not None else VARIABLE
        raise HomeMissingError(
            f"There is no home folder at {named}.",
            why=f"{source} names it, so nothing else was tried.",
            fix=f"Correct {source}, or create the home with 'dalenius protect'.",
            looked_in=(str(named),),
        )

    start = Path.cwd() if start is None else start.resolve()
    candidates = tuple(folder / FOLDER for folder in (start, *start.parents))
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    raise HomeMissingError(
        "No home folder was found.",
        why=f"Looked for {', '.join(map(str, candidates))}.",
        fix=f"Create one with 'dalenius protect', or name one with --home or {VARIABLE}.",
        looked_in=tuple(map(str, candidates)),
    )


def future_home(given: Path | None = None) -> Path:
    """Where a home would be made: the one that was named, else `.dalenius` in the working directory."""
    return (given or _from_environment() or Path.cwd() / FOLDER).absolute()


def is_above(home: Path, given: Path | None = None) -> bool:
    """Whether a home that nobody named was found in a folder above the working directory."""
    return given is None and _from_environment() is None and home.parent != Path.cwd()


def shown_home(given: Path | None = None) -> str:
    """The home, there or to be made, for people: as it was named, else seen from the working directory."""
    named = given or _from_environment()
    if named is not None:
        return str(named)
    try:
        return os.path.relpath(find_home())
    except HomeMissingError:
        return os.path.relpath(future_home())


def _from_environment() -> Path | None:
    value = os.environ.get(VARIABLE, "")
    return Path(value) if value else None


# --- its keys


@dataclass(frozen=True)
class LedgerKeys:
    """The keys of one ledger: the chain's HMAC key, and the Ed25519 key that signs receipts.

    They lie in `keys/`, outside the ledger's file: who can only write the file cannot make a history that verifies. Who
    has the keys can; that limit is in docs/sharp-edges.md.
    """

    folder: Path
    chain: bytes

    @classmethod
    def create(cls, home: Path) -> LedgerKeys:
        """New keys in ``home``; existing ones are used as they are, never overwritten."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        folder = home / KEYS
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
    def load(cls, home: Path) -> LedgerKeys:
        """The keys in ``home``."""
        folder = home / KEYS
        try:
            chain = bytes.fromhex((folder / _CHAIN).read_text().strip())
        except (OSError, ValueError):
            chain = b""
        if len(chain) != 32:
            raise LedgerUnavailableError(
                "The ledger's chain key is missing or unreadable.",
                why=f"Every entry is authenticated with {KEYS}/{_CHAIN}.",
                fix=f"Restore the folder {KEYS} of this home from your backup.",
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
                why=f"It lies in {KEYS}/{_SIGNING}.",
                fix=f"Restore the folder {KEYS} of this home from your backup.",
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
            fix=f"Ask the owner for {KEYS}/{_PUBLIC}.",
        )
    return key


def _write_new(file: Path, content: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())

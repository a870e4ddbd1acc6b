"""Who takes part: one card for each party, exchanged beforehand.

A home's folder `joint/` holds this party's card and its two secret keys, and the cards of its partners:

```
joint/me.toml            name, address, certificate and sealing key: what partners get
joint/tls.key, box.key   secret
joint/partners/NAME.toml
```

There is no authority that signs certificates: a party is whoever holds the key of the certificate on its card. So cards
must come over a way that nobody else can write to, or be compared by their fingerprints.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
import re
import ssl
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dalenius.errors import InputError, SourceUnavailableError

if TYPE_CHECKING:
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

FOLDER = "joint"
PARTNERS = "partners"
MOST = 15
"""Parties of one run; bits are shared in a field of sixteen elements at most."""
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_CARD, _TLS, _BOX = "me.toml", "tls.key", "box.key"


@dataclass(frozen=True)
class Card:
    """What others know of a party.

    Attributes:
        name: Its name.
        host: Where it listens.
        port: Where it listens.
        certificate: Its certificate, as PEM text.
        box: The public key that messages to it are sealed with (X25519).
    """

    name: str
    host: str
    port: int
    certificate: str
    box: bytes

    @cached_property
    def der(self) -> bytes:
        """The certificate's bytes."""
        return ssl.PEM_cert_to_DER_cert(self.certificate)

    @property
    def fingerprint(self) -> str:
        """Sixty-four bits each of certificate and sealing key, in groups that can be read out over the telephone."""
        digest = hashlib.sha256(self.der + self.box).hexdigest()[:32]
        return " ".join(digest[at : at + 4] for at in range(0, 32, 4))

    def text(self) -> str:
        """The card as a file."""
        return (
            f'name = "{self.name}"\naddress = "{self.host}:{self.port}"\n'
            f'box = "{base64.b64encode(self.box).decode()}"\ncertificate = """\n{self.certificate}"""\n'
        )

    @classmethod
    def read(cls, file: Path) -> Card:
        """The card in a file.

        Raises:
            SourceUnavailableError: It cannot be read.
            InputError: It is no card.
        """
        try:
            text = file.read_text(encoding="utf-8")
        except OSError as error:
            raise SourceUnavailableError(
                f"The card {file.name} cannot be read.",
                why=f"{error.strerror or type(error).__name__}.",
                fix="Ask the party for the file that its 'dalenius joint init' wrote.",
            ) from None
        except UnicodeDecodeError:
            raise _no_card(file.name, "It is not text.") from None
        return cls.parse(text, file.name)

    @classmethod
    def parse(cls, text: str, source: str) -> Card:
        """The card in a text.

        Raises:
            InputError: It is no card.
        """
        try:
            tree = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            raise _no_card(source, "It is not TOML.") from None
        texts = {key: tree.get(key) for key in ("name", "address", "certificate", "box")}
        for key, value in texts.items():
            if not isinstance(value, str):
                raise _no_card(source, f"Its '{key}' is missing.")
        try:
            box = base64.b64decode(str(texts["box"]), validate=True)
            found = cls(
                checked_name(str(texts["name"])),
                *checked_address(str(texts["address"])),
                str(texts["certificate"]),
                box,
            )
            found.der  # noqa: B018 - is it a certificate?
        except ValueError:
            raise _no_card(source, "Its certificate or key is damaged.") from None
        if len(box) != 32:
            raise _no_card(source, "Its key is damaged.")
        return found


@dataclass(frozen=True)
class Party:
    """This party: its card, its secret keys and its partners' cards."""

    card: Card
    folder: Path
    partners: tuple[Card, ...]

    @classmethod
    def load(cls, home: Path) -> Party:
        """The party whose home this is.

        Raises:
            SourceUnavailableError: It is none yet.
            InputError: Two cards have the same name, or a file is damaged.
        """
        folder = home / FOLDER
        if not (folder / _CARD).exists():
            raise SourceUnavailableError(
                "This home is no party yet.",
                why=f"It holds no {FOLDER}/{_CARD}.",
                fix="Run 'dalenius joint init NAME --address HOST:PORT' first.",
            )
        mine = Card.read(folder / _CARD)
        partners = tuple(Card.read(file) for file in sorted((folder / PARTNERS).glob("*.toml")))
        check_distinct((mine, *partners))
        return cls(mine, folder, partners)

    @classmethod
    def create(cls, home: Path, name: str, address: str = "127.0.0.1:9400") -> Party:
        """Makes keys and a card; the home is made too.

        Raises:
            InputError: It is a party already, or the name or address cannot be one.
        """
        checked_name(name)
        host, port = checked_address(address)
        folder = home / FOLDER
        if (folder / _CARD).exists():
            raise InputError(
                "This home is a party already.",
                why="New keys would lock out the partners that know the old ones.",
                fix=f"Give partners {FOLDER}/{_CARD}, or remove the folder {FOLDER} to begin anew.",
            )
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / PARTNERS).mkdir(mode=0o700, exist_ok=True)
        certificate, box = _create_keys(folder, name)
        card = Card(name, host, port, certificate, box)
        _write_secret(folder / _CARD, card.text().encode())  # last: with it the party exists
        return cls(card, folder, ())

    def add(self, card: Card) -> Party:
        """Takes in a partner's card.

        Raises:
            InputError: The name is taken, by this party or by another card.
        """
        check_distinct((self.card, *(each for each in self.partners if each != card), card))
        _write_secret(self.folder / PARTNERS / f"{card.name}.toml", card.text().encode())
        return Party.load(self.folder.parent)

    def without(self, name: str) -> Party:
        """Forgets a partner."""
        (self.folder / PARTNERS / f"{checked_name(name)}.toml").unlink(missing_ok=True)
        return Party.load(self.folder.parent)

    def partner(self, name: str) -> Card:
        """The card with this name, which may be this party's own.

        Raises:
            InputError: There is none.
        """
        for each in (self.card, *self.partners):
            if each.name == name:
                return each
        raise InputError(
            f"'{name}' is no partner.",
            why=f"Known are: {', '.join(each.name for each in self.partners) or 'none yet'}.",
            fix="Take in its card with 'dalenius joint add FILE'.",
        )

    def opener(self) -> X25519PrivateKey:
        """The key that opens what was sealed for this party."""
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return X25519PrivateKey.from_private_bytes((self.folder / _BOX).read_bytes())

    def context(self, *, listening: bool) -> ssl.SSLContext:
        """TLS 1.3 that shows this party's certificate and takes only those on the cards of its partners."""
        found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if listening else ssl.PROTOCOL_TLS_CLIENT)
        found.minimum_version = ssl.TLSVersion.TLSv1_3
        found.check_hostname = False  # the certificate itself is compared, which says more than a host's name
        found.verify_mode = ssl.CERT_REQUIRED
        found.load_verify_locations(cadata="\n".join(each.certificate for each in (self.card, *self.partners)))
        try:
            found.load_cert_chain(self.folder / _TLS)
        except (OSError, ssl.SSLError):
            raise SourceUnavailableError(
                "This party's key is missing or damaged.",
                why=f"It lies in {FOLDER}/{_TLS}.",
                fix="Restore it from your backup, or begin anew with 'dalenius joint init' and give out the new card.",
            ) from None
        return found


def check_distinct(cards: tuple[Card, ...]) -> None:
    """Refuses two parties with one name, or two names with one certificate."""
    names: list[object] = [each.name for each in cards]
    certificates: list[object] = [each.der for each in cards]
    for what, values in (("name", names), ("certificate", certificates)):
        for value in values:
            if values.count(value) > 1:
                same = sorted({card.name for card, own in zip(cards, values, strict=True) if own == value})
                raise InputError(
                    f"Two parties have the same {what}: {', '.join(same)}.",
                    why="Nobody could tell them apart.",
                    fix="Ask one of them to begin anew with 'dalenius joint init' under another name.",
                )


def checked_name(name: str, what: str = "a party") -> str:
    """The name of a party or an auction, if it can be one."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name[:40]!r} cannot be the name of {what}.",
            why="It is used in files and addresses: small letters, digits and hyphens, beginning with a letter.",
            fix="Take one such as 'north-clinic'.",
        )
    return name


def checked_address(address: str) -> tuple[str, int]:
    """Host and port, if it is an address."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"{address[:80]!r} is no address.", why="It needs a port.", fix="Write HOST:PORT.")
    return host.strip("[]"), int(port)


def _create_keys(folder: Path, name: str) -> tuple[str, bytes]:
    from cryptography import x509
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    key = Ed25519PrivateKey.generate()
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    today = dt.datetime.now(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - dt.timedelta(days=1))
        .not_valid_after(today + dt.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, None)
    )
    shown = certificate.public_bytes(form.Encoding.PEM)
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    _write_secret(folder / _TLS, secret + shown)
    box = X25519PrivateKey.generate()
    _write_secret(folder / _BOX, box.private_bytes_raw())
    return shown.decode(), box.public_key().public_bytes_raw()


def _write_secret(file: Path, content: bytes) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())


def _no_card(source: str, why: str) -> InputError:
    return InputError(
        f"{source} is no party's card.", why=why, fix="Ask for the file that 'dalenius joint init' wrote there."
    )

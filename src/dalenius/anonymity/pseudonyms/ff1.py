"""FF1, format-preserving encryption of NIST SP 800-38G: a permutation of the strings of one length over one alphabet.

A Feistel network of ten rounds whose round function is AES in CBC-MAC mode over the tweak, the round and the other
half. It is the one such construction that NIST still approves (FF3 was broken by Durak and Vaudenay 2017, and revision
1 of the standard asks of FF1 at least a million strings: on smaller domains Feistel networks of few rounds can be told
from random, and whole code books recovered, Bellare, Hoang and Tessaro 2016).

`permuted` makes of it a permutation of the numbers below any N: N is put into the smallest power of two that holds it,
and a number that leaves is encrypted again until it is back (cycle walking, Black and Rogaway 2002: at most two rounds
are expected, since more than half of the power of two lies below N).

References:
    NIST SP 800-38G (2016), algorithms 7 and 8; SP 800-38G revision 1 (draft, 2019 and 2025), section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

LEAST = 1_000_000  # strings in a domain
_ROUNDS = 10


def encrypted(key: bytes, tweak: bytes, digits: Sequence[int], radix: int) -> list[int]:
    """FF1.Encrypt: digits of the same number, below ``radix``.

    >>> key = bytes.fromhex("2B7E151628AED2A6ABF7158809CF4F3C")
    >>> "".join(map(str, encrypted(key, b"", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 10)))
    '2433477484'
    """
    return digits_of(_network(key, tweak, len(digits), radix).forth(number_of(digits, radix)), len(digits), radix)


def decrypted(key: bytes, tweak: bytes, digits: Sequence[int], radix: int) -> list[int]:
    """FF1.Decrypt.

    >>> key, digits = bytes(16), [1, 2, 3, 4, 5, 6, 7]
    >>> decrypted(key, b"a", encrypted(key, b"a", digits, 10), 10)
    [1, 2, 3, 4, 5, 6, 7]
    """
    return digits_of(_network(key, tweak, len(digits), radix).back(number_of(digits, radix)), len(digits), radix)


def permuted(key: bytes, tweak: bytes, number: int, domain: int) -> int:
    """Where a number below ``domain`` goes.

    >>> permuted(bytes(32), b"", 5, 1_000_003) < 1_000_003
    True
    """
    network = _network(key, tweak, (domain - 1).bit_length(), 2)
    while (number := network.forth(number)) >= domain:
        pass
    return number


def unpermuted(key: bytes, tweak: bytes, number: int, domain: int) -> int:
    """Where it came from.

    >>> unpermuted(bytes(32), b"", permuted(bytes(32), b"", 5, 1_000_003), 1_000_003)
    5
    """
    network = _network(key, tweak, (domain - 1).bit_length(), 2)
    while (number := network.back(number)) >= domain:
        pass
    return number


@lru_cache(maxsize=64)
def _network(key: bytes, tweak: bytes, length: int, radix: int) -> _Feistel:
    """Many values have one format."""
    return _Feistel(key, tweak, length, radix)


class _Feistel:
    """The rounds of one key, tweak, length and radix, on strings as numbers; letters as in the standard."""

    def __init__(self, key: bytes, tweak: bytes, length: int, radix: int) -> None:
        if radix**length < LEAST or not 2 <= radix <= 2**16:
            raise ValueError(f"FF1 is for domains of at least {LEAST:,} strings.")
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        u = length // 2
        self._moduli: tuple[int, int] = (radix**u, radix ** (length - u))
        self._b = ceil((self._moduli[1] - 1).bit_length() / 8)  # bytes of the longer half
        self._d = 4 * ceil(self._b / 4) + 4
        head = bytes([1, 2, 1]) + radix.to_bytes(3, "big") + bytes([_ROUNDS, u % 256]) + length.to_bytes(4, "big")
        self._head = head + len(tweak).to_bytes(4, "big") + tweak + bytes((-len(tweak) - self._b - 1) % 16)
        self._cipher = Cipher(algorithms.AES(key), modes.CBC(bytes(16)))

    def forth(self, number: int) -> int:
        """Encrypts."""
        left, right = divmod(number, self._moduli[1])
        for at in range(_ROUNDS):
            left, right = right, (left + self._drawn(at, right)) % self._moduli[at % 2]
        return left * self._moduli[1] + right

    def back(self, number: int) -> int:
        """Decrypts."""
        left, right = divmod(number, self._moduli[1])
        for at in reversed(range(_ROUNDS)):
            left, right = (right - self._drawn(at, left)) % self._moduli[at % 2], left
        return left * self._moduli[1] + right

    def _drawn(self, at: int, half: int) -> int:
        """What a round adds: the CBC-MAC of tweak, round and half, drawn out to d bytes."""
        block = self._chained(self._head + bytes([at]) + half.to_bytes(self._b, "big"))
        stream, first = block, int.from_bytes(block, "big")
        for count in range(1, ceil(self._d / 16)):
            stream += self._chained((first ^ count).to_bytes(16, "big"))  # of one block: AES itself
        return int.from_bytes(stream[: self._d], "big")

    def _chained(self, blocks: bytes) -> bytes:
        """The last block of AES-CBC from a zero block."""
        run = self._cipher.encryptor()
        return (run.update(blocks) + run.finalize())[-16:]


def number_of(digits: Sequence[int], radix: int) -> int:
    """The number that digits write, the highest first."""
    found = 0
    for each in digits:
        found = found * radix + each
    return found


def digits_of(number: int, length: int, radix: int) -> list[int]:
    """So many digits of a number, the highest first."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, radix)
        digits.append(digit)
    return digits[::-1]

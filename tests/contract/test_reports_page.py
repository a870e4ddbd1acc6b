"""docs/reference/reports.md, held against the code byte by byte, and worked again from its words alone."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

from dalenius.local import RANDOMISERS, Domain, Hadamard, HadamardSketch, KAry, LocalHashing, Rappor, reports

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "reports.md").read_text()
KNOWN = {cls.name: cls for cls in RANDOMISERS}
ROWS = [
    tuple(cell.strip().strip("`") for cell in line.split("|")[1:-1])
    for line in PAGE.split("<!-- reports -->")[1].strip().splitlines()[2:]
]


def example() -> bytes:
    """The bytes that the page shows."""
    begin, header, end = re.search(r"<!-- bytes -->\n```text\n(.*)\n(.*)\n(.*)\n```", PAGE).groups()  # type: ignore[union-attr]
    return bytes.fromhex(begin) + header.encode("ascii") + bytes.fromhex(end)


def test_the_example_is_what_is_written_and_read() -> None:
    domain, oracle = Domain(("red", "green", "blue")), KAry(1.0, 3)
    rows = np.array([[0], [2], [1]], np.uint8)
    assert example() == reports.to_bytes(oracle, rows, domain)
    assert f"{len(example())} bytes" in PAGE
    found = reports.from_bytes(example(), domain)
    assert found.randomiser == oracle and found.reports.tolist() == rows.tolist()


def test_the_domain_is_hashed_as_the_page_says() -> None:
    data = b"".join(len(each).to_bytes(8, "big") + each for each in (b"red", b"green", b"blue"))
    assert hashlib.sha256((3).to_bytes(8, "big") + data).hexdigest() in PAGE


@pytest.mark.parametrize(("name", "fields", "public", "value", "report"), ROWS, ids=[row[0] + row[1] for row in ROWS])
def test_worked_reports_are_the_most_likely_ones(name: str, fields: str, public: str, value: str, report: str) -> None:
    randomiser = KNOWN[name](epsilon=1.0, **json.loads(fields))
    law = randomiser.law(json.loads(value), bytes.fromhex(public))
    likely = max(law, key=law.__getitem__)
    assert likely == bytes.fromhex(report)
    assert sum(chance == law[likely] for chance in law.values()) == 1
    assert randomiser.public_bytes == len(bytes.fromhex(public)) and len(likely) == randomiser.report_bytes


def test_every_randomiser_is_on_the_page_with_its_integers() -> None:
    fields = {"size": 4, "low": 0, "high": 4, "step": 1}
    for name, cls in KNOWN.items():
        line = next(line for line in PAGE.splitlines() if line.startswith("| ") and f"`{name}`" in line)
        have = {key: fields[key] for key in cls.__dataclass_fields__ if key in fields}
        if name == "randomized-response":
            have = {}
        if name != "hybrid":  # has those of both
            assert all(f"`{key}`" in line for key in cls(epsilon=1.0, **have).integers), name


@pytest.mark.parametrize("size", [1000, 2**16, 2**16 + 1, 10**6])
def test_the_hash_follows_from_the_page(size: int) -> None:
    chance, w = random.Random(size), 32 if size <= 2**16 else 64
    oracle = LocalHashing(1.0, size, 5)
    for _ in range(20):
        a, b, x = chance.getrandbits(w), chance.getrandbits(w), chance.randrange(size)
        bucket = ((a * x + b) % 2**w >> w // 2) * 5 >> w // 2
        public = a.to_bytes(w // 8, "little") + b.to_bytes(w // 8, "little")
        law = oracle.law(x, public)
        assert max(law, key=law.__getitem__) == public + bytes([bucket])


def test_the_patterns_follow_from_the_page() -> None:
    chance, oracle = random.Random(1), Hadamard(2.0, 1000, 3)
    for _ in range(50):
        key, x = chance.getrandbits(12), chance.randrange(1000)
        rows = [(key >> j) % 1024 for j in range(3)]
        pattern = sum(((row & x).bit_count() % 2) << j for j, row in enumerate(rows))
        law = oracle.law(x, key.to_bytes(2, "little"))
        assert max(law, key=law.__getitem__) == key.to_bytes(2, "little") + bytes([pattern])


def test_the_sketches_hashes_follow_from_the_page() -> None:
    oracle, chance = HadamardSketch(1.0, 1000, 8, 16, 99), random.Random(2)
    for _ in range(50):
        j, x = chance.randrange(8), chance.randrange(1000)
        stream = hashlib.shake_256((99).to_bytes(8, "little") + j.to_bytes(8, "little")).digest(132)
        parts = [int.from_bytes(stream[4 * at : 4 * at + 4], "little") % 16 for at in range(33)]
        bucket = parts[0]
        for bit in range(32):
            bucket ^= parts[1 + bit] if x >> bit & 1 else 0
        law = oracle.law(x, bytes([j]))
        for row in range(16):
            sign = (bucket & row).bit_count() % 2
            assert law[bytes([j, 2 * row + sign])] > law[bytes([j, 2 * row + 1 - sign])]


def test_the_bits_of_rappor_follow_from_the_page() -> None:
    oracle = Rappor(1.0, bits=100, hashes=2, cohorts=5)
    for text in ("tea", "Käse", ""):
        print_ = hashlib.blake2b(text.encode(), digest_size=8, key=b"dalenius rappor").digest()
        low, high = int.from_bytes(print_[:4], "little"), int.from_bytes(print_[4:], "little")
        for j in range(5):
            bits = []
            for i in range(2):
                digest = hashlib.blake2b(f"dalenius rappor {j} {i}".encode(), digest_size=24).digest()
                a, a2, b = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8, 16))
                bits.append(((a * low + a2 * high + b) % 2**64 >> 32) * 100 >> 32)
            assert oracle.places(oracle.checked([text]), np.array([j])).tolist() == [bits]

"""Keys and streams."""

from __future__ import annotations

import os
import threading

import numpy as np

from dalenius.mechanisms import noise
from dalenius.mechanisms.noise import _draws, bits


def test_words_are_balanced_and_never_repeat():
    words = bits.words(2**16)
    assert len(np.unique(words)) == len(words)  # a repeat has probability 2⁻³³
    ones = np.unpackbits(words.view(np.uint8)).sum()
    assert abs(int(ones) - 2**21) < 5.2 * 2**10  # 5.2 standard deviations of 2¹⁰: false alarm 2e-7


def test_a_long_request_is_put_together_from_pieces(monkeypatch):
    monkeypatch.setattr(bits, "_LARGEST_REQUEST", 100)
    assert len(np.unique(bits.words(1001))) == 1001


def test_a_key_is_replaced_after_its_share_of_bytes(monkeypatch):
    made = []
    urandom = os.urandom

    def counted(size):
        made.append(size)
        return urandom(size)

    monkeypatch.setattr(os, "urandom", counted)
    monkeypatch.setattr(bits, "REKEY_AFTER", 8 * 100)
    noise.fresh_key()
    for _ in range(10):
        bits.words(50)
    assert made == [32, 16] * 5


def test_a_fresh_key_drops_the_stream_and_its_stock():
    noise.discrete_laplace(10)
    before = bits.current()
    assert before.stock
    noise.fresh_key()
    assert bits.current() is not before
    assert not bits.current().stock


def test_a_fresh_key_is_a_matter_of_the_calling_thread():
    here = bits.current()
    thread = threading.Thread(target=noise.fresh_key)
    thread.start()
    thread.join()
    assert bits.current() is here


def test_stocks_are_bounded_in_number():
    noise.fresh_key()
    for scale in range(1, 100):
        noise.discrete_laplace(scale)
    assert len(bits.current().stock) == _draws.STOCKED_SAMPLERS


def test_no_value_is_given_twice_from_a_stock():
    noise.fresh_key()
    drawn = [noise.discrete_gaussian(2**50) for _ in range(3 * _draws.STOCK)]
    drawn += noise.discrete_gaussian(2**50, _draws.SMALL).tolist()
    assert len(set(drawn)) == len(drawn)  # a repeat has probability 2⁻³⁰


def test_threads_draw_from_streams_of_their_own():
    found: list[set[int]] = []
    start = threading.Barrier(8, timeout=60)

    def work() -> None:
        start.wait()
        mine = {noise.discrete_laplace(2**51) for _ in range(1000)}
        mine |= set(noise.discrete_laplace(2**51, 1000).tolist())
        found.append(mine)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set().union(*found)) == 16_000  # a repeat has probability 2⁻²⁴·⁵


def test_integers_have_the_bits_asked_for():
    assert set(bits.integers(1, 100)) == {0, 1}
    assert 2**190 < max(bits.integers(200, 100)) < 2**200

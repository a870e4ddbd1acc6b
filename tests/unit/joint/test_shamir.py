from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.joint.binary import Binary
from dalenius.joint.decoding import locate_errors
from dalenius.joint.fields import BIG, SHORT, Mersenne
from dalenius.joint.shamir import Field, Scheme
from dalenius.joint.streams import Stream, fresh_seed

SIZES = [(3, 1), (4, 1), (5, 2), (7, 2), (7, 3)]
FIELDS: list[Field] = [BIG, SHORT, Mersenne(5), Binary(3)]


def dealt(scheme: Scheme, dealer: int, secret: np.ndarray) -> dict[int, np.ndarray]:
    """All parties' shares of what one deals."""
    seeds = {party: fresh_seed() for party in scheme.seeded(dealer)}
    shares = scheme.deal(dealer, secret, {party: Stream(seed) for party, seed in seeds.items()})
    for party, seed in seeds.items():
        shares[party] = scheme.field.random(Stream(seed), secret.shape)
    return shares


def secrets_of(field: Field) -> np.ndarray:
    return field.random(Stream(bytes(32)), (3, 2, 2) if isinstance(field, Binary) else (50,))


@pytest.mark.parametrize("field", FIELDS, ids=lambda each: each.name)
@pytest.mark.parametrize(("parties", "threshold"), SIZES)
def test_any_t_plus_one_shares_give_the_secret(field: Field, parties: int, threshold: int):
    scheme = Scheme(field, parties, threshold)
    secret = secrets_of(field)
    for dealer in range(1, parties + 1):
        shares = dealt(scheme, dealer, secret)
        assert sorted(shares) == list(range(1, parties + 1))
        assert not scheme.agrees(shares).any()
        assert scheme.wrong(shares) == ()
        for some in combinations(shares, threshold + 1):
            assert (scheme.reconstruct({each: shares[each] for each in some}) == secret).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("parties", "threshold"), [(3, 1), (5, 2)])
def test_any_t_shares_are_uniform_whatever_the_secret(parties: int, threshold: int):
    # false alarm: each of at most 100 chi-squares above its 1 − 1e-8 quantile
    from scipy.stats import chi2

    field = Mersenne(3)
    scheme = Scheme(field, parties, threshold)
    count = 49_000
    for secret in (0, 6):
        for dealer in (1, parties):
            shares = dealt(scheme, dealer, np.full(count, secret, np.uint64))
            for some in combinations([each for each in shares if each != dealer], threshold):
                codes = sum(shares[each].astype(int) * 7**at for at, each in enumerate(some))
                found = np.bincount(codes, minlength=7**threshold)
                expected = count / 7**threshold
                assert ((found - expected) ** 2 / expected).sum() < chi2.isf(1e-8, 7**threshold - 1)


@pytest.mark.parametrize("field", FIELDS, ids=lambda each: each.name)
@pytest.mark.parametrize(("parties", "threshold"), SIZES)
def test_a_wrong_share_is_noticed_and_named_where_that_can_be(field: Field, parties: int, threshold: int):
    scheme = Scheme(field, parties, threshold)
    secret = secrets_of(field)
    for culprit in range(1, parties + 1):
        shares = dealt(scheme, 1, secret)
        shares[culprit] = shares[culprit].copy()
        shares[culprit].reshape(-1)[3] ^= np.uint64(1)
        assert scheme.agrees(shares).any()
        enough = parties - threshold - 1 >= 2
        assert scheme.wrong(shares) == ((culprit,) if enough else None)


def test_t_wrong_shares_are_named_even_if_each_spoils_other_secrets():
    scheme = Scheme(BIG, 7, 2)
    secret = secrets_of(BIG)
    shares = dealt(scheme, 3, secret)
    for culprit, place in ((2, 11), (6, 37)):
        shares[culprit] = shares[culprit].copy()
        shares[culprit][place] = (int(shares[culprit][place]) + 1) % BIG.order
    assert scheme.wrong(shares) == (2, 6)


@given(
    st.lists(st.integers(0, BIG.order - 1), min_size=3, max_size=3),
    st.sets(st.integers(1, 7), max_size=2),
    st.integers(1, BIG.order - 1),
)
def test_berlekamp_and_welch_find_up_to_e_errors(polynomial: list[int], wrong: set[int], off: int):
    values = {x: sum(c * x**at for at, c in enumerate(polynomial)) % BIG.order for x in range(1, 8)}
    for each in wrong:
        values[each] = (values[each] + off) % BIG.order
    assert locate_errors(BIG, values, 2) == tuple(sorted(wrong))


def test_more_errors_than_can_be_found_are_never_blamed_on_few():
    # three wrong of seven, which lie on no polynomial near the right one
    values = {x: x for x in range(1, 8)} | {1: 100, 4: 7_777, 6: 5}
    assert locate_errors(BIG, values, 2) is None


@pytest.mark.parametrize(("parties", "threshold"), [(3, 0), (3, 3), (2, 5)])
def test_a_threshold_that_cannot_be_is_refused(parties: int, threshold: int):
    with pytest.raises(InputError):
        Scheme(BIG, parties, threshold)


def test_a_field_without_a_point_for_everybody_is_refused():
    with pytest.raises(InputError, match="too small"):
        Scheme(Mersenne(3), 7, 1)


def test_too_few_shares_are_refused():
    scheme = Scheme(BIG, 3, 1)
    shares = dealt(scheme, 1, secrets_of(BIG))
    with pytest.raises(InputError, match="too few"):
        scheme.reconstruct({1: shares[1]})

"""Events survive the way through JSON exactly; anything else is refused."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.accounting import events
from dalenius.accounting.event_json import KINDS, from_json, to_json
from dalenius.accounting.neighbors import Neighbors
from dalenius.errors import InputError

reals = st.one_of(
    st.integers(1, 10**12),
    st.floats(1e-9, 1e9),
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9).filter(lambda f: f > 0),
)
deltas = st.one_of(st.just(0), st.floats(0, 0.5))


def leaves(relation):
    counts = st.integers(1, 1000)
    return st.one_of(
        *(st.builds(kind, reals, st.just(relation)) for kind in (events.Gaussian, events.Laplace, events.Exponential)),
        *(st.builds(kind, reals, st.just(relation)) for kind in (events.NoisyMax, events.Pure)),
        st.builds(events.DiscreteGaussian, reals, counts, counts, st.just(relation)),
        st.builds(events.DiscreteLaplace, reals, counts, counts, st.just(relation)),
        st.builds(events.RandomizedResponse, reals, st.integers(2, 99), st.just(relation)),
        st.builds(events.Approx, reals, deltas, st.just(relation)),
        st.builds(events.Zcdp, reals, deltas, st.just(relation)),
    )


def has_no_reports(event):
    """Randomized response cannot be sampled, see `events.PoissonSampled`."""
    return not any(isinstance(single, events.RandomizedResponse) for single, _ in events.flatten(event))


def trees(relation):
    def grow(inside):
        options = [
            st.builds(events.Repeated, inside, st.integers(1, 10**6)),
            st.builds(events.Composed, st.lists(inside, min_size=1, max_size=3).map(tuple)),
        ]
        if relation is Neighbors.ADD_REMOVE:
            options += [
                st.builds(events.PoissonSampled, st.floats(1e-6, 1), inside.filter(has_no_reports)),
                st.builds(events.Parallel, st.lists(inside, min_size=1, max_size=3).map(tuple)),
            ]
        else:
            options.append(st.builds(events.SampledWithoutReplacement, st.integers(1, 9), st.integers(9, 99), inside))
        return st.one_of(*options)

    return st.recursive(leaves(relation), grow, max_leaves=6)


@given(st.sampled_from(Neighbors).flatmap(trees))
def test_round_trip_is_exact(event):
    back = from_json(json.loads(json.dumps(to_json(event))))
    assert back == event
    assert repr(back) == repr(event)  # also that an int stays an int and a Fraction a Fraction


def test_every_kind_of_event_has_a_name():
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and kind.__module__ == events.__name__}
    assert kinds == set(KINDS.values())


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {},
        {"version": 2, "neighbors": "add-remove", "event": {"kind": "pure", "epsilon": 1}},
        {"version": True, "neighbors": "add-remove", "event": {"kind": "pure", "epsilon": 1}},
        {"version": 1, "neighbors": "both", "event": {"kind": "pure", "epsilon": 1}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "magic"}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "pure"}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "pure", "epsilon": -1}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "pure", "epsilon": "1/0"}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "pure", "epsilon": 1, "seed": 3}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "pure", "epsilon": 1, "neighbors": "substitute"}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "repeated", "event": 3, "times": 2}},
        {"version": 1, "neighbors": "add-remove", "event": {"kind": "composed", "events": 3}},
    ],
)
def test_anything_else_is_refused(broken):
    with pytest.raises(InputError):
        from_json(broken)

"""Near and far, an analyst asks in the same way."""

import inspect

import pytest

from dalenius import Analyst, Asking, RemoteAnalyst

ASKS = ("preview", "explain", "ask", "preview_many", "ask_many", "preview_synthetic", "synthesize", "synthetic")
MODELS = ("preview_model", "train", "model", "preview_score", "score_model")
METHODS = (
    *ASKS,
    *MODELS,
    "preview_comparison",
    "compare_synthetic",
    "comparisons",
    "obtain",
    "releases",
    "budget",
    "history",
)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [Analyst, RemoteAnalyst])
def test_both_take_and_give_what_the_protocol_says(kind, method):
    said, own = (inspect.signature(getattr(each, method)) for each in (Asking, kind))
    assert said.return_annotation == own.return_annotation
    for name, parameter in said.parameters.items():
        assert own.parameters[name].kind is parameter.kind and own.parameters[name].default == parameter.default


def one(analyst: Analyst, remote: RemoteAnalyst) -> list[Asking]:
    """For the type checker: both are such."""
    return [analyst, remote]


def test_the_protocol_names_all_that_both_have():
    assert {name for name in vars(Asking) if not name.startswith("_")} == {"name", *METHODS}

from __future__ import annotations

import json
import pickle

import pytest

from dalenius import errors
from dalenius._extras import require_extra
from dalenius.errors import BudgetError, Charge, DaleniusError, Fits, InputError, InternalError, Place


def test_an_error_reads_as_what_why_fix_and_cost():
    error = InputError("Delta is negative", why="Delta is a probability.", fix="Give one in [0, 1)")
    assert str(error) == "Delta is negative. Delta is a probability. Give one in [0, 1). No budget was spent."


def test_an_error_after_the_charge_names_the_charge():
    error = errors.EngineFailedError("It failed", why="w", fix="f", charge=Charge(0.5, 1e-6))
    assert "It cost epsilon = 0.5, delta = 1e-06." in str(error)


def test_a_bug_never_claims_that_nothing_was_spent():
    assert "No budget was spent" not in str(InternalError("Oops", why="w", fix="f"))


def test_the_shape_is_the_one_of_the_interfaces():
    error = BudgetError("Too much", why="w", fix="f", fits=Fits(0.12), at=Place(1, 8))
    assert error.to_dict() == {
        "error": {
            "code": "budget.exhausted",
            "message": "Too much",
            "why": "w",
            "fix": "f",
            "charge": {"epsilon": 0, "delta": 0},
            "fits": {"epsilon": 0.12},
            "at": {"line": 1, "column": 8},
        }
    }


def test_the_shape_holds_no_infinity():
    error = BudgetError("Too much", why="w", fix="f", fits=Fits(float("inf")), charge=Charge(float("nan")))
    assert json.loads(json.dumps(error.to_dict(), allow_nan=False))["error"]["fits"] == {"epsilon": None}


@pytest.mark.parametrize(
    "group",
    [DaleniusError, errors.PolicyError, errors.QuestionError, errors.LedgerError, errors.SourceError],
)
def test_a_group_of_errors_cannot_be_raised(group: type[DaleniusError]):
    with pytest.raises(TypeError, match="subclasses"):
        group("m", why="w", fix="f")


@pytest.mark.parametrize(
    "error",
    [
        BudgetError("m", why="w", fix="f", fits=Fits(0.1)),
        errors.ExtraMissingError("plot", ("matplotlib",)),
        errors.HomeMissingError("m", why="w", fix="f", looked_in=("a",)),
    ],
)
def test_errors_survive_the_way_back_from_another_process(error: DaleniusError):
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert vars(copy) == vars(error)
    assert str(copy) == str(error)


def test_a_missing_extra_is_answered_with_the_pip_line():
    require_extra("serve", "json")
    with pytest.raises(errors.ExtraMissingError) as caught:
        require_extra("plot", "json", "no_such_module")
    assert "pip install 'dalenius[plot]'" in caught.value.fix
    assert caught.value.modules == ("no_such_module",)
    assert (caught.value.code, caught.value.exit_code) == ("source.unavailable", 5)

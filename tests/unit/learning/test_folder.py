"""A model as a folder: card, page and weights, which fit each other and the receipt, or are refused."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.unit.learning.taught import curator_of, some_people
from tests.unit.learning.test_model_kind import ONE

from dalenius import Curator, TrainedModel, load_model
from dalenius.accounting.events import SampledGaussian
from dalenius.accounting.sampled_discrete import sampling_rate
from dalenius.errors import DaleniusError, InputError, LedgerCorruptError, NotAllowedError, SourceUnavailableError
from dalenius.learning.card import card_of, page_of
from dalenius.learning.training import alone_epsilon
from dalenius.ledger.chain import digest


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Curator:
    return curator_of(tmp_path_factory.mktemp("people"), some_people(500))


@pytest.fixture(scope="module")
def found(people: Curator) -> TrainedModel:
    return people.analyst("ana").train("people", "income", epsilon=2.0, **ONE)


def test_a_folder_has_three_files_that_come_back_as_the_same_model(
    people: Curator, found: TrainedModel, tmp_path: Path
):
    fresh = some_people(50, seed=4)
    files = found.save(tmp_path / "model", scored=found.score(fresh))
    assert sorted(each.name for each in files) == ["card.json", "card.md", "weights.json"]
    assert sorted(each.name for each in (tmp_path / "model").iterdir()) == ["card.json", "card.md", "weights.json"]
    again = load_model(tmp_path / "model", public_key=people.ledger.keys.public_file)
    assert list(again.predict(fresh)) == list(found.predict(fresh))
    assert again.receipt == found.receipt and again.guarantee == found.guarantee
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert card["guarantee"] == dict(found.guarantee) and card["receipt"]["charge"]["epsilon"] == 2.0
    assert card["training"]["steps"] == found.to_dict()["training"]["steps"] and card["score"]["count"] == 50
    assert {each["feature"] for each in card["coefficients"]} == {"intercept", *found.feature_names_}
    page = (tmp_path / "model" / "card.md").read_text()
    for words in ("ε = 2, δ = 1e-05 for each person (add-remove)", "Accuracy 0.", str(found.receipt["id"])):  # type: ignore[index]
        assert words in page
    again.save(tmp_path / "model")  # over itself


def test_the_card_shows_the_figure_by_loss_distributions_of_the_training_alone(people: Curator, found: TrainedModel):
    """10,000 steps at q = 0.01 and σ = 1: 6.188 at δ = 1e-5, where Rényi orders have 6.28 (issue 25)."""
    training = SampledGaussian(sampling_rate(0.01), Fraction(2) ** 80, 2**80, steps=10_000, dimension=50)
    figure = alone_epsilon(training, 1e-5)
    assert figure is not None and round(figure, 3) == 6.188
    card = card_of(found, found.stored.content())
    shown = page_of(card | {"alone": card["alone"] | {"epsilon": figure}})
    assert "The training alone is (6.188, 1e-05)-DP" in shown
    alone = found.stored.alone
    assert alone is not None and card["alone"]["epsilon"] == alone and 0 < alone <= 2.0


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        data = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(change(data), separators=(",", ":"), ensure_ascii=False))

    return apply


def with_weight(data: dict[str, Any]) -> dict[str, Any]:
    data["weights"][0][0] += 1e-9
    return data


FORGED: list[Callable[[Path], None]] = [
    changed("weights.json", with_weight),
    changed("weights.json", lambda data: data | {"epsilon": 0.1}),
    changed("card.json", lambda data: data | {"guarantee": data["guarantee"] | {"epsilon": 0.1}}),
    changed(
        "card.json",
        lambda data: data | {"guarantee": data["guarantee"] | {"kind": "pure", "delta": 0.0}} | {"alone": None},
    ),
    changed("card.json", lambda data: data | {"guarantee": data["guarantee"] | {"unit": "household"}}),
    changed("card.json", lambda data: data | {"guarantee": data["guarantee"] | {"neighbors": "substitute"}}),
    changed("card.json", lambda data: data | {"guarantee": data["guarantee"] | {"certified": "by all"}}),
    changed("card.json", lambda data: data | {"training": data["training"] | {"sigma": 99.0}}),
    changed("card.json", lambda data: data | {"model": data["model"] | {"features": ["age"]}}),
    changed("card.json", lambda data: data | {"receipt": data["receipt"] | {"release": "0" * 64}}),
    changed("card.json", lambda data: data | {"receipt": data["receipt"] | {"analyst": "eve"}}),
    changed("card.json", lambda data: data | {"receipt": {}}),
]


@pytest.mark.parametrize("forge", FORGED)
def test_what_does_not_fit_its_receipt_is_not_loaded(
    people: Curator, found: TrainedModel, tmp_path: Path, forge: Callable[[Path], None]
):
    found.save(tmp_path / "model")
    forge(tmp_path / "model")
    with pytest.raises(LedgerCorruptError):
        load_model(tmp_path / "model", public_key=people.ledger.keys.public_file)


def test_a_receipt_of_another_curator_is_not_believed(found: TrainedModel, tmp_path: Path):
    found.save(tmp_path / "model")
    other = curator_of(tmp_path / "other", some_people(5))
    with pytest.raises(LedgerCorruptError, match="not genuine"):
        load_model(tmp_path / "model", public_key=other.ledger.keys.public_file)


def test_what_is_no_model_is_refused_and_nothing_in_it_runs(tmp_path: Path):
    class Bomb:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "ran",))

    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(DaleniusError):
        load_model(folder)
    for content in (pickle.dumps(Bomb()), b"", b"[]", b"{}", b'{"format": "dalenius model card 1"}', b"[" * 100_000):
        (folder / "weights.json").write_bytes(content)
        (folder / "card.json").write_bytes(content)
        with pytest.raises(InputError):
            load_model(folder)
    assert not (tmp_path / "ran").exists()


STRANGE: list[tuple[str, Any]] = [
    ("rate", "1e30000000"),  # as a fraction it would have thirty million digits
    ("variance", "1e-30000000"),
    ("variance", "-1"),
    ("rate", "1/0"),
    ("people", "x"),
    ("people", float("nan")),
    ("people", 1e308),
    ("capacity", None),
    ("clip", 0),
    ("grid", -(10**9)),
    ("held", 0),
    ("steps", []),
    ("centring", -5),
    ("delta", "z"),
    ("method", {}),
    ("task.model", []),
    ("task.model", "x"),
    ("task.features", []),
    ("task.target.keys", [["low"], ["high"]]),
    ("task.target.keys", ["low", "low"]),
    ("task.target.absent", "yes"),
    ("task.target.name", ["a"]),
]


@pytest.mark.parametrize(("name", "value"), STRANGE)
def test_a_strange_model_is_refused_in_no_time(found: TrainedModel, tmp_path: Path, name: str, value: Any):
    """Whoever sends a folder decides what stands in it: without a key nothing says who wrote it."""
    found.save(tmp_path / "model")
    content = json.loads((tmp_path / "model" / "weights.json").read_bytes())
    place, *within = reversed(["recipe", *name.split(".")])
    held = content
    for each in reversed(within):
        held = held[each]
    held[place] = value
    text = json.dumps(content, separators=(",", ":")).encode()
    (tmp_path / "model" / "weights.json").write_bytes(text)
    forge = changed("card.json", lambda data: data | {"receipt": data["receipt"] | {"release": digest(text)}})
    forge(tmp_path / "model")
    began = time.process_time()
    with pytest.raises(InputError):
        load_model(tmp_path / "model")
    assert time.process_time() - began < 1


def test_a_folder_that_is_no_place_for_a_model_is_refused(people: Curator, found: TrainedModel, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    with pytest.raises(SourceUnavailableError):
        found.save(tmp_path / "file")
    with pytest.raises(InputError, match="something else"):
        found.save(tmp_path / "full")
    with pytest.raises(SourceUnavailableError):
        found.save(tmp_path / "none" / "model")
    with pytest.raises(NotAllowedError):
        found.save(people.home / "model")

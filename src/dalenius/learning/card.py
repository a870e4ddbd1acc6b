"""The card of a model: what it is for, what it promises, how it was made, and the proof. As JSON and as a page.

Everything on it follows from the stored model, its receipt and the budget. Who reads it needs no curator to check it:
`weights.json` holds the very bytes that the receipt is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dalenius._numbers import count_of, to_digits, to_percent
from dalenius.errors import InputError
from dalenius.learning.describing import described
from dalenius.ledger.chain import digest

if TYPE_CHECKING:
    from dalenius.learning.release import TrainedModel
    from dalenius.learning.scoring import Scored

FORMAT = "dalenius model card 1"
WEIGHTS = "weights.json"
_MOST_SHOWN = 40  # coefficients on the page; card.json has all
_METHODS = {"sgd": "noisy gradient steps (DP-SGD)", "output": "output perturbation"}


def card_of(found: TrainedModel, content: bytes, scored: Scored | None = None) -> dict[str, Any]:
    """The card as JSON.

    Args:
        found: The model.
        content: Its stored bytes.
        scored: How well it predicts.
    """
    if found.receipt is None or found.receipt["release"] != digest(content):
        raise InputError(
            "This model is not the one of its receipt.",
            why="The receipt is for other bytes.",
            fix="Ask for the model again by the number of its release: that is free.",
        )
    about = described(found.stored)
    return {
        "format": FORMAT,
        "model": {name: about[name] for name in ("table", "target", "classes", "features", "model", "method")},
        "guarantee": dict(found.guarantee),
        "alone": None if found.stored.alone is None else _alone(found),
        "training": about["training"] | {"held_out": found.stored.held_out},
        "score": None if scored is None else scored.to_dict(),
        "coefficients": about["coefficients"],
        "weights": {"file": WEIGHTS, "sha256": digest(content), "bytes": len(content)},
        "receipt": dict(found.receipt),
    }


def page_of(card: Mapping[str, Any]) -> str:
    """The card as Markdown, for people."""
    model, kept, training = card["model"], card["guarantee"], card["training"]
    receipt, alone = card["receipt"], card["alone"]
    delta = f", δ = {kept['delta']:g}" if kept["delta"] else ""
    lines = [
        f"# A model of {_name(model['target'])}",
        "",
        (
            f"A {model['model']} model that predicts {_name(model['target'])} from {_list(model['features'])}. "
            f"It was trained on the protected table {_name(model['table'])} by {_METHODS.get(model['method'], '')}."
        ),
        "",
        "## What it promises",
        "",
        (
            f"- ε = {kept['epsilon']:g}{delta} for each {_name(kept['unit'])} ({kept['neighbors']}), charged before "
            "the data was read. It holds for the weights and for everything that is done with them."
        ),
    ]
    if alone is not None:
        lines.append(
            f"- The training alone is ({to_digits(alone['epsilon'], 4)}, {alone['delta']:g})-DP, by {alone['by']}. "
            "This figure is for comparison; it was not what was charged."
        )
    lines += [
        f"- The noise is {_noise(kept)} on whole numbers, drawn from secure random bits.",
        "",
        "## How it was trained",
        "",
        *_training(training, kept["unit"]),
        "",
        "## How well it predicts",
        "",
        _scored(card["score"], model["target"]),
        "",
        "## Coefficients",
        "",
        *_coefficients(card["coefficients"]),
        "",
        "## Proof",
        "",
        f"- Receipt {_name(receipt['id'])} of {receipt['time']}, for data set {_name(receipt['dataset'])}.",
        f"- `{card['weights']['file']}` has the SHA-256 `{card['weights']['sha256']}`, which the receipt signs.",
        "- Check it with `dalenius.load_model(FOLDER, public_key=FILE)`; the owner gives out the public key.",
        "",
    ]
    return "\n".join(lines)


def _alone(found: TrainedModel) -> dict[str, Any]:
    return {
        "epsilon": found.stored.alone,
        "delta": found.guarantee["delta"],
        "by": "privacy loss distributions",
    }


def _training(training: Mapping[str, Any], unit: str) -> list[str]:
    counted = "counted with noise in the same charge" if training["counted"] else "by the released count"
    held = f"; {to_percent(training['held_out'])} of all were held out" if training["held_out"] else ""
    lines = [
        (
            f"- About {training['people']:,} units ({_name(unit)}) were learned from, {counted}{held}; at most "
            f"{count_of(training['rows_per_unit'], 'row')} of each."
        ),
    ]
    if not training["steps"]:
        once = f"- Noise was added once to each weight, with σ = {to_digits(training['sigma'], 4)}."
        return [*lines, f"{once} Weights are held near 0 by λ = {to_digits(training['regularisation'], 3)}."]
    drawn = f"about {training['batch']:,} units drawn at random (rate {training['rate']:.4g})"
    each = "all units" if training["rate"] == 1 else drawn
    lines.append(f"- {count_of(training['steps'], 'step')}, each with {each}, in {training['slots']:,} slots.")
    lines.append(
        f"- One unit moves a sum by at most {to_digits(training['clip'], 4)} (L2); the noise has σ = "
        f"{to_digits(training['sigma'], 4)} times that."
    )
    return lines


def _scored(scored: Mapping[str, Any] | None, target: str) -> str:
    if scored is None:
        return "Not measured. Score it on a file that is public, or on units held out."
    margin = f" ± {to_digits(scored['margin'], 2)}" if scored["margin"] else ""
    of = f"on {scored['count']:,} {scored['of']}"
    if scored["accuracy"] is not None:
        return f"Accuracy {scored['accuracy']:.3f}{margin} {of}."
    return f"Mean absolute error {to_digits(scored['error'], 4)}{margin} in {_name(target)}, {of}."


def _coefficients(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The largest ones as a table."""
    first = sorted(found, key=lambda each: -abs(each["value"]))[:_MOST_SHOWN]
    rows = [
        f"| {_name(each['output'])} | {_name(each['feature'])} | {to_digits(each['value'], 4)} | "
        f"{'' if each['margin'] is None else '± ' + to_digits(each['margin'], 2)} |"
        for each in first
    ]
    more = ["", f"The {_MOST_SHOWN} largest of {len(found):,}; `card.json` has all."] if len(found) > len(first) else []
    return [
        "± is at most the 95% margin for the added noise; the actual one may be smaller.",
        "",
        "| score of | feature | coefficient | margin |",
        "|---|---|---|---|",
        *rows,
        *more,
    ]


def _noise(kept: Mapping[str, Any]) -> str:
    return "discrete Gaussian" if kept["delta"] else "discrete Laplace"


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(_name, names))


def _name(text: object) -> str:
    """Text from outside: shown, never obeyed, whatever it says to a terminal or in Markdown."""
    plain = "".join(each if each.isprintable() else " " for each in str(text))
    return plain if plain.replace("_", "").replace(" ", "").isalnum() else "`" + plain.replace("`", "'") + "`"

"""`dalenius collect`: statistics from people who do not trust who collects them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dalenius.app.cli.frame import Frame, check_free, framed, group
from dalenius.app.cli.rows_option import working
from dalenius.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dalenius.local.collecting import Folded
    from dalenius.local.domain import Domain

_WRITTEN = (".csv", ".json")

DomainOption = Annotated[
    str | None,
    typer.Option("--domain", metavar="FILE|N", help="All values, one on each line; or N, for 0 to N−1."),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw it (png or svg).")]
Yes = Annotated[bool, typer.Option("--yes", help="Replace files that are there already.")]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    commands = group("Collects statistics from people who do not trust who collects them (local privacy).")
    commands.command("plan")(plan)
    commands.command("encode")(encode)
    commands.command("estimate")(estimate)
    app.add_typer(commands, name="collect")


@framed
def plan(
    frame: Frame,
    n: Annotated[int, typer.Option("--n", metavar="N", help="So many people will report.")],
    domain: Annotated[str, typer.Option("--domain", metavar="FILE|D", help="The values, or how many there are.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="For each report.")],
    plot: Plot = None,
    yes: Yes = False,
) -> None:
    """Ranks randomisers by expected error and by what each person sends. Looks at no data.

    Example: dalenius collect plan --n 100000 --domain 64 --epsilon 1
    """
    from dalenius.app.views import collections as view
    from dalenius.local.planner import plan as planned
    from dalenius.releasing.targets import PLOT

    _check_target(plot, PLOT, [], yes=yes)
    size = int(domain) if _is_number(domain) else _domain(domain).size
    found = planned(n, size, epsilon)
    if plot is not None:
        view.draw_plan(plot, found)
        frame.note(f"Wrote {plot}.")
    frame.emit(view.plan_data(found), lambda console: view.print_plan(console, found))


@framed
def encode(
    frame: Frame,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One value a line, or a CSV file; - for stdin.")],
    randomiser: Annotated[str, typer.Option("--randomiser", metavar="R", help="As 'collect plan' names them.")],
    epsilon: Annotated[float, typer.Option("--epsilon", metavar="E", help="For each report.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="Write the reports there.")],
    domain: DomainOption = None,
    column: Annotated[
        str | None, typer.Option("--column", metavar="NAME", help="Of a CSV file, with names on its first line.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=NUMBER", help="A setting of the randomiser; repeatable.")
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option("--memory", metavar="FILE", help="Keep answers there and repeat them, day after day. Secret."),
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", help="So many different values of each person, at first 1.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Turns each value into a report that says little about it. This is what runs where the values are.

    Example: dalenius collect encode answers.txt --randomiser k-ary --domain answers.domain --epsilon 1 -o answers.dlnr
    """
    from dalenius.app.views import collections as view
    from dalenius.local.collecting import encode_file, randomiser_called
    from dalenius.local.randomisers.rappor import Rappor
    from dalenius.owner.other_homes import check_unprotected_elsewhere

    found = None if domain is None else _domain(domain)
    chosen = randomiser_called(randomiser, epsilon, found, _settings(setting))
    read = [file, *([] if domain is None or _is_number(domain) else [Path(domain)])]
    _check_target(output, None, [*read, *([memory] if memory else [])], yes=yes)
    _check_target(memory, None, read, yes=True)  # it is meant to be replaced, by what it keeps one day later
    if memory is not None and memory.resolve() == output.resolve():
        raise InputError("Memory and reports are one file.", why="Either would be lost.", fix="Name another file.")
    if keep is not None and memory is None:
        raise InputError("--keep is for a memory.", why="Nothing else keeps answers.", fix="Add --memory FILE.")
    if file.is_file():
        check_unprotected_elsewhere([file], None)  # a protected table's people have a budget
    with working(frame, "Encoding") as bar:
        told = None if bar is None else lambda share: bar(share, "")
        done = encode_file(file, output, chosen, found, column=column, memory=memory, keep=keep, told=told)
    data = {
        "output": str(output),
        "reports": done.reports,
        "report_bytes": chosen.report_bytes,
        "randomiser": chosen.name,
        "settings": {key: value for key, value in chosen.fields().items() if key not in {"epsilon", "size"}},
        "asked_epsilon": chosen.epsilon,
        "epsilon": chosen.actual_epsilon,
        "domain": "" if found is None else found.sha256,
        "size": None if found is None else found.size,
    }
    if isinstance(chosen, Rappor):
        data["daily_epsilon"] = chosen.daily_epsilon
    if (spent := done.spending) is not None:
        data["memory"] = {
            "file": str(memory),
            "days": spent.days,
            "values": spent.values,
            "daily_epsilon": spent.daily,
            "lifetime_epsilon": spent.lifetime,
            "without_memory": spent.without,
        }
    frame.emit(data, lambda console: view.print_encoded(console, data))


@framed
def estimate(
    frame: Frame,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of reports; several are added up.")],
    domain: DomainOption = None,
    candidates: Annotated[
        Path | None,
        typer.Option("--candidates", metavar="FILE", help="For RAPPOR: texts to look for, one on each line."),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", metavar="C", help="Of intervals and band.")] = 0.95,
    tidy: Annotated[bool, typer.Option("--tidy", help="Shares at least 0 that add up to 1.")] = False,
    top: Annotated[int | None, typer.Option("--top", metavar="N", help="The N largest shares alone.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="OUT", help="Write the estimates there (csv or json).")
    ] = None,
    plot: Plot = None,
    yes: Yes = False,
) -> None:
    """What reports tell: shares with intervals and a band around all of them, or a mean.

    Example: dalenius collect estimate answers.dlnr --domain answers.domain
    """
    import json

    from dalenius.app.cli.frame import plain
    from dalenius.app.views import collections as view
    from dalenius.local.collecting import fold_files
    from dalenius.releasing.targets import PLOT

    if top is not None and top < 1:
        raise InputError("--top must be at least 1.", why="It is how many are shown.", fix="Leave it out for all.")
    if not 0 < confidence < 1:
        raise InputError("--confidence must lie between 0 and 1.", why="It is a chance.", fix="0.95 is usual.")
    read = [
        *files,
        *([candidates] if candidates else []),
        *([Path(domain)] if domain and not _is_number(domain) else []),
    ]
    _check_target(output, _WRITTEN, read, yes=yes)
    _check_target(plot, PLOT, read, yes=yes)
    found = None if domain is None else _domain(domain)
    with working(frame, "Adding up") as bar:
        folded = fold_files(files, found, told=None if bar is None else lambda share: bar(share, ""))
    data = _estimates(folded, found, candidates, confidence, tidy=tidy, top=top)
    if plot is not None and "estimates" not in data:  # before anything is written
        raise InputError("A mean has no chart.", why="It is one number.", fix="Leave out --plot.")
    if output is not None:
        if "estimates" not in data and output.suffix.lower() == ".csv":
            raise InputError("A mean is one number.", why="A table of it says no more.", fix="Write it as .json.")
        text = view.to_csv(data["estimates"]) if output.suffix.lower() == ".csv" else json.dumps(plain(data))
        view.write_whole(output, text)
        frame.note(f"Wrote {output}.")
    if plot is not None:
        view.draw_estimates(plot, data)
        frame.note(f"Wrote {plot}.")
    frame.emit(data, lambda console: view.print_estimates(console, data, every=top is not None))


def _estimates(
    folded: Folded, domain: Domain | None, candidates: Path | None, confidence: float, *, tidy: bool, top: int | None
) -> dict[str, Any]:
    """What `--json` prints; which estimator follows from the randomiser."""
    from dalenius.local.estimators.frequencies import estimate as frequencies
    from dalenius.local.estimators.means import bit_shares, mean
    from dalenius.local.randomisers.bit_vector import BitVector
    from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
    from dalenius.local.randomisers.randomiser import FrequencyOracle
    from dalenius.local.randomisers.rappor import Rappor

    tally, randomiser = folded.tally, folded.tally.randomiser
    _check_options(randomiser, domain, candidates, tidy=tidy, top=top)
    data: dict[str, Any] = {
        "randomiser": randomiser.name,
        "settings": {key: value for key, value in randomiser.fields().items() if key not in {"epsilon", "size"}},
        "asked_epsilon": randomiser.epsilon,
        "epsilon": randomiser.actual_epsilon,
        "reports": tally.reports,
        "files": folded.files,
        "domain": folded.domain,
        "confidence": confidence,
    }
    if isinstance(randomiser, MeanRandomiser):
        found = mean(tally)
        margin = found.margin(confidence)
        data["mean"] = {
            "value": found.value,
            "margin": margin,
            "low": found.value - margin,
            "high": found.value + margin,
            "error": found.error,
        }
        return data
    if isinstance(randomiser, FrequencyOracle):
        assert domain is not None  # noqa: S101 - checked above
        shares = frequencies(tally)
        spread = shares.margins(confidence).tolist(), shares.band(confidence).tolist()
        rows = _rows(domain.texts, shares.shares.tolist(), *spread, tally.reports)
    elif isinstance(randomiser, BitVector):
        bits = bit_shares(tally)
        names = [str(place) for place in range(randomiser.size)]
        spread = [bits.margin(confidence)] * randomiser.size, [bits.band(confidence)] * randomiser.size
        rows = _rows(names, bits.shares.tolist(), *spread, tally.reports)
    else:
        assert isinstance(randomiser, Rappor)  # noqa: S101 - there are no others
        return {**data, **_decoded(folded, candidates, confidence, top)}
    if tidy:
        _tidy(rows, tally.reports)
    data["tidy"], data["size"], data["tested"] = tidy, len(rows), len(rows)
    if top is not None:
        rows = sorted(rows, key=lambda each: -each["share"])[:top]
    return {**data, "estimates": rows}


def _rows(
    names: Sequence[str], shares: Sequence[float], margins: Sequence[float], band: Sequence[float], reports: int
) -> list[dict[str, Any]]:
    found = []
    for name, share, margin, wide in zip(names, map(float, shares), map(float, margins), map(float, band), strict=True):
        found.append(
            {
                "value": name,
                "share": share,
                "low": share - margin,
                "high": share + margin,
                "band_low": share - wide,
                "band_high": share + wide,
                "count": share * reports,
            }
        )
    return found


def _tidy(rows: Sequence[dict[str, Any]], reports: int) -> None:
    import numpy as np

    from dalenius.local.estimators.tidying import to_simplex

    for row, share in zip(rows, to_simplex(np.array([row["share"] for row in rows])).tolist(), strict=True):
        row.update(unbiased=row["share"], share=share, count=share * reports)


def _decoded(folded: Folded, candidates: Path | None, confidence: float, top: int | None) -> dict[str, Any]:
    from dalenius.local.domain import Domain
    from dalenius.local.estimators.rappor_decoding import decode

    assert candidates is not None  # noqa: S101 - checked before
    randomiser: Any = folded.tally.randomiser
    texts = Domain.read(candidates).texts
    found = decode(folded.tally, texts, level=1 - confidence)
    margins, band, places = found.margins(confidence), found.band(confidence), found.ranking.tolist()[:top]
    rows = _rows(
        [texts[place] for place in places],
        [found.shares[place] for place in places],
        [margins[place] for place in places],
        [band[place] for place in places],
        folded.tally.reports,
    )
    return {
        "daily_epsilon": randomiser.daily_epsilon,
        "size": len(texts),
        "tested": found.tested,
        "found": int(found.found.sum()),
        "misfit": found.misfit,
        "background": found.background,
        "estimates": rows,
    }


def _check_options(
    randomiser: object, domain: Domain | None, candidates: Path | None, *, tidy: bool, top: int | None
) -> None:
    """Each randomiser needs its list, and knows no other; a mean has no shares."""
    from dalenius.local.randomisers.mean_randomiser import MeanRandomiser
    from dalenius.local.randomisers.randomiser import FrequencyOracle
    from dalenius.local.randomisers.rappor import Rappor

    name = getattr(randomiser, "name", "")
    wants = {"--domain": isinstance(randomiser, FrequencyOracle), "--candidates": isinstance(randomiser, Rappor)}
    for option, given in (("--domain", domain is not None), ("--candidates", candidates is not None)):
        if wants[option] and not given:
            listed = "texts" if option == "--candidates" else "values"
            raise InputError(
                f"{option} is missing.",
                why=f"Reports of {name} hold no text; the list says which {listed} to look for in them.",
                fix=f"Give {option} FILE, with one of them on each line.",
            )
        if given and not wants[option]:
            raise InputError(f"Reports of {name} take no {option}.", why="They are about no list.", fix="Leave it out.")
    if tidy and not wants["--domain"]:
        raise InputError("--tidy is for shares that add up to 1.", why=f"Those of {name} do not.", fix="Leave it out.")
    if top is not None and isinstance(randomiser, MeanRandomiser):
        raise InputError("--top is for shares.", why=f"{name} estimates a mean.", fix="Leave it out.")


def _domain(given: str) -> Domain:
    """A file, or a number."""
    from dalenius.local.domain import Domain

    return Domain.numbered(int(given)) if _is_number(given) else Domain.read(Path(given))


def _is_number(given: str) -> bool:
    return given.isascii() and given.isdigit() and not Path(given).exists()


def _settings(given: Sequence[str] | None) -> dict[str, str]:
    found = dict[str, str]()
    for each in given or ():
        name, equals, number = each.partition("=")
        if not equals or name in found:
            raise InputError(
                f"--set {each[:40]} is no setting." if not equals else f"{name} is set twice.",
                why="It is written NAME=NUMBER, once for each name.",
                fix="Write --set cohorts=64, say.",
            )
        found[name.replace("-", "_")] = number
    return found


def _check_target(target: Path | None, endings: Sequence[str] | None, read: Sequence[Path], *, yes: bool) -> None:
    """A file may be written there: it ends rightly, is no input, and is not there yet."""
    from dalenius.releasing.targets import check_target
    from dalenius.tables.sources.homes import check_output

    if target is None:
        return
    if endings is None:
        check_output(target)
    else:
        check_target(target, endings)
    if target.exists() and any(each.exists() and target.samefile(each) for each in read):
        raise InputError(f"{target.name} is read, too.", why="It would be lost.", fix="Name another file.")
    check_free(target, yes=yes)

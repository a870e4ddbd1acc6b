"""The burn-down: what every budget had left after each charge."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius.app.balances import Total, visible
from dalenius.app.plots import figure
from dalenius.ledger import sharing
from dalenius.ledger.budgets import Budget

if TYPE_CHECKING:
    from dalenius.ledger.chain import Entry
    from dalenius.ledger.ledger import Ledger

SHOWN_PERIODS = 6  # of each data set, the newest
_FINEST = 1000  # steps per line; more could not be told apart

Line = list[tuple[datetime, float]]


class Name(NamedTuple):
    """Whose line it is; ``who`` is an analyst, or '' for the data set."""

    dataset: str
    period: str
    who: str


class Step(NamedTuple):
    """One total (``who`` is an analyst, or '' for the data set) got a cap, or something of it was spent.

    ``fresh``: new people; nothing is spent of any total of the data set.
    """

    number: int
    when: datetime
    who: str
    cap: float | None = None
    units: tuple[int, int] = (0, 0)
    fresh: bool = False


@dataclass
class Story:
    """What happened to one data set, in order."""

    budget: Budget
    caps: list[Step] = field(default_factory=list)
    spent: dict[str, list[Step]] = field(default_factory=dict)  # by period

    def line(self, period: str, *whose: str) -> Line:
        """What one more question could have typed after each step, all totals in ``whose`` counting."""
        caps: dict[str, float] = {}
        units = dict.fromkeys(whose, (0, 0))
        merged = merge(self.caps, self.spent.get(period, []), key=lambda each: each.number)
        steps = [step for step in merged if step.who in units]
        stride = -(-len(steps) // _FINEST)
        line: Line = []
        for place, step in enumerate(steps, 1):
            if step.fresh:
                units = dict.fromkeys(whose, (0, 0))
            if step.cap is not None:
                caps[step.who] = step.cap
            loss, delta = units[step.who]
            units[step.who] = loss + step.units[0], delta + step.units[1]
            told = step.fresh or step.cap is not None or place % stride == 0 or place == len(steps)
            if told and len(caps) == len(whose):
                when = max(step.when, line[-1][0]) if line else step.when  # clocks may be put back
                line.append((when, min(self._left(caps[who], units[who]) for who in whose)))
        return line

    def _left(self, cap: float, units: tuple[int, int]) -> float:
        return self.budget.filter(cap, units).remaining_epsilon if cap > 0 else 0.0


def points(ledger: Ledger, analyst: str = "", now: datetime | None = None) -> dict[Name, Line]:
    """For each data set and period: when, and the largest ε one more question could have typed then, until now.

    With ``analyst``, also what that analyst could have typed, in the data sets that gave an allotment.
    """
    now = now or datetime.now(UTC)
    found: dict[Name, Line] = {}
    for dataset, story in _stories(ledger, analyst).items():
        whose = [("",), ("", analyst)] if analyst else [("",)]
        if analyst and not any(step.who for step in story.caps):
            continue
        any_period = f"each {story.budget.period}" if story.budget.period else ""
        for period in sorted(story.spent)[-SHOWN_PERIODS:] or [""]:
            for each in whose:
                line = story.line(period, *each)
                line.append((max(now, line[-1][0]), line[-1][1]))
                found[Name(dataset, period or any_period, each[-1])] = line
    return found


def seen(ledger: Ledger, analyst: str | None) -> list[tuple[Total, Line]]:
    """The totals that somebody may see (as `visible` says), each with its line.

    A line is empty where `points` has none: for other analysts, and for periods before the newest.
    """
    found = visible(ledger, analyst)
    lines = points(ledger, analyst or "")
    return [(each, lines.get(_name(each), [])) for each in found]


def draw(ledger: Ledger, target: Path, analyst: str = "") -> None:
    """Draws it."""
    with figure(target) as axes:
        from matplotlib import dates as untyped

        dates: Any = untyped
        color = ""
        found = points(ledger, analyst)
        for name, line in found.items():
            style: dict[str, Any] = {"linewidth": 2}
            if name.who:  # beside the line of its data set
                style = {"linewidth": 2, "color": color}
            elif analyst:
                style = {"linewidth": 1.2, "linestyle": "--"}
            label = f" {', '.join(filter(None, name))}"  # one that starts with _ would be left out of the legend
            [drawn] = axes.step(*zip(*line, strict=True), where="post", label=label, **style)
            color = drawn.get_color()
        axes.set_xlabel("time (UTC)", loc="left")  # the date stands at the right
        axes.set_ylabel("largest ε one more question may type")
        axes.set_ylim(bottom=0)
        axes.set_title("What is left of each budget", loc="left")
        places = dates.AutoDateLocator(tz=UTC)
        axes.xaxis.set_major_locator(places)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(places, tz=UTC))
        if lines := axes.get_lines():
            # beside the lines, never over them
            legend = axes.legend(
                frameon=False, loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", ncols=1 + len(lines) // 20
            )
            if any(name.period for name in found):
                legend.set_title(f"at most the {SHOWN_PERIODS} newest periods", prop={"size": "small"})
            for text in legend.get_texts():
                text.set_parse_math(False)  # a $ in a name is a $


def _name(total: Total) -> Name:
    every = total.balance.budget.period
    return Name(total.dataset, total.balance.period or (f"each {every}" if every else ""), total.analyst)


def _stories(ledger: Ledger, analyst: str) -> dict[str, Story]:
    stories: dict[str, Story] = {}
    charges: dict[int, dict[str, Any]] = {}
    for entry in ledger.entries():
        data = entry.data
        if entry.kind == "charge":
            if analyst:
                charges[entry.number] = data
            whose = set(sharing.payers(data)) & {"", analyst}
            _spend(stories[data["dataset"]], entry, data, whose)
        elif entry.kind == "grant" and data["analyst"] == analyst:
            charge = charges[data["charge"]]
            _spend(stories[charge["dataset"]], entry, charge, {analyst})
        elif entry.kind == "budget":
            budget = Budget.from_dict(data["budget"])
            story = stories.setdefault(data["dataset"], Story(budget))
            story.caps.append(Step(entry.number, _time(entry), "", budget.epsilon))
        elif entry.kind == "epoch":
            stories[data["dataset"]].caps.append(Step(entry.number, _time(entry), "", fresh=True))
        elif entry.kind == "allotment" and data["analyst"] == analyst:
            stories[data["dataset"]].caps.append(Step(entry.number, _time(entry), analyst, data["epsilon"]))
    return stories


def _spend(story: Story, entry: Entry, charge: dict[str, Any], whose: set[str]) -> None:
    loss, delta = (int(each) for each in charge["units"])
    for period in charge["periods"]:
        steps = story.spent.setdefault(period, [])
        steps += [Step(entry.number, _time(entry), who, units=(loss, delta)) for who in sorted(whose)]


def _time(entry: Entry) -> datetime:
    return datetime.fromisoformat(entry.time)

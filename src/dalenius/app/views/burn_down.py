"""The burn-down: what every budget had left after each charge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dalenius.app.views.accounts import Account, Accounts, Cap, Spent, Sum
from dalenius.app.views.balances import Total, visible_totals

if TYPE_CHECKING:
    from dalenius.ledger.ledger import Ledger

SHOWN_PERIODS = 6  # of each data set, the newest
_FINEST = 1000  # steps per line; more could not be told apart

Line = list[tuple[datetime, float]]
_Step = tuple[Cap | Spent, str]  # and whose total it changes


class LineName(NamedTuple):
    """Whose line it is; ``who`` is an analyst, or '' for the data set."""

    dataset: str
    period: str
    who: str


def points(ledger: Ledger, analyst: str = "", now: datetime | None = None) -> dict[LineName, Line]:
    """For each data set and period: when, and the largest ε one more question could have typed then, until now.

    With ``analyst``, also what that analyst could have typed, in the data sets that gave an allotment.
    """
    now = now or datetime.now(UTC)
    found: dict[LineName, Line] = {}
    for dataset, account in Accounts.of(ledger.entries()).datasets.items():
        if analyst and not any(cap.analyst == analyst for cap in account.caps):
            continue
        any_period = f"each {account.budget.period}" if account.budget.period else ""
        periods = sorted({period for each in account.spent for period in each.periods})
        for period in periods[-SHOWN_PERIODS:] or [""]:
            for whose in [("",), ("", analyst)] if analyst else [("",)]:
                line = _line(account, period, whose)
                line.append((max(now, line[-1][0]), line[-1][1]))
                found[LineName(dataset, period or any_period, whose[-1])] = line
    return found


def visible_lines(ledger: Ledger, analyst: str | None) -> list[tuple[Total, Line]]:
    """The totals that somebody may see (as `visible_totals` says), each with its line.

    A line is empty where `points` has none: for other analysts, and for periods before the newest.
    """
    found = visible_totals(ledger, analyst)
    lines = points(ledger, analyst or "")
    return [(each, lines.get(_name(each), [])) for each in found]


def draw_burn_down(ledger: Ledger, target: Path, analyst: str = "") -> None:
    """What was left of every budget over time, and of an analyst's allotments."""
    from dalenius.queries.charts import axes_in

    with axes_in(target) as axes:
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


def _name(total: Total) -> LineName:
    every = total.balance.budget.period
    return LineName(total.dataset, total.balance.period or (f"each {every}" if every else ""), total.analyst)


def _line(account: Account, period: str, whose: Sequence[str]) -> Line:
    """What one more question could have typed after each step, all totals in ``whose`` counting."""
    caps: dict[str, float] = {}
    spent = dict.fromkeys(whose, Sum())
    capped: Iterable[_Step] = ((each, each.analyst) for each in account.caps if each.analyst in spent)
    paid = ((each, who) for each in account.spent if period in each.periods for who in each.payers if who in spent)
    steps = list(merge(capped, paid, key=lambda each: each[0].number))
    stride = -(-len(steps) // _FINEST)
    line: Line = []
    for place, (step, who) in enumerate(steps, 1):
        told = isinstance(step, Cap) or place % stride == 0 or place == len(steps)
        if isinstance(step, Spent):
            spent[who] = spent[who].plus(step)
        elif step.epsilon is None:
            spent = dict.fromkeys(whose, Sum())
        else:
            caps[who] = step.epsilon
        if told and len(caps) == len(whose):
            time = datetime.fromisoformat(step.time)
            when = max(time, line[-1][0]) if line else time  # clocks may be put back
            line.append((when, min(_left(account, caps[each], spent[each]) for each in whose)))
    return line


def _left(account: Account, cap: float, spent: Sum) -> float:
    return account.budget.filter(cap, spent.units, spent.sampled).remaining_epsilon if cap > 0 else 0.0

"""A finding as a picture. Needs the extra `plot`."""

from __future__ import annotations

from pathlib import Path

from dalenius._extras import require_extra
from dalenius.audit.attacks.attack import Finding
from dalenius.errors import InputError
from dalenius.queries.charts import axes_in


def draw(findings: tuple[Finding, ...], target: Path) -> None:
    """One figure: the curves of all findings that have some, png or svg by the file's ending."""
    drawn = [each for each in findings if each.drawing is not None]
    if not drawn:
        raise InputError(
            "There is nothing to draw.",
            why="This attack asks too few questions for a curve.",
            fix="Leave --plot out, or take another attack: averaging, reconstruction, membership.",
        )
    require_extra("plot", "matplotlib")
    first = drawn[-1].drawing
    assert first is not None  # noqa: S101 (they were chosen by that)
    with axes_in(target) as axes:
        axes.set_title(first.title, loc="left")
        axes.set_xlabel(first.across)
        axes.set_ylabel(first.up)
        beside = set()  # what is drawn for comparison is named once
        for number, finding in enumerate(drawn):
            for curve in finding.drawing.curves if finding.drawing else ():
                own = curve.label == finding.target
                axes.plot(
                    *(curve.x, curve.y, "-" if own else ":"),
                    label=None if curve.label in beside else curve.label,
                    color=f"C{number}" if len(drawn) > 1 else None,
                    marker="o" if len(curve.x) < 3 else None,
                )
                if not own:
                    beside.add(curve.label)
        axes.legend(frameon=False)

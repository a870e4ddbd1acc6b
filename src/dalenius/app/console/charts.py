"""Charts: bars of an answer with their noise error, and budgets over time.

Names and keys are values of a chart's data, never its code.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from dalenius.app.console.style import BAR, WHISKER
from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.queries.release import Release

MOST = 400  # bars
_TARGETS = ["#4a86b8", "#c2410c", "#8e5ea8", "#3c8d4f"]  # of the lab; ours is green
_WIDTH = 24  # characters of a key below the axis
_FAINT = {"lineStyle": {"color": "rgba(128, 140, 152, 0.3)"}}
_ROOM = {"left": 8, "right": 24, "top": 32, "bottom": 8, "containLabel": True}
# Draws one error bar; all it gets are numbers.
_WHISKER = """(params, api) => {
  const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  const half = Math.min(8, api.size([1, 0])[0] * 0.2), style = {stroke: api.visual('color'), lineWidth: 2};
  const line = (x1, y1, x2, y2) => ({type: 'line', shape: {x1, y1, x2, y2}, style});
  return {type: 'group', children: [
    line(low[0], low[1], high[0], high[1]),
    line(low[0] - half, low[1], low[0] + half, low[1]),
    line(high[0] - half, high[1], high[0] + half, high[1])]};
}"""


# The same, lying.
_ACROSS = """(params, api) => {
  const low = api.coord([api.value(1), api.value(0)]), high = api.coord([api.value(2), api.value(0)]);
  const half = Math.min(5, api.size([0, 1])[1] * 0.2), style = {stroke: api.visual('color'), lineWidth: 2};
  const line = (x1, y1, x2, y2) => ({type: 'line', shape: {x1, y1, x2, y2}, style});
  return {type: 'group', children: [
    line(low[0], low[1], high[0], high[1]),
    line(low[0], low[1] - half, low[0], low[1] + half),
    line(high[0], high[1] - half, high[0], high[1] + half)]};
}"""


def drawable(release: Release) -> list[int]:
    """The noisy columns of which bars can be drawn."""
    if not 0 < len(release.rows) <= MOST:
        return []
    noisy = [place for place, key in enumerate(release.keys) if not key]
    return [place for place in noisy if any(_is_number(row[place]) for row in release.rows)]


def bars(release: Release, place: int) -> dict[str, Any]:
    """One noisy column as bars over the keys, with error bars."""
    name = shown(release.columns[place], _WIDTH)
    names, values, whiskers = [], [], []
    for at, row in enumerate(release.rows):
        names.append(_name(release, row))
        values.append(float(row[place]) if _is_number(row[place]) else None)
        ends = release.ends(at, place)
        if ends is not None:
            whiskers.append([at, *ends])
    crowded = len(names) > 6
    return {
        "animation": False,
        "grid": _ROOM,
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {
            "type": "category",
            "data": names,
            "axisLabel": {"interval": "auto" if len(names) > 40 else 0, "rotate": 30 if crowded else 0},
        },
        "yAxis": {"type": "value", "name": name, "nameGap": 12, "splitLine": _FAINT},
        "series": [
            {"type": "bar", "name": name, "data": values, "barMaxWidth": 120, "itemStyle": {"color": BAR}},
            {
                "type": "custom",
                "name": f"{release.confidence:.0%} interval",
                ":renderItem": _WHISKER,
                "encode": {"x": 0, "y": [1, 2]},
                "data": whiskers,
                "itemStyle": {"color": WHISKER},
                "z": 10,
            },
        ],
    }


def burn_down(lines: dict[str, list[tuple[str, float]]], cap: float) -> dict[str, Any]:
    """What was left over time, of one budget and of parts of it: lines in steps, from the whole down."""
    styles = [{"color": BAR, "area": 0.15, "dash": "solid"}, {"color": WHISKER, "area": 0, "dash": "dashed"}]
    return {
        "animation": False,
        "grid": _ROOM,
        "legend": {"show": len(lines) > 1, "top": 0, "right": 8, "icon": "roundRect"},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {"type": "time", "splitNumber": 4, "axisLabel": {"hideOverlap": True}},
        "yAxis": {"type": "value", "name": "ε left", "min": 0, "max": cap, "splitLine": _FAINT},
        "series": [
            {
                "type": "line",
                "name": name,
                "step": "end",
                "showSymbol": False,
                "data": [[when, left] for when, left in line],
                "itemStyle": {"color": style["color"]},
                "lineStyle": {"type": style["dash"], "width": 2},
                "areaStyle": {"opacity": style["area"]},
            }
            for (name, line), style in zip(lines.items(), styles * len(lines), strict=False)
        ],
    }


def loss_by_k(points: list[tuple[int, float]], k: int) -> dict[str, Any]:
    """What is lost at each k, and where the slider stands."""
    names = [str(each) for each, _ in points]
    here = [[str(each), loss] for each, loss in points if each == k]
    return {
        "animation": False,
        "grid": _ROOM | {"bottom": 32},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {"type": "category", "data": names, "name": "k", "nameLocation": "middle", "nameGap": 28},
        "yAxis": {"type": "value", "name": "NCP: 0 nothing lost, 1 everything", "min": 0, "splitLine": _FAINT}
        | {"nameTextStyle": {"align": "left"}},
        "series": [
            {
                "type": "line",
                "name": "NCP",
                "data": [[name, round(loss, 4)] for name, (_, loss) in zip(names, points, strict=True)],
                "symbolSize": 7,
                "itemStyle": {"color": BAR},
                "areaStyle": {"opacity": 0.12},
            },
            {
                "type": "scatter",
                "name": "here",
                "data": here,
                "symbolSize": 16,
                "itemStyle": {"color": WHISKER},
                "z": 10,
            },
        ],
    }


def shares(name: str, labels: Sequence[str], values: Sequence[float]) -> dict[str, Any]:
    """How many rows of a hundred have each value of a column."""
    names = [shown(each, _WIDTH) for each in labels]
    return {
        "animation": False,
        "grid": _ROOM,
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {
            "type": "category",
            "data": names,
            "axisLabel": {"interval": "auto", "rotate": 30 if max(map(len, names), default=0) * len(names) > 60 else 0},
        },
        "yAxis": {"type": "value", "name": "% of rows", "splitLine": _FAINT},
        "series": [
            {
                "type": "bar",
                "name": shown(name, _WIDTH),
                "data": [round(100 * each, 3) for each in values],
                "barMaxWidth": 120,
                "itemStyle": {"color": BAR},
            }
        ],
    }


def coefficients(found: Sequence[tuple[str, float, float]]) -> dict[str, Any]:
    """Coefficients as bars from the left, each in units of its own margin, and that margin: name, value, margin."""
    names = [name for name, _, _ in found]
    whiskers = [[at, value - margin, value + margin] for at, (_, value, margin) in enumerate(found) if margin]
    return {
        "animation": False,
        "grid": _ROOM | {"top": 8, "bottom": 32},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {
            "type": "value",
            "name": "coefficient, in margins",
            "nameLocation": "middle",
            "nameGap": 26,
            "splitLine": _FAINT,
        },
        "yAxis": {
            "type": "category",
            "data": names,
            "inverse": True,
            "axisLabel": {"interval": 0, "width": 130, "overflow": "truncate"},
        },
        "series": [
            {
                "type": "bar",
                "name": "coefficient, in margins",
                "data": [round(value, 3) for _, value, _ in found],
                "barMaxWidth": 14,
                "itemStyle": {"color": BAR},
            },
            {
                "type": "custom",
                "name": "95% margin",
                ":renderItem": _ACROSS,
                "encode": {"x": [1, 2], "y": 0},
                "data": [[at, round(low, 3), round(high, 3)] for at, low, high in whiskers],
                "itemStyle": {"color": WHISKER},
                "z": 10,
            },
        ],
    }


def curves(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """What an attack of the lab drew, of each target: one colour for each, comparisons dashed."""
    drawn = findings[-1]["drawing"]
    series, seen = [], set()
    for color, finding in zip(_TARGETS * len(findings), findings, strict=False):
        names = [each["label"] for each in finding["drawing"]["curves"]]
        for number, curve in enumerate(finding["drawing"]["curves"]):
            alone = finding["target"] in names
            name = curve["label"] if alone else f"{finding['target']}: {curve['label']}"
            beside = alone and curve["label"] != finding["target"]
            if beside and name in seen:
                continue
            seen.add(name)
            step = max(1, len(curve["x"]) // MOST)
            points = [list(each) for each in zip(curve["x"], curve["y"], strict=True)]
            series.append(
                {
                    "type": "line",
                    "name": name,
                    "data": points[::step],
                    "showSymbol": len(points) < 3,
                    "itemStyle": {"color": "#7d8894" if beside else color},
                    "lineStyle": {"type": "dashed" if number else "solid", "width": 2},
                }
            )
    across, up = ({"type": "log" if drawn[each] else "value"} for each in ("log_x", "log_y"))
    return {
        "animation": False,
        "grid": _ROOM | {"top": 64, "bottom": 32},
        "legend": {"top": 0, "left": 8, "icon": "roundRect"},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": across | {"name": drawn["x"], "nameLocation": "middle", "nameGap": 28, "splitLine": _FAINT},
        "yAxis": up | {"name": drawn["y"], "scale": True, "splitLine": _FAINT, "nameTextStyle": {"align": "left"}},
        "series": series,
    }


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | Fraction) and not isinstance(value, bool)


def _name(release: Release, row: tuple[Any, ...]) -> str:
    keys = [shown(row[place], _WIDTH) for place, key in enumerate(release.keys) if key]
    return " · ".join(keys) or "all"

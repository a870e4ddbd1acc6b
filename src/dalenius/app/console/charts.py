"""Charts of releases: bars with their noise error. Names and keys are values of the chart's data, never its code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dalenius.queries.release import shown

if TYPE_CHECKING:
    from dalenius.queries.release import Release

MOST = 60  # bars
_WIDTH = 24  # characters of a key below the axis
# Draws one error bar; all it gets are numbers.
_WHISKER = """(params, api) => {
  const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
  const half = Math.min(8, api.size([1, 0])[0] * 0.2), style = {stroke: api.visual('color'), lineWidth: 1.5};
  const line = (x1, y1, x2, y2) => ({type: 'line', shape: {x1, y1, x2, y2}, style});
  return {type: 'group', children: [
    line(low[0], low[1], high[0], high[1]),
    line(low[0] - half, low[1], low[0] + half, low[1]),
    line(high[0] - half, high[1], high[0] + half, high[1])]};
}"""


def chart(release: Release, *, animation: bool = False) -> dict[str, Any] | None:
    """The first noisy column as bars over the keys, with error bars; None where there is nothing to draw."""
    noisy = [place for place, key in enumerate(release.keys) if not key]
    rows = [row for row in release.rows if noisy and isinstance(row[noisy[0]], int | float)]
    if not rows or len(rows) > MOST:
        return None
    place = noisy[0]
    names = [_name(release, row) for row in rows]
    values = [float(row[place]) for row in rows]
    whiskers: list[list[float]] = []
    for at, row in enumerate(release.rows):
        low_high = release.interval[at][place]
        error = release.noise_error[at][place]
        if low_high is not None:
            whiskers.append([len(whiskers), float(low_high[0]), float(low_high[1])])
        elif error is not None and isinstance(row[place], int | float):
            whiskers.append([len(whiskers), float(row[place]) - float(error), float(row[place]) + float(error)])
    return {
        "animation": animation,
        "grid": {"left": 8, "right": 16, "top": 24, "bottom": 8, "containLabel": True},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {
            "type": "category",
            "data": names,
            "axisLabel": {"interval": 0, "rotate": 30 if len(names) > 6 else 0},
        },
        "yAxis": {"type": "value", "name": shown(release.columns[place], _WIDTH), "nameGap": 10},
        "series": [
            {
                "type": "bar",
                "name": shown(release.columns[place], _WIDTH),
                "data": values,
                "itemStyle": {"color": "#4f86b5"},
            },
            {
                "type": "custom",
                "name": f"{release.confidence:.0%} interval",
                ":renderItem": _WHISKER,
                "encode": {"x": 0, "y": [1, 2]},
                "data": whiskers,
                "itemStyle": {"color": "#d08a2e"},
                "z": 10,
            },
        ],
    }


def burn_down(points: list[tuple[str, float]], cap: float) -> dict[str, Any]:
    """What was left over time: a line in steps, from the whole budget down."""
    return {
        "animation": False,
        "grid": {"left": 8, "right": 16, "top": 24, "bottom": 8, "containLabel": True},
        "tooltip": {"trigger": "axis", "renderMode": "richText"},
        "xAxis": {"type": "time"},
        "yAxis": {"type": "value", "name": "ε left", "min": 0, "max": cap},
        "series": [
            {
                "type": "line",
                "step": "end",
                "showSymbol": len(points) < 40,
                "data": [[when, left] for when, left in points],
                "itemStyle": {"color": "#4f86b5"},
                "areaStyle": {"opacity": 0.15},
            }
        ],
    }


def _name(release: Release, row: tuple[Any, ...]) -> str:
    keys = [shown(row[place], _WIDTH) for place, key in enumerate(release.keys) if key]
    return " · ".join(keys) or "all"

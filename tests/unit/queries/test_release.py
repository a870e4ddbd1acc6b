"""What leaves can be read by people, notebooks and programs, and hostile names in it stay text."""

import json
import sys
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dalenius.errors import ExtraMissingError, InputError, SourceUnavailableError
from dalenius.queries.release import Release, with_error

HOSTILE = ("$\\frac{", "<script>alert(1)</script>", "_x", "\x1b[31mred\n", "a\u202eb", "$a$", "日本")
PROMISE = "95% margin for the added noise · (ε = 0.5, δ = 1e-06)-DP for one user_id (add-remove)"
PNG = b"\x89PNG"


def release(columns, rows, *, keys=0, error=56.0, **more):
    marks = tuple(place < keys for place in range(len(columns)))
    errors = tuple(tuple(None if key else error for key in marks) for _ in rows)
    intervals = tuple(
        tuple(
            None if key or cell is None else (cell - error, cell + error) for cell, key in zip(row, marks, strict=True)
        )
        for row in rows
    )
    fields: dict[str, Any] = {
        "confidence": 0.95,
        "guarantee": {
            "kind": "approx",
            "epsilon": 0.5,
            "delta": 1e-6,
            "unit": "user_id",
            "neighbors": "add-remove",
        },
        "charge": {"epsilon": 0.5, "delta": 0, "rho": 0.007},
        "remaining": {"analyst": {"epsilon": 0.4199, "delta": 0}, "dataset": {"epsilon": 2.1, "delta": 0}},
        "free": False,
        "receipt": {"analyst": "ana"},
        "question": "SELECT region, count(*) AS visits FROM visits GROUP BY region",
    }
    return Release(tuple(columns), marks, tuple(map(tuple, rows)), errors, intervals, **(fields | more))


@pytest.fixture
def regions():
    return release(["region", "visits"], [["north", 1234], ["south", 98]], keys=1)


def test_one_number_is_the_value():
    assert release(["n"], [[12]]).value == 12
    assert release(["region", "n"], [["north", 12]], keys=1).value == 12


@pytest.mark.parametrize(
    ("columns", "rows"), [(["n", "m"], [[1, 2]]), (["n"], [[1], [2]]), (["n"], [])], ids=["columns", "rows", "none"]
)
def test_many_numbers_have_no_value(columns, rows):
    with pytest.raises(InputError, match=r"no single value.*`rows`"):
        _ = release(columns, rows).value


def test_json_has_the_agreed_shape(regions):
    out = json.loads(json.dumps(regions.to_dict(), allow_nan=False))
    assert list(out) == [
        *("columns", "keys", "rows", "noise_error", "interval", "total_interval", "clipping", "confidence"),
        *("guarantee", "charge", "remaining", "free", "receipt", "notes", "limits"),
    ]
    assert out["rows"] == [["north", 1234], ["south", 98]]
    assert out["keys"] == [True, False]
    assert out["noise_error"] == [[None, 56], [None, 56]]
    assert out["interval"] == [[None, [1178, 1290]], [None, [42, 154]]]


def test_json_has_no_infinity_and_dates_are_iso():
    odd = release(["day", "x"], [[date(2024, 5, 1), float("inf")], [Decimal("1.5"), None]], keys=1)
    out = odd.to_dict()
    assert out["rows"] == [["2024-05-01", None], [1.5, None]]
    assert out["interval"][0] == [None, [None, None]]


@pytest.mark.parametrize(
    ("value", "error", "expected"),
    [
        (1234, 56.0, ("1,234", "56")),
        (1234, 560.0, ("1,230", "560")),
        (-98765.4, 4321.0, ("-98,800", "4,300")),
        (5, 2.0, ("5", "2")),
        (41.23456, 0.41, ("41.23", "0.41")),
        (41.2, 0.0123, ("41.200", "0.012")),
        (99.97, 9.96, ("100.0", "10.0")),
        (3, 0.0, ("3", "0")),
        (2.5, 0.0, ("2.5", "0")),
        (12_345_678.25, 0.0, ("12,345,678.25", "0")),
        (2.5, float("inf"), ("2.5", "")),
        (2.5, None, ("2.5", "")),
        (None, 50.0, ("unknown", "50")),
        (2**90, 2.0**60, ("1.23794e+27", "1.15292e+18")),
        (1e-20, 1e-21, ("1e-20", "1e-21")),
        ("text", None, ("text", "")),
    ],
)
def test_numbers_have_the_digits_that_their_error_justifies(value, error, expected):
    assert with_error(value, error) == expected


def test_text_is_an_aligned_table_with_guarantee_and_price(regions):
    assert str(regions).splitlines() == [
        "region      visits",
        "──────  ──────────",
        "north   1,234 ± 56",
        "south      98 ± 56",
        f"{PROMISE} · charged ε = 0.5 · left: ana ε ≤ 0.4199, data set ε ≤ 2.1",
    ]
    assert repr(regions) == str(regions)


def test_text_says_what_is_free_pure_selected_and_noted():
    pure = {"kind": "pure", "epsilon": 1, "delta": 0, "unit": "person", "neighbors": "substitute"}
    again = str(release(["n"], [[1]], free=True, guarantee=pure, notes=("Rows were clipped.",), receipt=None))
    assert "(ε = 1)-DP for one person (substitute) · free: asked before · left: you ε" in again
    assert again.endswith("\nRows were clipped.") and "charged" not in again
    assert "charged ε = 0.5, δ = 2.5e-08" in str(release(["n"], [[1]], charge={"epsilon": 0.5, "delta": 2.5e-8}))


def test_text_and_html_stop_after_fifty_rows():
    long = release(["k", "n"], [[k, k] for k in range(2000)], keys=1)
    assert len(str(long).splitlines()) == 2 + 50 + 2 and "\n… 1,950 more\n" in str(long)
    assert long._repr_html_().count("<tr>") == 51 and "… 1,950 more" in long._repr_html_()
    assert len(str(release(["k", "n"], [], keys=1)).splitlines()) == 3


def test_hostile_names_are_text_in_terminals_and_html():
    odd = release(["<b>", "n"], [[key, 5] for key in HOSTILE], keys=1, notes=("<i>",), question="<script>")
    text, page = str(odd), odd._repr_html_()
    assert "\x1b" not in text and "\u202e" not in text and "\\x1b[31mred\\n" in text
    assert len(text.splitlines()) == 2 + len(HOSTILE) + 2
    assert "<script>" not in page and "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<b>" not in page and "<i>" not in page and "\x1b" not in page


def test_arrow_has_the_error_beside_each_value(regions):
    table = regions.to_arrow()
    assert table.column_names == ["region", "visits", "visits_noise_error"]
    assert table.schema.types == [pa.string(), pa.int64(), pa.float64()]
    assert table.to_pylist()[0] == {"region": "north", "visits": 1234, "visits_noise_error": 56.0}


def test_tables_and_charts_have_the_total_range_where_it_is_known(regions):
    totals = tuple((None, (1100.0, 1900.0)) if at == 0 else (None, None) for at in range(len(regions.rows)))
    told = replace(regions, total_interval=totals)
    table = told.to_arrow()
    assert table.column_names == ["region", "visits", "visits_noise_error", "visits_low", "visits_high"]
    assert table.to_pylist()[0] == {
        **regions.to_arrow().to_pylist()[0],
        "visits_low": 1100.0,
        "visits_high": 1900.0,
    }
    assert table["visits_high"].to_pylist()[1:] == [None] * (len(regions.rows) - 1)
    assert told.ends(0, 1) == (1100.0, 1900.0) and told.ends(1, 1) == regions.ends(1, 1)
    drawing = told.plot()
    lines = [segment.tolist() for each in drawing.axes[0].collections for segment in each.get_segments()]
    assert any(sorted(y for _, y in line) == pytest.approx([1100.0, 1900.0]) for line in lines)
    assert "what limits cut off (estimated)" in drawing.get_supxlabel()
    assert "margin for the added noise" in regions.plot().get_supxlabel()


def test_arrow_takes_wide_integers_missing_values_and_taken_names():
    odd = release(["n", "n_noise_error"], [[2**80, None], [None, None]])
    table = odd.to_arrow()
    assert table.column_names == ["n", "n_noise_error_", "n_noise_error", "n_noise_error_noise_error"]
    assert set(table.schema.types) == {pa.float64()}
    assert table["n"].to_pylist() == [2.0**80, None]
    keys = release(["k", "n"], [[2**80, 1], ["x", 2]], keys=1).to_arrow()
    assert keys["k"].to_pylist() == [str(2**80), "x"]
    assert release(["k", "n"], [], keys=1).to_arrow().num_rows == 0


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_frames_have_the_columns_of_arrow(regions, module):
    pytest.importorskip(module)
    frame = getattr(regions, f"to_{module}")()
    assert type(frame).__module__.startswith(module)
    assert list(frame.columns) == ["region", "visits", "visits_noise_error"]
    assert list(frame["visits"]) == [1234, 98]


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_a_missing_frame_library_is_answered_with_the_pip_line(regions, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SourceUnavailableError, match=f"pip install '{module}'"):
        getattr(regions, f"to_{module}")()


def test_a_missing_matplotlib_is_answered_with_the_extra(regions, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ExtraMissingError, match=r"dalenius\[plot\]"):
        regions.plot()


MONTHS = [date(2024, month, 1) for month in range(1, 13)]
CHARTS = {
    "no key": (["n"], [[5]], 0),
    "no key, three scales": (["n", "mean", "total"], [[5000, 4.5, 9e6]], 0),
    "four groups": (["region", "n"], [[k, 5] for k in "abcd"], 1),
    "twenty groups, one unknown": (["region", "n"], [["none", None], *([f"k{k}", k] for k in range(20))], 1),
    "two columns": (["region", "n", "m"], [[k, 5, 0.5] for k in "abcd"], 1),
    "nine columns": (["region", *"abcdefghi"], [[k, *range(9)] for k in "abcd"], 1),
    "months and NULL": (["month", "n"], [[month, 5] for month in [*MONTHS, None]], 1),
    "numbers": (["age", "n"], [[age, 5] for age in range(100)], 1),
    "booleans": (["smoker", "n"], [[True, 5], [False, 6], [None, 7]], 1),
    "two keys": (["region", "sex", "n"], [[k, sex, 5] for k in "abcd" for sex in "fm"], 2),
    "two large keys": (["a", "b", "n"], [[f"a{a}", f"b{b}", 5] for a in range(20) for b in range(15)], 2),
    "months by sex": (["month", "sex", "n"], [[month, sex, 5] for month in MONTHS for sex in "fm"], 2),
    "three keys": (["a", "b", "c", "n"], [["a", "b", c, 5] for c in range(60)], 3),
    "hostile": (["$a$", "$\\frac{"], [[key, 5] for key in HOSTILE], 1),
    "hostile twice": (["$a$", "b", "$\\frac{"], [[key, each, 5] for key in HOSTILE for each in HOSTILE], 2),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_shape_of_release_has_a_chart(name, tmp_path):
    pytest.importorskip("matplotlib")
    columns, rows, keys = CHARTS[name]
    target = tmp_path / "chart.png"
    drawing = release(columns, rows, keys=keys).plot(target)
    assert target.read_bytes().startswith(PNG)
    assert len(drawing.axes) >= 1
    assert "(ε = 0.5, δ = 1e-06)-DP" in drawing.get_supxlabel()


def texts(drawing):
    """What is really shown: matplotlib's own reading of each text."""
    from matplotlib.text import Text

    return {text._preprocess_math(text.get_text()) for text in drawing.findobj(Text) if text.get_text()}


def test_hostile_names_are_text_in_charts(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("hostile", "hostile twice"):
        columns, rows, keys = CHARTS[name]
        file = tmp_path / "chart.svg"
        drawing = release(columns, rows, keys=keys, question="$\\frac{ </svg><script>").plot(str(file))
        seen = texts(drawing)
        assert not any(math for _, math in seen)
        shown = {text for text, _ in seen}
        assert {"$\\frac{", "$a$", "_x", "<script>alert(1)</script>", "\\x1b[31mred\\n"} <= shown
        assert "<script>" not in file.read_text("utf-8")


def test_charts_say_what_they_leave_out():
    pytest.importorskip("matplotlib")
    for name, words in {
        "three keys": "20 more groups",
        "two large keys": "7 more colours, 8 more groups",
        "months and NULL": "the group NULL",
        "nine columns": "3 more columns",
    }.items():
        columns, rows, keys = CHARTS[name]
        assert words in release(columns, rows, keys=keys).plot().get_supxlabel()


def test_error_bars_reach_to_the_ends_of_the_interval():
    pytest.importorskip("matplotlib")
    one = release(["region", "mean"], [["a", 5.0], ["b", 6.0]], keys=1, error=2.0)
    lopsided = Release(**(vars(one) | {"interval": ((None, (4.5, 9.0)), (None, None))}))
    lines = [segment.tolist() for each in lopsided.plot().axes[0].collections for segment in each.get_segments()]
    assert lines == [[[0, 4.5], [0, 9]], [[1, 4], [1, 8]]]


def test_charts_share_no_state():
    pytest.importorskip("matplotlib")
    from matplotlib import _pylab_helpers

    release(["n"], [[5]]).plot()
    assert not _pylab_helpers.Gcf.figs


def test_files_that_cannot_be_drawn_are_refused(regions, tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(InputError, match=r"\.png or \.svg"):
        regions.plot(tmp_path / "chart.gif")
    with pytest.raises(SourceUnavailableError, match="does not exist"):
        regions.plot(tmp_path / "no" / "chart.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(SourceUnavailableError, match="is a folder"):
        regions.plot(tmp_path / "folder.png")
    with pytest.raises(InputError, match="nothing to draw"):
        release(["n"], [[None]]).plot()

"""`dalenius collect`, as collectors meet it: from values to reports to estimates, and where something is wrong."""

from __future__ import annotations

import csv
import itertools
import json

import pytest

from dalenius.app.cli import build, run

DOMAIN = "yes\nno\n[red]\n"


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DALENIUS_HOME", raising=False)

    def calling(*words):
        code = run(build(), ["collect", *map(str, words)])
        captured = capsys.readouterr()
        return code, " ".join(captured.out.split()), " ".join(captured.err.split())

    return calling


@pytest.fixture
def survey(tmp_path):
    """3,000 answers, of which two thirds are yes."""
    (tmp_path / "d.txt").write_text(DOMAIN)
    (tmp_path / "v.txt").write_text("yes\nno\nyes\n" * 1000)
    return tmp_path


def encoded(call, name="r.dlnr", *more, values="v.txt", randomiser="k-ary", epsilon=4):
    words = ("encode", values, "--randomiser", randomiser, "--epsilon", epsilon, "-o", name)
    return call(*words, *(more or ("--domain", "d.txt")))


def test_from_values_to_estimates(call, survey):
    code, out, _ = encoded(call, "r.dlnr", "--domain", "d.txt", "--json")
    about = json.loads(out)
    assert code == 0 and about["reports"] == 3000 and about["report_bytes"] == 1 and about["size"] == 3
    assert about["epsilon"] <= 4.0 == about["asked_epsilon"]
    code, out, _ = call("estimate", "r.dlnr", "--domain", "d.txt", "--json")
    found = json.loads(out)
    assert code == 0 and found["epsilon"] == about["epsilon"] and found["domain"] == about["domain"]
    yes, no, red = found["estimates"]
    assert [yes["value"], no["value"], red["value"]] == ["yes", "no", "[red]"]
    for each, truth in ((yes, 2 / 3), (no, 1 / 3), (red, 0)):
        half = each["band_high"] - each["share"]
        assert abs(each["share"] - truth) < 3 * half  # beyond 7 standard errors: false alarm below 1e-11
        assert each["band_low"] < each["low"] < each["share"] < each["high"] < each["band_high"]
    code, out, _ = call("estimate", "r.dlnr", "--domain", "d.txt")
    assert code == 0 and "[red]" in out and "3,000 reports" in out and "reports twice spends twice" in out
    assert not [each for each in survey.iterdir() if each.name.startswith(".")]


def test_several_files_are_added_up(call, survey):
    for name in ("a.dlnr", "b.dlnr"):
        assert encoded(call, name)[0] == 0
    code, out, _ = call("estimate", "a.dlnr", "b.dlnr", "--domain", "d.txt", "--json")
    both = json.loads(out)
    assert code == 0 and both["reports"] == 6000 and both["files"] == 2
    one, other = (json.loads(call("estimate", x, "--domain", "d.txt", "--json")[1]) for x in ("a.dlnr", "b.dlnr"))
    for each, first, second in zip(both["estimates"], one["estimates"], other["estimates"], strict=True):
        assert each["count"] == pytest.approx(first["count"] + second["count"])


def test_tidy_shares_are_shares(call, survey):
    encoded(call, epsilon=0.2)
    code, out, _ = call("estimate", "r.dlnr", "--domain", "d.txt", "--tidy", "--json", "-o", "o.csv")
    found = json.loads(out)["estimates"]
    assert code == 0 and sum(each["share"] for each in found) == pytest.approx(1)
    assert all(each["share"] >= 0 for each in found)
    rows = list(csv.DictReader((survey / "o.csv").read_text().splitlines()))
    assert [row["value"] for row in rows] == ["yes", "no", "[red]"]
    assert [float(row["share"]) for row in rows] == [each["share"] for each in found]


def test_the_top_and_a_picture(call, survey):
    encoded(call)
    code, out, _ = call("estimate", "r.dlnr", "--domain", "d.txt", "--top", 1, "--plot", "p.svg", "--json")
    assert code == 0 and [each["value"] for each in json.loads(out)["estimates"]] == ["yes"]
    assert (survey / "p.svg").read_text().count("<svg") == 1


def test_a_picture_says_what_its_lines_are_and_what_it_leaves_out(tmp_path):
    import matplotlib.figure

    from dalenius.app.views.collections import draw_estimates

    saved = []
    row = {"share": 0.1, "low": 0, "high": 0.2, "band_low": -0.1, "band_high": 0.3}
    data = {"randomiser": "k-ary", "epsilon": 1.0, "confidence": 0.9, "tested": 300, "reports": 5}
    data["estimates"] = [{"value": f"value {each}", **row} for each in range(300)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib.figure.Figure, "savefig", lambda figure, *_, **__: saved.append(figure))
        draw_estimates(tmp_path / "p.png", data)
    (figure,) = saved
    (axes,) = figure.axes
    assert "260 more are not drawn" in axes.get_title(loc="left")
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    assert named == {"90% for each value alone", "band: 90% for all 300 values at once"}
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in axes.get_yticklabels()), key=lambda box: box.y0)
    assert len(boxes) == 40 and all(low.y1 <= high.y0 for low, high in itertools.pairwise(boxes))


def test_a_column_of_a_csv_file_with_a_mark_and_crlf(call, survey):
    (survey / "v.csv").write_bytes(b"\xef\xbb\xbfid,answer\r\n1,yes\r\n2,no")
    code, out, _ = encoded(call, "r.dlnr", "--domain", "d.txt", "--column", "answer", "--json", values="v.csv")
    assert code == 0 and json.loads(out)["reports"] == 2
    code, _, err = encoded(call, "s.dlnr", "--domain", "d.txt", "--column", "answr", values="v.csv")
    assert code == 2 and "no column 'answr'" in err


def test_numbers_become_a_mean(call, survey):
    (survey / "n.txt").write_text("".join(f"{each % 101}\n" for each in range(10100)))
    for randomiser in ("duchi", "piecewise", "hybrid"):
        name = f"{randomiser}.dlnr"
        grid = ("--set", "low=0", "--set", "high=100", "--set", "step=1")
        assert encoded(call, name, *grid, values="n.txt", randomiser=randomiser)[0] == 0
        code, out, _ = call("estimate", name, "--json")
        found = json.loads(out)["mean"]
        assert code == 0 and abs(found["value"] - 50) < 4 * found["margin"]
    assert "mean" in call("estimate", "duchi.dlnr")[1]
    code, _, err = call("estimate", "duchi.dlnr", "-o", "m.json", "--plot", "m.png")
    assert code == 2 and "no chart" in err and not (survey / "m.json").exists()
    code, _, err = call("estimate", "duchi.dlnr", "--domain", "d.txt")
    assert code == 2 and "duchi.dlnr: Reports of duchi have no domain" in err
    code, _, err = encoded(call, "x.dlnr", "--set", "low=0", values="n.txt", randomiser="duchi")
    assert code == 2 and "needs high, step" in err


def test_texts_are_looked_for_among_candidates(call, survey):
    encoded(call, "r.dlnr", "--set", "cohorts=8", randomiser="rappor")
    code, out, _ = call("estimate", "r.dlnr", "--candidates", "d.txt", "--confidence", 0.9999999, "--json")
    found = json.loads(out)
    assert code == 0 and [each["value"] for each in found["estimates"]] == ["yes", "no"] and found["tested"] == 3
    assert found["daily_epsilon"] == found["epsilon"]
    assert "a single report alone" not in call("estimate", "r.dlnr", "--candidates", "d.txt")[1]
    encoded(call, "s.dlnr", "--set", "p=0.5", "--set", "q=0.75", randomiser="rappor")
    assert "a single report alone has ε = " in call("estimate", "s.dlnr", "--candidates", "d.txt")[1]
    code, _, err = call("estimate", "r.dlnr")
    assert code == 2 and "which texts to look for" in " ".join(err.split())


def test_bits_become_shares(call, survey):
    (survey / "b.txt").write_text("101\n" * 2000)
    encoded(call, "r.dlnr", "--set", "size=3", values="b.txt", randomiser="bit-vector")
    code, out, _ = call("estimate", "r.dlnr", "--json")
    found = json.loads(out)["estimates"]
    assert code == 0 and all(abs(each["share"] - truth) < 0.3 for each, truth in zip(found, (1, 0, 1), strict=True))


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        ("yes\nsecretword\n", "Line 2 holds"),
        ("yes\n no\n", "blanks"),
        ("yes\n\nno\n", "empty"),
        ("yes\nNO\n", "capital"),
    ],
)
def test_a_foreign_value_is_refused_by_its_line_and_not_shown(call, survey, data, hint):
    (survey / "v.txt").write_text(data)
    code, out, err = encoded(call)
    assert code == 2 and hint in err and "Line 2" in err and "secretword" not in out + err
    assert not (survey / "r.dlnr").exists()


def test_blanks_in_the_domain_are_told_as_such(call, survey):
    (survey / "d.txt").write_text("no\nyes \n")
    (survey / "v.txt").write_text("no\nyes\n")
    code, _, err = encoded(call)
    assert code == 2 and "Line 2" in err and "that of the domain has blanks" in " ".join(err.split())


@pytest.mark.parametrize("epsilon", [0, -1, "nan", 1e-12, 60])
@pytest.mark.parametrize("randomiser", ["k-ary", "optimised-unary", "hadamard"])
def test_an_epsilon_that_is_no_use_is_refused(call, survey, epsilon, randomiser):
    code, _, err = encoded(call, epsilon=epsilon, randomiser=randomiser)
    assert code == 2 and "what to do" in err and not (survey / "r.dlnr").exists()


def test_unknown_names_are_refused(call, survey):
    assert "Did you mean k-ary" in encoded(call, randomiser="kary")[2]
    assert "needs a domain" in encoded(call, "r.dlnr", "--set", "a=1")[2]
    assert "no setting 'a'" in encoded(call, "r.dlnr", "--domain", "d.txt", "--set", "a=1")[2]
    assert (
        "must be a number"
        in encoded(call, "r.dlnr", "--domain", "d.txt", "--set", "buckets=x", randomiser="local-hashing")[2]
    )
    assert "has no domain" in encoded(call, randomiser="rappor")[2]


def test_files_of_another_domain_or_randomiser_do_not_mix(call, survey):
    (survey / "e.txt").write_text("no\nyes\n[red]\n")
    encoded(call, "a.dlnr")
    encoded(call, "b.dlnr", "--domain", "e.txt")
    encoded(call, "c.dlnr", epsilon=2)
    code, _, err = call("estimate", "a.dlnr", "--domain", "e.txt")
    assert code == 2 and "report.invalid" in err and "another domain" in err
    code, _, err = call("estimate", "a.dlnr", "b.dlnr", "--domain", "d.txt")
    assert code == 2 and "b.dlnr" in err and "another domain" in err
    code, _, err = call("estimate", "a.dlnr", "c.dlnr", "--domain", "d.txt")
    assert code == 2 and "made differently" in err and "epsilon 4.0 and 2.0" in err


def test_the_same_reports_do_not_count_twice(call, survey):
    encoded(call, "a.dlnr")
    (survey / "copy.dlnr").write_bytes((survey / "a.dlnr").read_bytes())
    for other in ("a.dlnr", "copy.dlnr"):
        code, _, err = call("estimate", "a.dlnr", other, "--domain", "d.txt")
        assert code == 2 and "same reports" in err


@pytest.mark.parametrize(
    "change", [lambda data: data[:-1], lambda data: data + b"\0", lambda data: b"", lambda data: data[:-1] + b"\7"]
)
def test_a_damaged_file_is_refused_with_its_place(call, survey, change):
    encoded(call)
    path = survey / "r.dlnr"
    path.write_bytes(change(path.read_bytes()))
    code, out, _ = call("estimate", "r.dlnr", "--domain", "d.txt", "--json", "-o", "o.json")
    error = json.loads(out)["error"]
    assert (
        code == 2 and error["code"] == "report.invalid" and "r.dlnr" in error["message"] and "byte" in error["message"]
    )
    assert not (survey / "o.json").exists()


def test_nothing_is_overwritten_unasked(call, survey):
    encoded(call)
    before = (survey / "r.dlnr").read_bytes()
    assert encoded(call)[0] == 2 and (survey / "r.dlnr").read_bytes() == before
    assert encoded(call, "r.dlnr", "--domain", "d.txt", "--yes")[0] == 0
    for output in ("v.txt", "d.txt"):
        code, _, err = encoded(call, output, "--domain", "d.txt", "--yes")
        assert code == 2 and "is read, too" in err
    assert (survey / "d.txt").read_text() == DOMAIN


def test_an_interrupted_encoding_leaves_nothing(call, survey, monkeypatch):
    from dalenius.local.randomisers.k_ary import KAry

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(KAry, "_encode", interrupted)
    assert encoded(call)[0] == 130
    assert sorted(each.name for each in survey.iterdir()) == ["d.txt", "v.txt"]


def test_a_plan(call, survey):
    code, out, _ = call("plan", "--n", 100000, "--domain", 64, "--epsilon", 1, "--json")
    found = json.loads(out)
    assert code == 0 and found["best"] == found["choices"][0]["randomiser"] and found["central"]["ratio"] > 100
    assert {"randomiser", "settings", "epsilon", "error", "error_rare", "margin", "report_bytes"} == set(
        found["choices"][0]
    )
    code, out, _ = call("plan", "--n", 100000, "--domain", "d.txt", "--epsilon", 1, "--plot", "p.png")
    assert code == 0 and "k-ary" in out and "central model" in out and (survey / "p.png").stat().st_size > 10_000
    assert call("plan", "--n", 0, "--domain", 64, "--epsilon", 1)[0] == 2
    assert "protects nobody" in call("plan", "--n", 10, "--domain", 64, "--epsilon", 50)[2]


def test_a_protected_table_is_not_collected_from(call, survey):
    from dalenius.curator import Curator

    (survey / "people.csv").write_text("id,answer\n" + "".join(f"{each},yes\n" for each in range(50)))
    (survey / "people.toml").write_text(
        '[table]\nname = "people"\nsource = "people.csv"\nunit = "id"\n[budget]\nepsilon = 1.0\ndelta = 1e-6\n'
        '[columns.answer]\ntype = "category"\nkeys = ["yes", "no"]\n[contribution]\nrows = 1\n'
    )
    (survey / ".dalenius").mkdir(mode=0o700)
    Curator(survey / ".dalenius").protect(survey / "people.toml")
    code, _, err = encoded(call, "r.dlnr", "--domain", "d.txt", "--column", "answer", values="people.csv")
    assert code == 3 and "protected" in err and not (survey / "r.dlnr").exists()


def test_a_memory_repeats_answers_and_tells_both_epsilons(call, survey):
    words = ("--domain", "d.txt", "--memory", "kept.dlnm")
    first = encoded(call, "a.dlnr", *words, "--keep", 2, epsilon=1)
    assert first[0] == 0 and "day 1: ε = 1 a day; ε = 2 in a lifetime" in first[1] and "secret" in first[1]
    code, out, _ = encoded(call, "b.dlnr", *words, "--json", epsilon=1)
    told = json.loads(out)["memory"]
    assert code == 0 and (told["days"], told["values"]) == (2, 2)
    assert told["without_memory"] == 2 * told["daily_epsilon"] == pytest.approx(told["lifetime_epsilon"])
    assert (survey / "a.dlnr").read_bytes() == (survey / "b.dlnr").read_bytes()
    before = (survey / "kept.dlnm").read_bytes()
    for bad in ((*words[:2], "--keep", 2), (*words[:3], "v.txt"), (*words[:3], "c.dlnr")):
        code, _, err = encoded(call, "c.dlnr", *bad, epsilon=1)
        assert code == 2 and not (survey / "c.dlnr").exists(), err
    assert encoded(call, "c.dlnr", *words, epsilon=2)[0] == 2
    assert (survey / "kept.dlnm").read_bytes() == before


def test_rappor_never_hides_what_a_lifetime_costs(call, survey):
    words = ("--set", "p=0.5", "--set", "q=0.75")
    code, out, _ = encoded(call, "r.dlnr", *words, randomiser="rappor", epsilon=2.1)
    assert code == 0 and "each ε = 0.517052637" in out and "ε = 2.1 for all reports of one permanent answer" in out
    code, out, _ = encoded(call, "m.dlnr", *words, "--memory", "kept", randomiser="rappor", epsilon=2.1)
    assert code == 0 and "ε = 0.5171 a day; ε = 2.1 in a lifetime" in out

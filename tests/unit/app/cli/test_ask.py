"""`dalenius ask`, as an analyst meets it: every option, every refusal, and nothing charged for what failed."""

import csv
import io
import json
import sys
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from dalenius import Release
from dalenius.errors import SourceUnavailableError

COUNT = "SELECT COUNT(*) AS n FROM visits"
BY_REGION = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
ASK = ("ask", COUNT, "--analyst", "ana")


def test_an_answer_has_value_error_guarantee_charge_and_what_is_left(shop):
    code, found = shop.json(*ASK, "--epsilon", 0.5)
    assert code == 0 and found["question"] == COUNT and found["columns"] == ["n"] and found["keys"] == [False]
    assert abs(found["rows"][0][0] - 1000) <= 4 * found["noise_error"][0][0]  # 7.8 σ: once in 10¹⁴ runs
    assert found["guarantee"] == {
        "kind": "approx", "epsilon": 0.5, "delta": 1e-6, "unit": "user_id", "neighbors": "add-remove",
    }  # fmt: skip
    assert found["charge"]["epsilon"] == 0.5 and found["charge"]["rho"] > 0 and not found["free"]
    assert 0 < found["remaining"]["analyst"]["epsilon"] < 1 < found["remaining"]["dataset"]["epsilon"] < 3
    assert found["receipt"]["analyst"] == "ana" and found["interval"][0][0] is not None
    (shop.folder / "receipt.json").write_text(json.dumps(found["receipt"]))
    assert shop.json("ledger", "receipt", "receipt.json")[1]["genuine"]


def test_the_question_may_say_its_price_as_bigquery_writes_it(shop):
    asked = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={}, privacy_unit_column=user_id) COUNT(*) AS n FROM visits"
    )
    code, found = shop.json("ask", asked.format(0.5), "--analyst", "ana")
    assert code == 0 and found["charge"]["epsilon"] == 0.5 and not found["free"]
    assert shop.json(*ASK, "--epsilon", 0.5)[1]["free"]
    assert shop.json("ask", asked.format(0.5), "--analyst", "ana", "--epsilon", 0.5)[1]["free"]
    assert shop.json("preview", asked.format(0.1), "--analyst", "ana")[1]["choices"][0]["epsilon"] == 0.1
    error = shop.refused("input.invalid", 2, "ask", asked.format(0.5), "--analyst", "ana", "--epsilon", 0.4)
    assert error["at"] == {"line": 1, "column": 42} and "two values" in error["message"]
    error = shop.refused("input.invalid", 2, "ask", asked.format(0.5), "--analyst", "ana", "--error", 20)
    assert "more than the ε = 0.5 that you would pay" in error["message"]
    error = shop.refused("sql.refused", 3, "ask", asked.format("1, k_threshold=2"), "--analyst", "ana")
    assert "k_threshold" in error["message"]
    shop.refused("budget.exhausted", 4, "ask", asked.format("1e20"), "--analyst", "ana")


def test_people_see_value_and_error_and_one_line_of_summary(shop):
    code, out, err = shop.call("ask", BY_REGION, "--analyst", "ana", "--epsilon", 0.5)
    assert code == 0 and err == ""
    words = " ".join(out.split())
    assert "region n north" in words and "[red]" in words and words.count(" ± ") == 3
    assert "(ε = 0.5, δ = 1e-06)-DP for one user_id (add-remove)" in words
    assert "charged ε = 0.5" in words and "left: ana ε ≤ 0." in words
    assert "█" not in out  # charts are for terminals


def test_a_terminal_gets_a_bar_beside_each_group(shop, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    assert "█" in shop.call("ask", BY_REGION, "--analyst", "ana", "--epsilon", 0.5)[1]
    two = BY_REGION.replace("COUNT(*) AS n", "COUNT(*) AS n, SUM(age)")
    assert "█" not in shop.call("ask", two, "--analyst", "ana", "--epsilon", 0.3)[1]


def test_the_same_in_other_words_is_free(shop):
    _, first = shop.json("ask", BY_REGION, "--analyst", "ana", "--epsilon", 0.3)
    before = shop.spent()
    again = "select v.Region, count(*) from Visits v group by 1 order by 2 desc limit 1"
    code, found = shop.json("ask", again, "--analyst", "ana", "--epsilon", 0.2)
    assert code == 0 and found["free"] and found["charge"]["epsilon"] == 0
    assert found["rows"][0] in first["rows"] and shop.spent() == before
    said = " ".join(shop.call("ask", again, "--analyst", "ana", "--epsilon", 0.2)[1].split())
    assert "free: follows from an earlier answer" in said and "asked before" not in said
    said = " ".join(shop.call("ask", BY_REGION, "--analyst", "ana", "--epsilon", 0.2)[1].split())
    assert "free: asked before" in said


def test_an_extreme_that_nobody_asked_for_before_is_not_called_asked_before(shop):
    shop.json("ask", "SELECT MEDIAN(age) FROM visits", "--analyst", "ana", "--epsilon", 0.3)
    code, out, _ = shop.call("ask", "SELECT MAX(age) FROM visits", "--analyst", "ana", "--epsilon", 0.3)
    assert code == 0 and "free: follows from an earlier answer" in " ".join(out.split())


def test_the_only_analyst_need_not_be_named(shop):
    code, _, err = shop.call("ask", COUNT, "--epsilon", 0.1)
    assert code == 0 and "Asking as ana" in err
    assert shop.call("ask", COUNT, "--epsilon", 0.1, "--quiet")[2] == ""
    text = (shop.folder / "visits.toml").read_text()
    (shop.folder / "visits.toml").write_text(text + "[analysts.bob]\nepsilon = 0.5\n")
    assert shop.call("protect", "visits.toml", "--yes")[0] == 0
    error = shop.refused("input.invalid", 2, "ask", COUNT, "--epsilon", 0.1)
    assert "--analyst" in error["fix"]
    assert shop.json("ask", COUNT, "--analyst", "bob", "--epsilon", 0.1)[0] == 0


def test_without_any_analyst_the_owner_is_told(empty_shop):
    empty_shop.lay(policy=empty_shop.policy.replace("[analysts.ana]\nepsilon = 1.0\n", ""))
    error = empty_shop.refused("input.invalid", 2, "ask", COUNT, "--epsilon", 0.1)
    assert "[analysts.NAME]" in error["fix"]


def test_a_stranger_is_refused(standing_shop):
    standing_shop.refused("policy.not-allowed", 3, "ask", COUNT, "--analyst", "eve", "--epsilon", 0.1)


def test_no_price_shows_three_and_charges_nothing(standing_shop):
    before = standing_shop.spent()
    code, found = standing_shop.json(*ASK)
    assert code == 2 and set(found) == {"error", "preview"} and found["error"]["code"] == "input.invalid"
    assert [each["epsilon"] for each in found["preview"]["choices"]] == [0.05, 0.2, 0.5]
    errors = [each["noise_error"][0] for each in found["preview"]["choices"]]
    assert errors[0] > errors[1] > errors[2] > 0
    assert all(f"ε = {each}" in found["error"]["why"] for each in ("0.05", "0.2", "0.5"))
    code, out, err = standing_shop.call(*ASK)
    assert code == 2 and out.count("±") == 3 and "--epsilon" in err and "No budget was spent." in err
    assert standing_shop.spent() == before


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e-320", "x"])
def test_a_price_that_is_none_is_refused(standing_shop, epsilon):
    standing_shop.refused("input.invalid", 2, *ASK, f"--epsilon={epsilon}")


@pytest.mark.parametrize("option", ["--delta=2", "--delta=-1", "--delta=nan", "--confidence=1", "--confidence=nan",
                                    "--rows=0", "--rows=-3", "--groups=0", "--rows=x"])  # fmt: skip
def test_options_out_of_range_are_refused(standing_shop, option):
    standing_shop.refused("input.invalid", 2, *ASK, "--epsilon", 0.1, option)


@pytest.mark.parametrize(
    "total",
    [
        "amount",
        "=5",
        "amount=",
        "amount=x",
        "amount=1/3",
        "amount=1e9",
        "amount=-5",
        "amount=0",
        "amuont=5",
        "region=5",
    ],
)
def test_totals_that_cannot_be_read_are_refused(standing_shop, total):
    standing_shop.refused(
        "input.invalid", 2, "ask", "SELECT SUM(amount) FROM visits", "--epsilon", 0.1, f"--total={total}"
    )


def test_a_total_stands_once(standing_shop):
    twice = ("--total", "amount=5", "--total", "amount=6")
    assert "twice" in standing_shop.refused("input.invalid", 2, *ASK, "--epsilon", 0.1, *twice)["message"]


def test_a_wider_confidence_is_the_same_answer_for_nothing(shop):
    _, narrow = shop.json(*ASK, "--epsilon", 0.3)
    _, wide = shop.json(*ASK, "--epsilon", 0.3, "--confidence", 0.999)
    assert wide["free"] and wide["rows"] == narrow["rows"] and wide["confidence"] == 0.999
    assert wide["noise_error"][0][0] > 1.5 * narrow["noise_error"][0][0]


def test_limits_only_tighten(shop):
    _, plain = shop.json(*ASK, "--epsilon", 0.1)
    _, tighter = shop.json(*ASK, "--epsilon", 0.1, "--rows", 1)
    assert not tighter["free"] and tighter["noise_error"][0][0] < plain["noise_error"][0][0] / 4
    code, looser = shop.json(*ASK, "--epsilon", 0.1, "--rows", 500, "--groups", 99, "--total", "amount=99999.5")
    assert code == 0 and looser["free"] and looser["rows"] == plain["rows"]
    total = "SELECT SUM(amount) FROM visits"
    _, plain = shop.json("ask", total, "--epsilon", 0.1)
    _, tighter = shop.json("ask", total, "--epsilon", 0.1, "--total", "amount=10.5")
    assert tighter["noise_error"][0][0] == pytest.approx(plain["noise_error"][0][0] * 10.5 / 1000, rel=0.01)
    people = "SELECT region, COUNT(DISTINCT user_id) FROM visits GROUP BY region"
    errors = [
        shop.json("preview", people, "--epsilon", 0.1, "--groups", n)[1]["choices"][0]["noise_error"][1]
        for n in (1, 2, 99)
    ]
    assert errors[0] < errors[1] == errors[2]


def test_a_question_may_come_from_stdin_or_a_file(shop, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(COUNT.encode())))
    code, first = shop.json("ask", "-", "--epsilon", 0.1)
    assert code == 0 and first["question"] == COUNT
    (shop.folder / "count.sql").write_text("\ufeff-- how many?\n" + COUNT + ";\n")
    code, second = shop.json("ask", "@count.sql", "--epsilon", 0.1)
    assert code == 0 and second["free"] and second["rows"] == first["rows"]
    monkeypatch.setattr(sys, "stdin", None)
    shop.refused("sql.syntax", 2, "ask", "-", "--epsilon", 0.1)
    shop.refused("source.unavailable", 5, "ask", "@nowhere.sql", "--epsilon", 0.1)
    shop.refused("source.unavailable", 5, "ask", "@.", "--epsilon", 0.1)
    (shop.folder / "binary.sql").write_bytes(b"\xff\xfe\x00")
    shop.refused("input.invalid", 2, "ask", "@binary.sql", "--epsilon", 0.1)


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "CSV"])
def test_an_answer_is_written_as_its_ending_says(shop, ending):
    target = shop.folder / f"out.{ending}"
    target.write_text("old")
    code, out, err = shop.call("ask", BY_REGION, "--analyst", "ana", "--epsilon", 0.5, "-o", target)
    assert code == 0 and "Wrote" in err and "±" in out
    if ending == "json":
        found = json.loads(target.read_text())
        assert found["question"] == BY_REGION and found["charge"]["epsilon"] == 0.5
        keys = [row[0] for row in found["rows"]]
    elif ending == "parquet":
        table = pq.read_table(target)
        assert table.column_names == ["region", "n", "n_noise_error"]
        assert json.loads(table.schema.metadata[b"dalenius"])["guarantee"]["epsilon"] == 0.5
        keys = table["region"].to_pylist()
    else:
        rows = list(csv.DictReader(io.StringIO(target.read_text())))
        assert set(rows[0]) == {"region", "n", "n_noise_error"} and int(rows[0]["n"]) is not None
        keys = [row["region"] for row in rows]
    assert keys == ["north", "south", "[red]"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_an_answer_is_drawn_as_its_ending_says(shop, ending):
    target = shop.folder / f"out.{ending}"
    code, _, err = shop.call("ask", BY_REGION, "--analyst", "ana", "--epsilon", 0.5, "--plot", target)
    assert code == 0 and "Drew" in err
    assert target.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


@pytest.mark.parametrize(
    ("option", "target", "code", "exit_code"),
    [
        ("-o", "out.xlsx", "input.invalid", 2),
        ("-o", "out", "input.invalid", 2),
        ("-o", "nowhere/out.csv", "source.unavailable", 5),
        ("-o", "folder.csv", "source.unavailable", 5),
        ("-o", "loop.csv", "source.unavailable", 5),
        ("--plot", "out.pdf", "input.invalid", 2),
        ("--plot", "nowhere/out.png", "source.unavailable", 5),
    ],
)
def test_a_file_that_cannot_be_written_is_found_before_anything_is_charged(shop, option, target, code, exit_code):
    (shop.folder / "folder.csv").mkdir()
    (shop.folder / "loop.csv").symlink_to("loop.csv")
    shop.refused(code, exit_code, *ASK, "--epsilon", 0.1, option, target)


def test_a_missing_extra_is_found_before_anything_is_charged(standing_shop, monkeypatch):
    monkeypatch.setattr("dalenius._extras.find_spec", lambda _: None)
    error = standing_shop.refused("source.unavailable", 5, *ASK, "--epsilon", 0.1, "--plot", "out.png")
    assert "pip install 'dalenius[plot]'" in error["fix"]


def test_a_disk_that_fills_up_afterwards_tells_what_it_cost_and_that_the_answer_is_kept(shop, monkeypatch):
    def full(*_):
        raise SourceUnavailableError("out.csv cannot be written.", why="No space left.", fix="Free space.")

    with monkeypatch.context() as patch:
        patch.setattr(Release, "write", full)
        code, found = shop.json(*ASK, "--epsilon", 0.1, "-o", "out.csv")
    assert code == 5 and found["error"]["charge"]["epsilon"] == 0.1 and "free" in found["error"]["fix"]
    assert shop.json(*ASK, "--epsilon", 0.1, "-o", "out.csv")[1]["free"]


def test_a_budget_that_is_gone_refuses_with_what_would_fit(shop):
    assert shop.json(*ASK, "--epsilon", 0.9)[0] == 0
    other = "SELECT SUM(age) FROM visits"
    error = shop.refused("budget.exhausted", 4, "ask", other, "--epsilon", 0.9)
    fits = error["fits"]["epsilon"]
    assert 0 < fits < 0.9 and shop.json("ask", other, "--epsilon", fits)[0] == 0
    code, out, _ = shop.call("budget", "--analyst", "ana")
    assert code == 0 and "visits, ana" in out


# --- what cannot be asked


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT COUNT(* FROM visits", 1, 16),
        ("SELECT COUNT(*)\nFROM visits\nWHERE age > ) 3", 3, 13),
        ("SELECT COUNT(*) FROM visits WHERE region = 'north", 1, 44),
        ("SELECT COUNT(*) FORM visits", 1, 22),
        ("SELECT COUNT(*) AS n\n  FROM visits GROUP region", 2, 21),
    ],
)
def test_syntax_errors_point_at_line_and_column(standing_shop, sql, line, column):
    error = standing_shop.refused("sql.syntax", 2, "ask", sql, "--epsilon", 0.1)
    assert error["at"] == {"line": line, "column": column}
    assert f"line {line}, column {column}" in standing_shop.call("ask", sql, "--epsilon", 0.1)[2]


@pytest.mark.parametrize(
    ("sql", "code", "near", "column"),
    [
        ("SELECT COUNT(*) FROM vists", "policy.unknown-table", "visits", 22),
        ("SELECT COUNT(*) FROM visits WHERE amuont > 3", "policy.unknown-column", "amount", 35),
        ("SELECT regoin, COUNT(*) FROM visits GROUP BY regoin", "policy.unknown-column", "region", None),
        ("SELECT AVG(agee) FROM visits", "policy.unknown-column", "age", 12),
    ],
)
def test_unknown_names_list_near_ones(standing_shop, sql, code, near, column):
    error = standing_shop.refused(code, 3, "ask", sql, "--epsilon", 0.1)
    assert near in error["fix"] + error["why"]
    if column:
        assert error["at"] == {"line": 1, "column": column}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visits",
        "SELECT age FROM visits",
        "SELECT FIRST(amount) FROM visits",
        "SELECT SUM(region) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE region > 3",
        "SELECT COUNT(*) FROM visits WHERE age = 'old'",
        "SELECT COUNT(*) FROM visits WHERE \"when\" > '2025-13-01'",
        "SELECT COUNT(*) FROM visits v JOIN visits w ON v.region = w.region",
        "SELECT user_id, COUNT(*) FROM visits GROUP BY user_id",
        "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits",
        "DROP TABLE visits",
        "COPY visits TO 'out.csv'",
    ],
)
def test_refused_shapes_and_wrong_types_charge_nothing(standing_shop, sql):
    before = standing_shop.spent()
    code, found = standing_shop.json("ask", sql, "--epsilon", 0.1)
    assert code in (2, 3) and found["error"]["fix"] and found["error"]["charge"] == {"epsilon": 0, "delta": 0}
    assert standing_shop.call("ask", sql, "--epsilon", 0.1)[0] == code and standing_shop.spent() == before
    assert found["error"]["code"] in {"sql.refused", "policy.not-allowed", "policy.unknown-column", "input.invalid"}


@pytest.mark.parametrize("aggregate", ["SUM", "AVG", "STDDEV"])
def test_missing_bounds_are_told_with_a_way_out(shop, aggregate):
    sql = f"SELECT {aggregate}(weight) FROM visits"
    error = shop.refused("policy.not-allowed", 3, "ask", sql, "--epsilon", 0.1)
    assert "'weight' has no bounds" in error["message"] and "LEAST(GREATEST(weight" in error["fix"]
    assert error["at"]["line"] == 1
    assert (
        shop.json("ask", f"SELECT {aggregate}(LEAST(GREATEST(weight, 0), 100)) FROM visits", "--epsilon", 0.1)[0] == 0
    )


# --- what is missing or broken outside


def test_a_missing_file_is_a_change_and_its_path_is_not_told(shop):
    (shop.folder / "visits.parquet").unlink()
    shop.refused("source.changed", 5, *ASK, "--epsilon", 0.1)


@pytest.mark.parametrize("how", ["rewritten", "truncated", "garbage"])
def test_a_changed_file_stops_every_question(shop, how):
    file = shop.folder / "visits.parquet"
    content = file.read_bytes()
    if how == "rewritten":
        pq.write_table(pq.read_table(file).slice(5), file)
    else:
        file.write_bytes(content[: len(content) // 2] if how == "truncated" else b"x" * len(content))
    shop.refused("source.changed", 5, *ASK, "--epsilon", 0.1)
    assert shop.json("preview", COUNT)[0] == 0  # which never touches the data
    file.write_bytes(content)
    assert shop.json(*ASK, "--epsilon", 0.1)[0] == 0


def test_no_home_is_something_outside(empty_shop):
    for command in ("ask", "preview"):
        code, found = empty_shop.json(command, COUNT, "--epsilon", 0.1)
        assert code == 5 and found["error"]["code"] == "source.unavailable"


@pytest.mark.parametrize("people", [0, 1])
def test_an_empty_table_and_a_single_unit_are_answered_like_any_other(empty_shop, people):
    empty_shop.lay(people=people)
    for sql in (COUNT, BY_REGION, "SELECT AVG(age), SUM(amount), STDDEV(amount) FROM visits"):
        code, found = empty_shop.json("ask", sql, "--epsilon", 0.2)
        assert code == 0 and found["charge"]["epsilon"] == 0.2
        assert len(found["rows"]) == (3 if sql == BY_REGION else 1)
        assert empty_shop.call("ask", sql, "--epsilon", 0.2)[0] == 0


def test_policy_typos_and_second_names_are_refused_and_leave_the_budget_alone(shop):
    text = (shop.folder / "visits.toml").read_text()
    (shop.folder / "typo.toml").write_text(text.replace("bounds = [18, 90]", "bound = [18, 90]"))
    assert "bounds" in json.dumps(shop.refused("policy.invalid", 2, "protect", "typo.toml"))
    (shop.folder / "copy.toml").write_text(text.replace('name = "visits"', 'name = "visits2"'))
    shop.refused("policy.not-allowed", 3, "protect", "copy.toml")  # the same people under a fresh budget
    (shop.folder / "twice.toml").write_text(text)
    before = shop.spent()
    code, found = shop.json("protect", "visits.toml", "twice.toml")
    assert code in (2, 3) and found["error"]["charge"] == {"epsilon": 0, "delta": 0} and shop.spent() == before

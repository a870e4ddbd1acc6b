"""What an answer says of clipping: where it is known, where it is not, and what is stored for it."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.remote.server import TOKEN, Server

from dalenius import connect
from dalenius.curator import Curator
from dalenius.measuring.expressions import Aggregate
from dalenius.measuring.limits.clip_search import Clip
from dalenius.measuring.limits.clipping import Loss
from dalenius.measuring.plan import Limits
from dalenius.queries.answering import Answer
from dalenius.queries.ask import Ask
from dalenius.queries.planning import plan_ask
from dalenius.queries.release import Release
from dalenius.queries.total_intervals import Clipped, Unknown, clipped_aggregate, clipping_notes

POLICY = """
[table]
name = "visits"
source = "visits.parquet"
unit = "person"
[budget]
epsilon = 60.0
delta = 1e-6
[analysts.ana]
epsilon = 30.0
[analysts.ben]
epsilon = 30.0
[columns.region]
type = "category"
keys = ["north", "south", "east", "west"]
[columns.day]
type = "integer"
bounds = [0, 23]
[columns.amount]
type = "number"
bounds = [0, 1000]
step = 1
[columns.debt]
type = "number"
bounds = [-1000, 0]
step = 1
[columns.change]
type = "number"
bounds = [-50, 50]
step = 1
"""
GROUPED = "SELECT region, day, COUNT(*) AS n FROM visits GROUP BY region, day"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clipped")
    chance = random.Random(18)
    people = [person for person in range(8000) for _ in range(min(400, int(chance.paretovariate(1.2))))]
    amounts = [min(1000, round(5 * chance.paretovariate(1.3))) for _ in people]
    rows = {
        "person": people,
        "region": [chance.choice(["north", "south", "east", "west"]) for _ in people],
        "day": [chance.randrange(24) for _ in people],
        "amount": amounts,
        "debt": [-each for each in amounts],
        "change": [chance.randint(-50, 50) for _ in people],
    }
    pq.write_table(pa.table(rows), folder / "visits.parquet")
    (folder / "visits.toml").write_text(POLICY)
    (folder / "declared.toml").write_text(POLICY.replace('"visits"', '"declared"') + "[contribution]\nrows = 5\n")
    for name in ("visits", "declared"):
        Curator(folder / name).protect(folder / f"{name}.toml")
    return folder


@pytest.fixture
def ana(folder: Path):
    return Curator(folder / "visits").analyst("ana")


def ends(release: Release, column: int = -1):
    """Interval and total interval of each row."""
    return [(row[column], total[column]) for row, total in zip(release.interval, release.total_interval, strict=True)]


@pytest.mark.parametrize(
    ("sql", "groups", "least"),
    [
        (GROUPED, 96, 0.0),  # scaled up to a total of which next to nothing need be missing
        ("SELECT region, day < 12 AS early, COUNT(*) AS n FROM visits WHERE day < 20 GROUP BY region, early", 8, 0.002),
    ],
)
def test_a_column_has_its_share_and_each_cell_an_interval_that_holds_that_of_the_noise(ana, sql, groups, least):
    release = ana.ask(sql, epsilon=0.2)
    assert release.clipping[:2] == (None, None) and least <= release.clipping[2] < 0.9
    assert all(row[:2] == (None, None) for row in release.total_interval)
    assert len(ends(release)) == groups
    for noise, total in ends(release):
        assert total[0] <= noise[0] and total[1] > noise[1]
    assert all(float(each).is_integer() for _, total in ends(release) for each in total)


def test_json_has_both_near_and_over_http(folder, ana):
    near = ana.ask(GROUPED, epsilon=0.5)
    data = json.loads(json.dumps(near.to_dict(), allow_nan=False))
    assert data["clipping"] == list(near.clipping)
    assert data["total_interval"][0] == [None, None, list(near.total_interval[0][2])]
    again = Release.from_dict({**data, "question": GROUPED})
    assert (again.clipping, again.total_interval) == (near.clipping, near.total_interval)
    server = Server(Curator(folder / "visits"))
    try:
        with connect(server.url, TOKEN, timeout=20) as remote:
            far = remote.ask(GROUPED, epsilon=0.5)
        assert far.free and (far.clipping, far.total_interval) == (near.clipping, near.total_interval)
    finally:
        server.stop()


def test_a_release_from_before_says_nothing_of_clipping(ana):
    data = ana.ask(GROUPED, epsilon=0.5).to_dict()
    del data["clipping"], data["total_interval"]
    old = Release.from_dict({**data, "question": GROUPED})
    assert old.clipping == (None, None, None)
    assert old.total_interval == ((None, None, None),) * len(old.rows)


def test_a_warning_says_that_clipping_outweighs_the_noise_and_what_mends_it(ana):
    some = "SELECT region, COUNT(*) AS n FROM visits WHERE day < {} GROUP BY region"  # too few groups to be scaled up
    asked = (ana.ask(some.format(day), epsilon=0.4) for day in range(6, 23))
    release, warning = next(
        (release, each) for release in asked for each in release.notes if each.startswith("To reduce noise")
    )
    assert re.search(
        rf"by estimate {release.clipping[1]:.1%} of the rows( \(up to [0-9.]+%\))? were not counted", warning
    )
    assert "what one person adds was capped" in warning
    lower = release.limits[0]["limit"] < release.limits[0]["of"]  # else the limit is the table's own, and the owner's
    assert ("A higher ε cuts off less." in warning) == lower and "--rows" not in warning  # which would tell less
    assert "The range in all (`total_interval`) includes this, ± does not." in warning
    assert warning in str(release)
    wide = ana.ask(GROUPED, epsilon=0.05, limits=Limits(search=0))
    assert not any(each.startswith("To reduce noise") for each in wide.notes)


def test_where_the_noise_hides_what_was_cut_off_the_answer_says_so(ana):
    asked = "SELECT COUNT(*) AS n FROM visits WHERE day = 3 AND region = 'north'"
    release = ana.ask(asked, epsilon=0.02, fresh=True)  # by itself: others ask the like here
    assert release.clipping == (None,)
    assert any("is not known" in each and "not in ±" in each for each in release.notes)
    guessed = release.limits[0]["limit"] < release.limits[0]["of"]
    assert any("may be far too low" in each and "higher ε" in each for each in release.notes) == guessed


def test_where_the_asker_chose_the_limit_the_answer_says_that_nothing_is_known(ana):
    release = ana.ask("SELECT COUNT(*) AS n FROM visits WHERE day < 7", epsilon=0.5, limits=Limits(rows=2))
    assert release.clipping == (None,)
    assert "How much the limits of this question cut off is not known, and not in ±." in release.notes
    high = ana.ask("SELECT COUNT(*) AS n FROM visits WHERE day < 7", epsilon=0.5, limits=Limits(rows=10_000))
    assert any("own limit of rows is lower than the one you gave" in each for each in high.notes)


def test_a_limit_that_is_the_tables_own_already_is_the_owners_to_raise(ana):
    plan = plan_ask(ana._asker, Ask("SELECT COUNT(*) AS n FROM visits WHERE day < 7")).plan
    (aggregate,), measure = plan.answers, plan.measures[0]
    for clip, mends in ((measure.clip, "rows, for the owner"), (measure.clip // 2, "A higher ε cuts off less.")):
        lost = Clipped(Loss(0.5), [(0.0, 1.0)], [50.0], measure, clip, found=True)
        (note,) = clipping_notes(plan, {aggregate: lost}, {aggregate: [1.0]})
        assert mends in note and ("every answer gets more noise" in note) == (clip == measure.clip)


def test_what_is_computed_from_a_count_points_to_no_range_that_is_not_there(ana):
    plan = plan_ask(ana._asker, Ask("SELECT 2 * COUNT(*) AS n FROM visits WHERE day < 7")).plan
    (aggregate,), measure = plan.answers, plan.measures[0]
    lost = Clipped(Loss(0.5), [(0.0, 1.0)], [50.0], measure, measure.clip, found=True)
    (note,) = clipping_notes(plan, {aggregate: lost}, {aggregate: [1.0]})
    assert "± does not include this." in note and "total_interval" not in note


def test_of_several_columns_a_note_says_which_it_is_about(ana):
    sql = "SELECT COUNT(*) AS n, SUM(amount) AS spent, COUNT(DISTINCT person) AS people FROM visits WHERE day < 7"
    plan = plan_ask(ana._asker, Ask(sql)).plan
    rows, spent, people = plan.answers
    lost = {each: Clipped(Loss(0.5), [None], [50.0], plan.measures[0], 2, found=True) for each in (rows, spent)}
    lost[people] = Clipped(Loss(0.0), [None], [0.0], plan.measures[0], 2, found=True)
    errors = {each: [1.0] for each in lost}
    (both,) = clipping_notes(plan, lost, errors)
    assert both.startswith("n, spent: To reduce noise")
    apart: dict[Aggregate, Clipped | Unknown] = {**lost, spent: Unknown.OTHER}
    notes = clipping_notes(plan, apart, errors)
    assert [each.split(":")[0] for each in notes] == ["n", "spent"]
    (alike,) = clipping_notes(plan, dict.fromkeys(lost, Unknown.DECLARED), errors)
    assert alike.startswith("The owner declared")


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (Loss(0.1), "by estimate 9.1% of the rows were not counted"),
        (Loss(0.032, more=0.104), "by estimate 3.1% of the rows (up to 12%) were not counted"),
        (Loss(0.0005, more=0.004), "by estimate 0.1% of the rows (up to 0.45%) were not counted"),
        (Loss(0.1, more=0.01), "by estimate 9.1% of the rows were not counted"),
    ],
)
def test_an_estimate_says_how_much_it_may_be_where_that_is_more(ana, loss, said):
    plan = plan_ask(ana._asker, Ask("SELECT COUNT(*) AS n FROM visits WHERE day < 7")).plan
    (aggregate,) = plan.answers
    lost = Clipped(loss, [(0.0, 1.0)], [50.0], plan.measures[0], 2, found=True)
    (note,) = clipping_notes(plan, {aggregate: lost}, {aggregate: [1.0]})
    assert said in note


def test_a_low_guess_says_that_the_answer_may_be_far_off_and_in_which_direction(ana):
    for column, way in (("amount", "low"), ("debt", "high")):
        plan = plan_ask(ana._asker, Ask(f"SELECT SUM({column}) AS n FROM visits WHERE day < 7")).plan
        (aggregate,) = plan.answers
        (note,) = clipping_notes(plan, {aggregate: Unknown.HIDDEN}, {aggregate: [1.0]})
        assert note.startswith(f"This may be far too {way}") and "higher ε" in note and "[contribution]" in note


def test_of_a_table_with_too_few_people_an_answer_says_that_it_may_be_far_too_low(tmp_path):
    people = [person for person in range(40) for _ in range(10)]
    rows = {"person": people, "region": ["north"] * 400, "day": [3] * 400, "amount": [5] * 400}
    pq.write_table(pa.table({**rows, "debt": [0] * 400, "change": [0] * 400}), tmp_path / "visits.parquet")
    (tmp_path / "visits.toml").write_text(POLICY)
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "visits.toml")
    ana = curator.analyst("ana")
    for sql in ("SELECT COUNT(*) FROM visits", "SELECT SUM(amount) FROM visits WHERE day < 7"):
        release = ana.ask(sql, epsilon=0.5)
        assert release.clipping == (None,)
        assert any(each.startswith("Only 1 row of one person counts") for each in release.notes)
        (note,) = (each for each in release.notes if each.startswith("This may be far too low"))
        assert "A higher ε does not change it; limits that the owner declares do." in note
    units = ana.ask("SELECT COUNT(DISTINCT person) FROM visits", epsilon=0.5)
    assert units.clipping == (0.0,) and not any("far too low" in each for each in units.notes)


def test_an_average_of_which_limits_take_much_says_that_it_leans(ana):
    plan = plan_ask(ana._asker, Ask("SELECT AVG(amount) AS a FROM visits WHERE day < 7")).plan
    (aggregate,) = plan.answers
    for beyond, clip, leans in ((0.2, 3, True), (0.001, 3, False), (None, 3, True), (None, 10**9, False)):
        clips = [Clip(at, clip, beyond, 9) for at in plan.searched]
        assert clips
        found = clipped_aggregate(plan, 0, [100], [], clips, 0.95)
        assert found is (Unknown.LEANING if leans else Unknown.MEANINGLESS)
        said = clipping_notes(plan, {aggregate: found}, {aggregate: [1.0]})
        assert any("those who add most count for less" in each for each in said) == leans


def test_the_ends_in_all_stand_beside_the_value_where_they_say_more_than_the_noise(ana):
    release = ana.ask(GROUPED, epsilon=0.2)
    low, high = release.total_interval[0][2]
    said = release.in_all(0, 2)
    ends = [float(each.replace(",", "")) for each in said.split(" to ")]
    error = release.noise_error[0][2]
    assert ends[0] == pytest.approx(low, abs=error / 5) and ends[1] == pytest.approx(high, abs=error / 5)
    assert f"(in all {said})" in str(release) and "in all with what limits cut off" in release.summary
    assert release.in_all(0, 0) == ""
    people = ana.ask("SELECT COUNT(DISTINCT person) AS n FROM visits", epsilon=0.2)
    assert people.in_all(0, 0) == "" and "in all" not in str(people)


def test_limits_of_all_rows_say_nothing_of_some_and_sums_of_both_signs_say_that_nothing_is_known(ana):
    some = "SELECT SUM(amount) FILTER (WHERE region = 'north') AS n FROM visits"
    for sql in (some, "SELECT SUM(change) AS n FROM visits"):
        release = ana.ask(sql, epsilon=0.5, limits=Limits(search=0))
        assert release.clipping == (None,)
        assert "How much the limits of this question cut off is not known, and not in ±." in release.notes


def test_after_a_refresh_nobody_knows_what_the_limits_cut_off(tmp_path):
    def write(rows: int) -> None:
        people = [person for person in range(3000) for _ in range(rows)]
        pq.write_table(
            pa.table({"person": people, "region": ["north"] * len(people), "day": [3] * len(people)})
            .append_column("amount", pa.array([1] * len(people)))
            .append_column("debt", pa.array([0] * len(people)))
            .append_column("change", pa.array([0] * len(people))),
            tmp_path / "visits.parquet",
        )

    write(2)
    (tmp_path / "visits.toml").write_text(POLICY)
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "visits.toml")
    sql = "SELECT COUNT(*) AS n FROM visits"
    assert curator.analyst("ana").ask(sql, epsilon=0.5).clipping[0] is not None
    write(20)
    curator.refresh("visits")
    after = curator.analyst("ana").ask(sql, epsilon=0.5)
    assert after.rows[0][0] < 30_000  # of 60,000: the limits are those of before
    assert after.clipping == (None,) and any("is not known, and not in ±" in each for each in after.notes)


def test_limits_that_protect_found_are_known_where_the_question_asks_for_just_these(ana):
    for sql in ("SELECT COUNT(*) FROM visits", "SELECT region, COUNT(*) FROM visits GROUP BY region"):
        release = ana.ask(sql, epsilon=0.4)
        assert release.limits == () and release.clipping[-1] is not None
    total = ana.ask("SELECT SUM(amount) FROM visits", epsilon=0.4)
    assert total.limits == () and total.clipping[0] is not None
    assert total.total_interval[0][0][1] > total.interval[0][0][1]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT VAR_POP(amount) FROM visits",
        "SELECT MEDIAN(amount) FROM visits",
        "SELECT SUM(change) FROM visits WHERE day < 12",
        "SELECT SUM(amount) / COUNT(*) FROM visits",
        "SELECT COUNT(DISTINCT day) FROM visits",
    ],
)
def test_what_is_no_sum_of_one_sign_and_no_average_says_nothing(ana, sql):
    release = ana.ask(sql, epsilon=0.3)
    assert release.clipping == (None,) and release.total_interval == ((None,),)


def test_a_limit_of_the_question_and_a_condition_that_protect_did_not_look_at_say_nothing(ana):
    tight = ana.ask("SELECT COUNT(*) FROM visits", epsilon=0.3, limits=Limits(rows=2))
    some = ana.ask("SELECT COUNT(*) FROM visits WHERE day < 3", epsilon=0.3, limits=Limits(search=0))
    sets = ana.ask("SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP (region)", epsilon=0.3, limits=Limits(search=0))
    assert tight.clipping == some.clipping == (None,) and sets.clipping == (None, None)


def test_declared_limits_say_so(folder):
    release = Curator(folder / "declared").analyst("ana").ask("SELECT COUNT(*) AS n FROM declared", epsilon=0.3)
    assert release.clipping == (None,) and release.total_interval == ((None,),)
    assert any(each.startswith("The owner declared how much one person may add.") for each in release.notes)


def test_units_are_never_clipped_where_they_count_in_all_groups(folder):
    declared = Curator(folder / "declared").analyst("ana")
    release = declared.ask("SELECT region, COUNT(DISTINCT person) FROM declared GROUP BY region", epsilon=0.3)
    assert release.clipping == (None, 0.0)
    assert all(noise == total for noise, total in ends(release))


def test_sums_below_zero_reach_further_down(ana):
    up = ana.ask("SELECT region, SUM(amount) FROM visits WHERE day < 12 GROUP BY region", epsilon=0.5)
    down = ana.ask("SELECT region, SUM(debt) FROM visits WHERE day < 12 GROUP BY region", epsilon=0.5)
    assert up.clipping[1] and down.clipping[1]
    assert all(total[0] == noise[0] and total[1] > noise[1] for noise, total in ends(up))
    assert all(total[0] < noise[0] and total[1] == noise[1] for noise, total in ends(down))


def test_arithmetic_on_one_aggregate_moves_its_ends(ana):
    plain = ana.ask(GROUPED, epsilon=0.5)
    made = ana.ask("SELECT region, day, 2 * COUNT(*) + 1 AS n FROM visits GROUP BY region, day", epsilon=0.5)
    assert made.free and made.clipping == plain.clipping
    for (_, once), (noise, twice) in zip(ends(plain), ends(made), strict=True):
        assert twice == pytest.approx((2 * once[0] + 1, 2 * once[1] + 1))
        assert twice[0] <= noise[0] and noise[1] <= twice[1]


def test_a_wider_confidence_is_wider_and_free(ana):
    usual, sure = (ana.ask(GROUPED, epsilon=0.5, confidence=each) for each in (0.95, 0.999))
    assert sure.free and sure.clipping == usual.clipping
    assert all(b[1] > a[1] for (_, a), (_, b) in zip(ends(usual), ends(sure), strict=True))


def test_an_answer_made_from_another_has_its_own_noise_and_the_same_share(folder, ana):
    sql = "SELECT COUNT(*) AS n FROM visits"
    first = ana.ask(sql, epsilon=0.5)
    second = Curator(folder / "visits").analyst("ben").ask(sql, epsilon=0.2)
    assert any("was asked before" in each for each in second.notes)
    assert second.clipping == first.clipping != (None,)
    (noise, total), (sharper, _) = ends(second)[0], ends(first)[0]
    assert noise[1] - noise[0] > sharper[1] - sharper[0] and total[1] > noise[1]


@pytest.mark.parametrize("accounting", ["zcdp", "pure"])
def test_stored_answers_without_counts_are_read_by_their_share(found, memory, accounting):
    plan, stored = found(memory, accounting)
    data = json.loads(stored)
    assert len(data["limits"][0]["counts"]["noisy"]) == 129
    with_counts = Answer.read(plan, stored, 0.95)
    del data["limits"][0]["counts"]
    old = Answer.read(plan, json.dumps(data).encode(), 0.95)
    assert with_counts.table().rows == old.table().rows and with_counts.limits == old.limits
    assert old.table().clipping[1] == pytest.approx(old.limits[0]["beyond"], rel=0.01)
    for noise, total in zip(old.table().interval, old.table().total_interval, strict=True):
        assert total[1] is not None and noise[1] is not None
        assert total[1][0] == noise[1][0] and total[1][1] >= noise[1][1]
    data["limits"][0]["beyond"] = None
    unknown = Answer.read(plan, json.dumps(data).encode(), 0.95).table()
    assert unknown.clipping == (None, None) and all(row == (None, None) for row in unknown.total_interval)


@pytest.fixture
def found(asker):
    """`found(memory, accounting)`: a question that found its own limit, and what is stored for it."""
    from dataclasses import replace

    from dalenius.measuring.plan import Found
    from dalenius.queries.answering import measure_plan
    from dalenius.queries.rules.price import price_plan

    def made(memory, accounting):
        plain = asker(accounting=accounting, contribution="")
        limits = Found(rows=300, norms={"region": 90}, units=3000, row_count=9000)
        plan = replace(plain, table=replace(plain.table, found=limits)).plan(
            "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", Limits(search=0.2)
        )
        chance = random.Random(4)
        people = [each for each in range(3000) for _ in range(min(250, int(chance.paretovariate(1.1))))]
        regions = [chance.choice(["north", "south", "east"]) for _ in people]
        table = pa.table({"user_id": pa.array(people, pa.int64()), "region": regions})
        return plan, measure_plan(plan, price_plan(plan, 1.0), memory(table), "salt", 60.0)

    return made


def test_found_keys_have_total_intervals_too(folder, tmp_path):
    text = POLICY.replace('keys = ["north", "south", "east", "west"]', "")
    (tmp_path / "visits.toml").write_text(text)
    (tmp_path / "visits.parquet").write_bytes((folder / "visits.parquet").read_bytes())
    curator = Curator(tmp_path / "home")
    curator.protect(tmp_path / "visits.toml")
    release = curator.analyst("ana").ask(
        "SELECT region, COUNT(*) FROM visits WHERE day < 12 GROUP BY region", epsilon=1
    )
    assert release.rows and release.clipping[1] is not None
    assert all(total[1] >= noise[1] and math.isfinite(total[1]) for noise, total in ends(release))

"""When answers leave: at times that follow from public things, whatever the work does."""

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.attack.hostile import people, plan_of, protected

from dalenius.errors import EngineFailedError, EngineTimeoutError
from dalenius.measuring.canonical import call
from dalenius.measuring.expressions import TRUE, Column, Type, text
from dalenius.measuring.measures import PRIMITIVES
from dalenius.measuring.pace import ANSWER, CAP, SHAPES, UNKNOWN, Times, shape, size_class, times
from dalenius.measuring.plan import Table
from dalenius.measuring.relations import Join, Owned, Relation
from dalenius.releasing import pacing
from dalenius.releasing.pacing import Pace, Pacer, probe, run_paced


def table(rows=None, answer=None, cap=None, made_of=None, through=None, name="visits") -> Table:
    found: Any = None if rows is None else SimpleNamespace(row_count=rows)
    policy: Any = SimpleNamespace(
        name=name, time=SimpleNamespace(answer=answer, cap=cap), columns={}, contribution=SimpleNamespace(rows=1)
    )
    budget: Any = None
    return Table(policy, budget, found=found, made_of=made_of, through=through or {}, texts=frozenset())


def plan(of=None, *, measures=1, keys=(), cells=((),), selection=None, sets=(), kind="rows", where=TRUE) -> Any:
    return SimpleNamespace(
        table=of or table(),
        measures=[SimpleNamespace(primitive=PRIMITIVES[kind], value=None, where=TRUE, times=None)] * measures,
        where=where,
        keys=(),
        searched=(),
        question=SimpleNamespace(keys=keys),
        cells=cells,
        selection=selection,
        sets=sets,
    )


# --- classes and times


@given(st.integers(-5, 10**13))
def test_a_size_class_holds_its_rows_and_is_half_a_power_of_ten(rows):
    found = size_class(rows)
    assert found >= max(rows, 1000) * (1 - 1e-8)
    assert found <= max(1000, 10**0.5 * rows + 1)


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_more_rows_are_never_a_smaller_class(one, other):
    small, large = sorted((one, other))
    assert size_class(small) <= size_class(large)


@pytest.mark.parametrize("power", range(3, 13))
def test_powers_of_ten_are_their_own_class(power):
    assert size_class(10**power) == 10**power


def test_shapes():
    assert shape(plan()) == "total"
    assert shape(plan(keys=("a",))) == shape(plan(cells=((1,), (2,)))) == "grouped"
    assert shape(plan(kind="leaves")) == "quantiles"
    assert shape(plan(selection=object())) == "found"
    assert shape(plan(sets=(1,))) == "sets"
    assert shape(plan(table(through={"x": table()}))) == "joined"
    assert shape(plan(table(made_of=Relation((Join(Owned("a", table())),))))) == "joined"
    assert {shape(plan()), "grouped", "quantiles", "found", "sets", "joined"} == set(SHAPES)


def test_the_policys_word_holds_where_nothing_was_released():
    found = times(plan(table(answer=0.3, cap=2.0)), speed=20.0)
    assert found.answer == pytest.approx(0.3) and found.cap == 2.0


def test_the_policys_word_is_for_a_plain_question_and_grows_with_what_is_asked_beyond():
    asked = [times(plan(table(answer=1.0), measures=each, kind="leaves")).answer for each in (1, 3, 55)]
    assert asked[:2] == [1.0, 1.0] and asked[2] > 5


def test_what_expressions_cost_is_part_of_the_time():
    """The worst that a row's expressions can take, not what is in the rows."""
    note = Column("note", Type.TEXT)
    heavy = call("or", *(call("ilike", note, text(f"%{at}%")) for at in range(20)))
    for of in (table(rows=10**6), table(answer=1.0)):
        assert times(plan(of, where=heavy)).answer > 2 * times(plan(of)).answer


def test_without_any_word_a_table_is_taken_for_a_large_one():
    assert times(plan(table())) == times(plan(table(rows=UNKNOWN)))
    assert times(plan(table(rows=10))) == Times(ANSWER, CAP)


def test_a_released_size_makes_it_later_but_never_earlier():
    early, late = times(plan(table(rows=10**4, answer=0.5))), times(plan(table(rows=10**8, answer=0.5)))
    assert early.answer == 0.5 < late.answer
    assert times(plan(table(rows=10**8, answer=0.5)), speed=2).answer > late.answer
    assert times(plan(table(rows=10**8), measures=3)).answer > times(plan(table(rows=10**8))).answer


def test_a_cap_is_never_before_the_answer():
    found = times(plan(table(rows=10**9, cap=1.0)))
    assert found.cap == found.answer > 1


def test_rows_within_a_class_have_one_time():
    assert len({times(plan(table(rows=rows)), 20.0) for rows in (3_164, 5_000, 9_999, 10_000)}) == 1


def test_joined_tables_count_together_and_the_latest_word_holds():
    one, two = table(rows=10**6, answer=0.5, cap=9), table(rows=10**6, answer=2.0, cap=7)
    both: Any = SimpleNamespace(tables=lambda: [one, two], within=list, sources=(), joins=(), matches=(), single=False)
    found = times(plan(table(made_of=both)))
    assert found.answer >= 2.0 and found.cap == max(7, found.answer)


QUESTIONS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT region, SUM(amount) AS s FROM visits GROUP BY region",
    "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
)


def test_neighbours_have_the_same_times(tmp_path):
    """The victim owns half of the rows; nothing of the data but what was released moves a time."""
    found = []
    for victim in (False, True):
        curator = protected(tmp_path / str(victim), people(victim=victim))
        found.append([times(plan_of(curator, sql), 3.0) for sql in QUESTIONS])
        curator.ledger.database.close()
    assert found[0] == found[1]


def test_the_probe_is_within_its_bounds():
    assert 1.0 <= probe() <= 20.0


# --- pacing, by a clock that is set by hand


class Clock:
    """A clock on which only sleeping takes time."""

    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(pacing, "time", found)
    return found


class Fixed(Pacer):
    """A pacer whose times are given."""

    def __init__(self, answer, cap, slots=1):
        super().__init__(slots)
        self.given = Times(answer, cap)

    def times(self, pace):
        return self.given


def run(clock, pacer, work, cap=60.0):
    """What came of it, after how long, and which alarms were raised when."""
    alarms: list[tuple[str, float]] = []
    start = clock.monotonic()

    def alarm(what, _own):
        alarms.append((what, round(clock.monotonic() - start, 6)))

    try:
        result: Any = run_paced(pacer, Pace(lambda _: Times(1.0, cap), cap), work, alarm)
    except Exception as error:  # noqa: BLE001 (it is looked at)
        result = error
    return result, round(clock.monotonic() - start, 6), alarms


def taking(clock, seconds, error=None):
    """Work that takes so long and then ends so."""

    def work(_):
        clock.sleep(seconds)
        if error is not None:
            raise error
        return b"x"

    return work


FAILURE = EngineFailedError("m", why="w", fix="f")


@pytest.mark.parametrize("pacer", [None, Pacer(1, fixed=False)])
def test_where_no_time_is_fixed_it_leaves_when_it_is_ready(clock, pacer):
    assert run(clock, pacer, taking(clock, 3), 7.0) == (b"x", 3, [])
    assert run(clock, pacer, lambda seconds: str(seconds).encode(), 7.0)[0] == b"7.0"
    assert run(clock, pacer, taking(clock, 3, FAILURE)) == (FAILURE, 3, [])


@pytest.mark.parametrize("seconds", [0, 1, 4.999, 5])
def test_an_answer_leaves_at_its_time_however_long_it_took(clock, seconds):
    assert run(clock, Fixed(5, 60), taking(clock, seconds)) == (b"x", 5, [])


@pytest.mark.parametrize("seconds", [5.001, 30, 60])
def test_a_late_answer_leaves_at_the_cap_as_a_refusal_with_an_alarm(clock, seconds):
    result, took, alarms = run(clock, Fixed(5, 60), taking(clock, seconds))
    assert isinstance(result, EngineTimeoutError)
    assert took == 60 and alarms == [("late", 60)]  # nothing is told before


@pytest.mark.parametrize("seconds", [0, 4])
def test_a_failure_leaves_at_the_same_time_with_an_alarm(clock, seconds):
    assert run(clock, Fixed(5, 60), taking(clock, seconds, FAILURE)) == (FAILURE, 5, [("failed", 5)])


@pytest.mark.parametrize("error", [None, FAILURE, EngineTimeoutError("m", why="w", fix="f"), MemoryError()])
@pytest.mark.parametrize("seconds", [6, 59.9])
def test_that_it_was_late_is_all_that_is_told(clock, seconds, error):
    """Not whether it was stopped, failed, or had an answer."""
    result, took, alarms = run(clock, Fixed(5, 60), taking(clock, seconds, error))
    first = run(clock, Fixed(5, 60), taking(clock, 7))[0]
    assert (took, alarms) == (60, [("late", 60)])
    assert type(result) is type(first) and result.to_dict() == first.to_dict()


def test_what_is_stopped_leaves_at_the_cap_not_at_twice_the_cap(clock):
    def stopped(seconds):
        clock.sleep(seconds + 0.1)  # an engine does not stop at once
        raise EngineTimeoutError("m", why="w", fix="f")

    for answer, cap in ((5, 60), (0.3, 2), (1, 1.5)):
        assert run(clock, Fixed(answer, cap), stopped)[1:] == (cap, [("late", cap)])


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_what_no_exception_handler_catches_leaves_at_its_time_too(clock, error):
    start = clock.monotonic()
    with pytest.raises(type(error)):
        run_paced(Fixed(5, 60), Pace(lambda _: Times(5, 60)), taking(clock, 1, error), lambda *_: None)
    assert clock.monotonic() - start == pytest.approx(5)


def test_a_bug_leaves_at_the_answers_time_too(clock):
    bug = ZeroDivisionError()
    assert run(clock, Fixed(5, 60), taking(clock, 1, bug)) == (bug, 5, [])


def test_the_work_is_given_less_than_the_cap_where_there_is_room(clock):
    for fixed, most in ((Fixed(5, 60), b"59.0"), (Fixed(1, 1.5), b"1.25"), (Fixed(5, 5), b"5.0")):
        assert run(clock, fixed, lambda seconds: str(float(seconds)).encode())[0] == most


def test_who_is_told_is_told_before_anybody_looks(clock):
    order: list[Any] = []

    def look(_):
        order.append("looked")
        return b"x"

    run(clock, Fixed(5, 60).telling(order.append), look)
    assert order == [Times(5, 60), "looked"]
    order.clear()
    run(clock, Pacer(1, fixed=False).telling(order.append), lambda _: b"x")
    assert order == [None]


# --- places, in real time


@pytest.mark.parametrize("error", [None, FAILURE])
def test_a_place_is_held_until_the_fixed_time_and_then_given_back(error):
    pacer, begun = Fixed(0.1, 0.2), []
    asked = pacer.telling(lambda _: begun.append(time.monotonic()))
    threads = [threading.Thread(target=run, args=(time, asked, taking(Clock(), 0, error))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = sorted(begun)
    assert second - first >= 0.1  # though the first was ready at once
    with pacer.place:  # it is free, and there is but one
        assert not pacer._places.free


def test_as_many_look_at_once_as_there_are_places():
    pacer, inside, most = Pacer(2, fixed=False), [], []
    lock = threading.Lock()

    def look(_):
        with lock:
            inside.append(1)
            most.append(len(inside))
        time.sleep(0.02)
        with lock:
            inside.pop()
        return b"x"

    threads = [threading.Thread(target=run, args=(time, pacer, look)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 2 and len(most) == 6


def test_one_analyst_never_holds_more_than_half_of_the_places():
    """Else another's COUNT waits until that one's many long questions have left."""
    pacer, begun, go = Pacer(4, fixed=False), threading.Semaphore(0), threading.Event()

    def look(_):
        begun.release()
        go.wait(10)
        return b"x"

    eves = [threading.Thread(target=run, args=(time, pacer.telling(lambda _: None, "eve"), look)) for _ in range(6)]
    for each in eves:
        each.start()
    for _ in range(2):
        assert begun.acquire(timeout=10)
    assert not begun.acquire(timeout=0.1)
    assert run(time, pacer.telling(lambda _: None, "bob"), lambda _: b"bob's")[0] == b"bob's"  # at once
    go.set()
    for each in eves:
        each.join()
    assert pacer._places.free == 4


def test_who_waits_for_the_same_question_of_a_trusted_analyst_waits_for_the_own_time(tmp_path, monkeypatch):
    """The twin's answer is ready, and on disk, long before the paced analyst's time."""
    curator = protected(tmp_path, people(victim=False, units=50, rows=100), analysts={"eve": 1.0, "bob": 1.0})
    monkeypatch.setattr("dalenius.measuring.pace.times", lambda plan, speed=1.0: Times(0.6, 2.0))
    looking, go = threading.Event(), threading.Event()

    def started(_: object) -> None:
        looking.set()
        go.wait(10)

    sql = "SELECT COUNT(*) AS n FROM visits"
    trusted = curator.analyst("bob", pacer=Pacer(1, fixed=False).telling(started))
    twin = threading.Thread(target=lambda: trusted.ask(sql, epsilon=0.1))
    twin.start()
    assert looking.wait(10)
    start = time.monotonic()
    threading.Timer(0.1, go.set).start()
    release = curator.analyst("eve", pacer=Pacer(1)).ask(sql, epsilon=0.1)
    took = time.monotonic() - start
    twin.join()
    assert release.rows and took >= 0.6

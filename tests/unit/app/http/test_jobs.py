"""Jobs: whose they are, what is shown of them and when, and what is kept on disk."""

import asyncio
import json
import os
import time
from concurrent.futures import Future
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from dalenius.app.http import jobs as module
from dalenius.app.http.jobs import JobRequest, Jobs
from dalenius.app.http.limits import TooManyError
from dalenius.app.http.service import Service
from dalenius.errors import BudgetError, Charge, EngineFailedError, Fits
from dalenius.ledger.tokens import Role, Token
from dalenius.measuring.pace import Times
from dalenius.measuring.plan import Limits
from dalenius.queries.ask import Ask, limits_of_json, limits_to_json

QUESTION = JobRequest("question", Ask("SELECT 1", 0.1).to_json(), "k")


def token(analyst="eve", id_="0" * 12):
    return Token(id_, Role.ANALYST, analyst, "2026-01-01T00:00:00+00:00", "2099-01-01T00:00:00+00:00", "", False, "")


def begun(jobs, who=None, id_=None):
    job = jobs.new(who or token(), QUESTION, id_)
    future: Future[Any] = Future()
    job.follow(future)
    return job, future


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path)


def test_a_job_is_its_analysts(jobs):
    job, _ = begun(jobs)
    assert jobs.find(token(), job.id) is job
    assert jobs.find(token(id_="1" * 12), job.id) is job  # with whichever token
    assert jobs.find(token("bob"), job.id) is None
    assert jobs.find(token(), "0" * 32) is None


def test_nothing_but_the_clock_is_shown_before_the_end(jobs):
    job, future = begun(jobs)
    assert job.to_dict() == {
        "id": job.id,
        "state": "running",
        "leaves": None,
        "seconds_left": None,
        "steps": None,
        "result": None,
        "problem": None,
    }
    job.started(Times(5.0, 60.0))
    shown = job.to_dict()
    assert shown["state"] == "running" and 4 < shown["seconds_left"] <= 5 and shown["leaves"]
    future.set_result(SimpleNamespace(to_dict=lambda: {"rows": [[1]]}))
    done = job.to_dict()
    assert done["state"] == "done" and done["result"] == {"question": "SELECT 1", "rows": [[1]]}
    assert done["seconds_left"] is None and done["leaves"] == shown["leaves"]


def test_a_trusted_question_has_no_time_and_may_tell_its_steps(jobs):
    job, future = begun(jobs)
    job.started(None)
    assert job.to_dict()["leaves"] is None
    job.told(3, 50)
    assert job.to_dict()["steps"] == [3, 50]
    future.set_result(SimpleNamespace(to_dict=lambda: {"rows": [[1]]}))
    assert job.to_dict()["steps"] is None


def test_a_failure_is_a_problem_and_a_bug_tells_nothing(jobs):
    job, future = begun(jobs)
    future.set_exception(BudgetError("No.", why="w", fix="f", fits=Fits(0.1)))
    assert job.to_dict()["state"] == "failed" and job.to_dict()["problem"]["code"] == "budget.exhausted"
    job, future = begun(jobs)
    future.set_exception(ValueError("Alice, 41"))
    shown = json.dumps(job.to_dict())
    assert '"internal"' in shown and "Alice" not in shown


def test_waiting_has_an_end(jobs):
    job, future = begun(jobs)

    async def both():
        first = await job.wait(0.01)
        future.set_result(None)
        return first, await job.wait(5)

    assert asyncio.run(both()) == (False, True)
    with pytest.raises(RuntimeError):
        asyncio.run(jobs.new(token(), QUESTION).wait(0))


def test_finished_jobs_are_forgotten_after_an_hour_and_others_are_not(jobs, monkeypatch):
    done, future = begun(jobs)
    future.set_result(None)
    open_, _ = begun(jobs)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + module.KEPT + 1)
    begun(jobs)
    assert jobs.find(token(), done.id) is None and jobs.find(token(), open_.id) is open_
    assert jobs.busy


def test_what_is_not_at_its_end_counts_for_its_token(jobs):
    _, first = begun(jobs)
    begun(jobs)
    begun(jobs, token(id_="1" * 12))
    assert jobs.running(token()) == 2 and jobs.running(token("bob", "2" * 12)) == 0
    first.set_exception(ValueError())
    assert jobs.running(token()) == 1


def test_a_token_with_as_many_open_questions_as_it_may_have_is_told_to_wait(jobs):
    """Else jobs that nobody waits for would take every thread."""
    service = SimpleNamespace(jobs=jobs, settings=SimpleNamespace(concurrency=2), _begin=lambda *_: None)
    for _ in range(2):
        begun(jobs)
    with pytest.raises(TooManyError, match="Too many"):
        Service.obtain(service, token(), QUESTION)  # type: ignore[arg-type]
    assert Service.obtain(service, token(id_="1" * 12), QUESTION).id  # type: ignore[arg-type]


# --- on disk


def test_a_request_is_kept_for_its_analyst_alone(jobs, tmp_path):
    limits = Limits(3, None, {"amount": Fraction("0.1")}, None, 0.25)
    job, _ = begun(jobs)
    wanted = JobRequest("question", Ask("SELECT 1", 0.1, limits=limits).to_json(), "k")
    jobs.write(job, wanted)
    other = Jobs(tmp_path)  # another process
    assert other.read(token(), job.id) == (wanted, True)  # the first one lives
    assert jobs.read(token(), job.id) == (wanted, False)  # but is no other for itself
    assert other.read(token("bob"), job.id) is None
    (file,) = (tmp_path / module.FOLDER).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "name", ["", "../x", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "0" * 31 + "\n", "/" * 32, "٣" * 32]
)
def test_what_is_no_name_of_a_job_is_no_file(jobs, tmp_path, name):
    (tmp_path / module.FOLDER).mkdir()
    assert jobs.read(token(), name) is None


def test_a_file_that_is_not_whole_is_no_job(jobs, tmp_path):
    (tmp_path / module.FOLDER).mkdir()
    (tmp_path / module.FOLDER / f"{'0' * 32}.json").write_text('{"analyst": "eve", ')
    assert jobs.read(token(), "0" * 32) is None


def test_old_requests_are_removed(jobs, tmp_path):
    old, _ = begun(jobs)
    jobs.write(old, QUESTION)
    file = tmp_path / module.FOLDER / f"{old.id}.json"
    os.utime(file, (time.time() - 90_000,) * 2)
    new, _ = begun(jobs)
    jobs._cleaned -= 61  # a minute later
    jobs.write(new, QUESTION)
    assert jobs.read(token(), old.id) is None and jobs.read(token(), new.id) is not None


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (BudgetError("No.", why="w", fix="f"), False),
        (EngineFailedError("No.", why="w", fix="f", charge=Charge(0.1, 0.0)), True),
        (None, True),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_a_refusal_that_cost_nothing_is_not_asked_again_by_who_polls_it(jobs, error, stays, first):
    """Else a job that was seen to fail for nothing is charged by a GET, an hour or a restart later."""
    job, future = begun(jobs)
    if first:
        jobs.write(job, QUESTION)
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
    if not first:
        jobs.write(job, QUESTION)
    assert (jobs.read(token(), job.id) is not None) == stays


def test_a_job_that_a_stop_cancelled_can_be_taken_up(jobs):
    job, future = begun(jobs)
    jobs.write(job, QUESTION)
    future.cancel()
    assert jobs.read(token(), job.id) is not None


def test_a_token_keeps_so_many_jobs_and_no_more(jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST", 3)
    kept = []
    for _ in range(5):
        job, future = begun(jobs)
        jobs.write(job, QUESTION)
        future.set_result(None)
        kept.append(job.id)
    other, _ = begun(jobs, token(id_="1" * 12))
    jobs.write(other, QUESTION)
    assert {file.stem for file in (tmp_path / module.FOLDER).iterdir()} == {*kept[2:], other.id}
    assert [jobs.find(token(), each) is not None for each in kept] == [False, False, True, True, True]


@pytest.mark.parametrize(
    "limits",
    [
        Limits(),
        Limits(1, 2, {}, 3, 0),
        Limits(None, None, {"a": Fraction(1, 3), "b": Fraction(10**30)}, None, 0.5),
    ],
)
def test_limits_survive_the_way_to_disk(limits):
    ask = Ask("SELECT 1", limits=limits)
    assert Ask.of(json.loads(json.dumps(ask.to_json()))) == ask
    assert limits_of_json(json.loads(json.dumps(limits_to_json(limits)))) == limits


def test_totals_are_taken_as_they_are_written():
    assert limits_of_json({"totals": {"a": 0.1, "b": "0.10", "c": 1e-7}}).totals == {
        "a": Fraction(1, 10),
        "b": Fraction(1, 10),
        "c": Fraction(1, 10**7),
    }


# --- results have an end in bytes


def ended(jobs, text, who=None, epsilon=0.0):
    """A job that has ended with a result that holds a text."""
    job, future = begun(jobs, who)
    jobs.write(job, QUESTION)
    future.set_result(SimpleNamespace(to_dict=lambda: {"rows": [[text]], "charge": {"epsilon": epsilon, "delta": 0.0}}))
    return job


def states(*found):
    return [job.to_dict()["state"] for job in found]


def test_results_of_one_token_are_kept_up_to_its_bytes_and_the_oldest_go(tmp_path):
    jobs = Jobs(tmp_path, most=100_000, each=3_000)
    first, second, third = (ended(jobs, "x" * 1200, epsilon=0.25) for _ in range(3))
    assert states(first, second, third) == ["failed", "done", "done"] and jobs.kept.bytes <= 3_000
    told = first.to_dict()["problem"]
    assert told["code"] == "rate.limited" and "Ask again" in told["detail"]
    assert told["charge"]["epsilon"] == 0.25  # it was answered, and paid for
    assert states(ended(jobs, "x" * 5_000)) == ["failed"] and jobs.kept.bytes == 0  # one that never fits


def test_results_of_all_are_kept_up_to_the_servers_bytes_and_who_keeps_most_gives_way(tmp_path):
    jobs = Jobs(tmp_path, most=4_000, each=3_000)
    eves = [ended(jobs, "x" * 800) for _ in range(3)]
    bob = token("bob", "1" * 12)
    bobs = [ended(jobs, "x" * 800, bob) for _ in range(2)]
    assert states(*eves) == ["failed", "done", "done"] and states(*bobs) == ["done", "done"]
    assert jobs.kept.bytes <= 4_000


def test_bytes_are_counted_as_they_are_sent(tmp_path):
    jobs = Jobs(tmp_path, most=10_000, each=10_000)
    assert states(ended(jobs, "\U0001f600" * 2_600)) == ["failed"]  # 2,600 characters, 10,400 bytes
    assert states(ended(jobs, "x" * 2_600)) == ["done"]


def test_a_kept_job_holds_its_bytes_and_nothing_else(tmp_path):
    jobs = Jobs(tmp_path)
    job = ended(jobs, "é\u2028\x01")
    assert job.future is None and job.to_dict()["result"]["rows"] == [["é\u2028\x01"]]
    assert asyncio.run(job.wait(0)) and job.done and not jobs.busy


def test_what_nobody_waits_for_is_forgotten_at_its_end_and_counts_until_then(jobs):
    job, future = begun(jobs)
    jobs.forget(job)
    assert job.left.is_set() and jobs.running(token()) == 1
    future.set_result(None)
    assert jobs.running(token()) == 0 and jobs.find(token(), job.id) is None


def test_forgotten_jobs_give_their_bytes_back(jobs, monkeypatch):
    ended(jobs, "x" * 1000)
    assert jobs.kept.bytes > 1000
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + module.KEPT + 1)
    begun(jobs)
    assert jobs.kept.bytes == 0


def test_a_job_that_an_earlier_release_left_is_taken_up(jobs, tmp_path):
    job, _ = begun(jobs)
    jobs.write(job, QUESTION)
    file = tmp_path / module.FOLDER / f"{job.id}.json"
    held = json.loads(file.read_bytes())
    early = {"analyst": "eve", "holder": held["holder"], "request": {**held["request"], "idempotency_key": "k"}}
    file.write_text(json.dumps(early))
    assert jobs.read(token(), job.id) == (QUESTION, False)

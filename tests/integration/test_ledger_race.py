"""Many askers at once, threads and processes: room for one charge admits one; one question has one answer."""

import multiprocessing
import secrets
import threading
from pathlib import Path
from typing import Any

import pytest

from dalenius.accounting.events import Zcdp
from dalenius.errors import BudgetError
from dalenius.ledger import Budget, Ledger, Request, verify

pytestmark = pytest.mark.integration

PROCESSES, THREADS = 8, 8
EPSILON = 0.8  # of a budget of 1: room for exactly one


def at_once(number: int, ask) -> list[Any]:
    """Runs ``ask(i)`` in so many threads that start together; results or errors in order."""
    results: list[Any] = [None] * number
    barrier = threading.Barrier(number, timeout=60)

    def run(place: int) -> None:
        barrier.wait()
        try:
            results[place] = ask(place)
        except BudgetError as error:
            results[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def fresh(ledger: Ledger, name: str) -> None:
    ledger.set_budget(name, Budget(1.0, 1e-6))
    ledger.set_allotment(name, "ana", 1.0)


def asking(dataset: str, key: str) -> Request:
    return Request(dataset, "ana", key, EPSILON, Zcdp(1e-9))


def worker(home: Path, start, rounds: int, answers) -> None:
    """One of eight processes: in each round eight threads ask, first each its own question, then all the same."""
    ledger = Ledger.open(home)
    for number in range(rounds):
        start.wait()
        own = at_once(
            THREADS,
            lambda place, n=number: ledger.ask(asking(f"own {n}", secrets.token_hex(8)), lambda claim: b"x"),
        )
        passed = sum(not isinstance(each, BudgetError) for each in own)
        start.wait()
        same = at_once(
            THREADS,
            lambda place, n=number: ledger.ask(asking(f"same {n}", "the one"), lambda claim: secrets.token_bytes(8)),
        )
        answers.put((number, passed, [None if isinstance(each, BudgetError) else each.content for each in same]))


def test_64_askers_in_8_processes_cannot_spend_the_same_budget(tmp_path, rounds):
    total = rounds(200)
    ledger = Ledger.create(tmp_path / "home")
    for number in range(total):
        fresh(ledger, f"own {number}")
        fresh(ledger, f"same {number}")
    ledger.database.close()
    context = multiprocessing.get_context("spawn")
    start, answers = context.Barrier(PROCESSES, timeout=300), context.Queue()
    workers = [context.Process(target=worker, args=(ledger.home, start, total, answers)) for _ in range(PROCESSES)]
    for each in workers:
        each.start()
    passed = dict.fromkeys(range(total), 0)
    contents: dict[int, set[Any]] = {number: set() for number in range(total)}
    for _ in range(total * PROCESSES):
        number, own, same = answers.get(timeout=300)
        passed[number] += own
        contents[number].update(same)
    for each in workers:
        each.join(timeout=60)
        assert each.exitcode == 0
    assert set(passed.values()) == {1}
    assert all(len(values) == 1 and None not in values for values in contents.values())
    for number in range(total):
        assert ledger.balance(f"own {number}").charges == ledger.balance(f"same {number}").charges == 1
    verify(ledger)


def test_64_threads_of_one_process_cannot_spend_the_same_budget(tmp_path, rounds):
    ledger = Ledger.create(tmp_path / "home")
    for number in range(rounds(200)):
        fresh(ledger, f"own {number}")
        results = at_once(64, lambda place, n=number: ledger.charge(asking(f"own {n}", f"question {place}")))
        assert sum(not isinstance(each, BudgetError) for each in results) == 1
        fresh(ledger, f"same {number}")
        results = at_once(
            64, lambda place, n=number: ledger.ask(asking(f"same {n}", "the one"), lambda claim: secrets.token_bytes(8))
        )
        assert len({each.content for each in results}) == 1
        assert ledger.balance(f"same {number}").charges == 1
    verify(ledger)

"""H6 over HTTP: no function and no cast makes a response differ because of what one person's rows hold.

The questions are those of the attack in process: every function of the allow-list, on rows on which it would fail if it
were left alone. Status, headers, body, charge and log lines are the same with the victim and without; only the noisy
numbers are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.attack.curators import neighbours
from tests.attack.test_h06_data_dependent_errors import AT_ONCE as AT_ONCE_ASKED
from tests.attack.test_h06_data_dependent_errors import COLUMNS, HOSTILE, harmless, questions, victim
from tests.attack.watched import CONFIG, PLANTED, asked, both, log_of, seen
from tests.conftest import LONG
from tests.serving import Server, serving

EPSILON = 0.01
AT_ONCE = 2
GROUPS = 8 if LONG else 1  # functions are asked about in so many tests
LIMITS = "rows = 3\ngroups = 2\ntotals = { w = 1e9, z = 15 }\n[time]\nanswer = 1\ncap = 60"


@pytest.fixture(scope="module")
def pair(tmp_path_factory) -> Iterator[tuple[Server, Server]]:
    folder = tmp_path_factory.mktemp("h6")
    curators = neighbours(folder, harmless(), victim(), COLUMNS, contribution=LIMITS)
    with ExitStack() as stack:
        one, other = (stack.enter_context(serving(each.home, config=CONFIG)) for each in curators)
        yield one, other


def bodies(*functions: str) -> list[dict[str, Any]]:
    return [{"sql": each, "epsilon": EPSILON} for function in functions for each in questions(HOSTILE[function])]


def together(*functions: str) -> list[dict[str, Any]]:
    """One condition of each function, several functions in a question."""
    return [{"sql": each, "epsilon": EPSILON} for each in questions([HOSTILE[function][0] for function in functions])]


def told_apart(pair: tuple[Server, Server], wanted: list[dict[str, Any]], *, trusted: bool = False) -> list[str]:
    """What of the responses, or of the log, tells that the victim is there."""
    logs = [len(each.log) for each in pair]
    threads = AT_ONCE if trusted else len(wanted)
    without, with_ = both(*(lambda each=each: asked(each, wanted, threads, trusted=trusted) for each in pair))
    found = []
    for body, one, other in zip(wanted, without, with_, strict=True):
        left, right = seen(one), seen(other)
        for each in (left, right):  # what is left depends on which of several at once came first
            each["body"].pop("remaining", None)
        if left != right or one.status != 200:
            found.append(f"{one.status} without the victim, {other.status} with: {body['sql']}")
    lines, others = (log_of(each, len(wanted), start=at) for each, at in zip(pair, logs, strict=True))
    return found if lines == others else [*found, "the logs differ"]


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_function_that_would_fail_on_the_victims_rows_changes_nothing_but_the_noisy_numbers(pair, group):
    functions = sorted(HOSTILE)[group::GROUPS]
    # In the short form all functions, but not all of their conditions: those are asked in process.
    wanted = bodies(*functions) if LONG else together(*functions)
    assert len(wanted) >= 2 * len(functions) / AT_ONCE_ASKED
    assert told_apart(pair, wanted, trusted=True) == []  # when they are ready: there are many


def test_nor_does_it_as_a_sum_a_group_or_a_key_that_is_found(pair):
    sums, groups = [], ["SELECT CAST(s AS DATE) AS k, COUNT(*) FROM t GROUP BY k"]
    for function in ("div", "ln", "to_number", "to_date", "date_add", "replace"):
        condition = HOSTILE[function][0]
        sums.append(f"SELECT SUM(CASE WHEN {condition} THEN w ELSE z END), AVG(z) FILTER (WHERE {condition}) FROM t")
        groups.append(f"SELECT {condition} AS k, COUNT(*), COUNT(DISTINCT id) FROM t GROUP BY k")
    # At their fixed times; in the short form the sums when they are ready, since theirs is a minute.
    assert told_apart(pair, [{"sql": each, "epsilon": EPSILON} for each in groups]) == []
    assert told_apart(pair, [{"sql": each, "epsilon": EPSILON} for each in sums], trusted=not LONG) == []


def test_what_is_spent_is_the_same_after_all_this(pair):
    one, other = (each.analyst("eve").get("/v1/budget").content for each in pair)
    assert one == other


def test_a_cast_that_fails_is_noticed(tmp_path):
    """Teeth: the same comparison on servers whose engine stumbles over texts that are no numbers."""
    patient = LIMITS.replace("answer = 1", "answer = 0.2")  # of a plain question; these take up to 75 times as long
    curators = neighbours(tmp_path, harmless(), victim(), COLUMNS, contribution=patient)
    control = tmp_path / "planted.json"
    control.write_text('{"template": ["number", "CAST({1} AS DOUBLE)"]}')
    program = [str(PLANTED), str(control)]
    with ExitStack() as stack:
        one, other = (stack.enter_context(serving(each.home, config=CONFIG, program=program)) for each in curators)
        found = told_apart((one, other), bodies("to_number"), trusted=not LONG)
    assert any(each.startswith("200 without the victim, 503 with") for each in found) and "the logs differ" in found

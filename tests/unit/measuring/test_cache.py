"""What free questions cost: groups are counted before they are made, and no number of questions fills the memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dalenius.errors import QuestionRefusedError
from dalenius.measuring import domains, fairness
from dalenius.measuring.cache import WeightedCache, weight_of, weight_of_parts
from dalenius.measuring.engines.duckdb.connections import Public
from dalenius.measuring.expressions import Column, Type, text
from dalenius.queries import public_facts
from dalenius.queries.rules.sets import MOST_KEYS

CUBE = 'CUBE (region, smoker, age, MONTH("when"), DAY("when"), YEAR("when"))'


@pytest.fixture
def engine(monkeypatch):
    """Counts what the engine worked out for keys: statements, and rows that became Python's."""
    found, run = SimpleNamespace(statements=0, rows=0), Public.run
    domains._KEPT.clear()

    def counted(self, *given, **more):
        rows = run(self, *given, **more)
        found.statements += 1
        found.rows += len(rows)
        return rows

    monkeypatch.setattr(Public, "run", counted)
    yield found
    domains._KEPT.clear()


def asked(keys):
    return f"SELECT COUNT(*) FROM visits GROUP BY {keys}"


def wide(number, keys=12):
    return asked(", ".join(f"age + {1000 * number + at}" for at in range(keys)) + ', MONTH("when")')


def test_groups_are_counted_before_they_are_made(visits, engine):
    with pytest.raises(QuestionRefusedError, match="too many groups"):
        visits.plan(asked(CUBE))
    assert engine.rows < 2000  # 64 sets; each was made, up to 100,000 groups of it
    assert engine.statements <= 16


def test_the_first_set_that_is_too_much_ends_it(visits, engine):
    sets = ", ".join(f'(age, "when" + INTERVAL {at} DAY)' for at in range(20))
    with pytest.raises(QuestionRefusedError, match="too many groups"):
        visits.plan(asked(f"GROUPING SETS ({sets})"))
    assert engine.statements <= 8


def test_what_sets_share_is_worked_out_once(visits, engine):
    plan = visits.plan(asked('CUBE (region, smoker, child, UPPER(region), DAY("when"), MONTH("when"))'))
    assert len(plan.sets) == 64
    # region and UPPER(region) together, each alone; DAY and MONTH likewise; counted, and then made
    assert engine.statements <= 12


def test_more_questions_keep_no_more(visits, engine):
    for number in range(30):
        visits.plan(wide(number))
        assert domains._KEPT.weight <= domains.MOST_VALUES
    held = list(domains._KEPT._held.values())
    assert sum(len(cells) * len(cells[0]) for cells, _ in held) <= domains._KEPT.weight
    assert engine.statements >= 30  # each was new


def test_an_ordinary_dashboard_is_worked_out_once(visits, engine):
    question = asked("region, DATE_TRUNC('month', \"when\"), FLOOR(age / 10)")
    first = visits.plan(question).cells
    before = engine.statements
    assert visits.plan(question).cells == first
    assert visits.plan(question + " HAVING COUNT(*) > 3").cells == first
    assert engine.statements == before


def test_so_many_keys_and_no_more(visits):
    keys = [f"age + {at}" for at in range(MOST_KEYS + 1)]
    assert len(visits.plan(asked(", ".join(keys[:-1]))).cells) == 73
    with pytest.raises(QuestionRefusedError, match=f"too many keys. .* grouped by 65; at most {MOST_KEYS}"):
        visits.plan(asked(", ".join(keys)))


def test_values_of_all_keys_are_limited(asker, visits):
    """73 · 365 · 3 = 79,935 groups are few enough, but not with 20 keys each."""
    few = 'age, "when", child'
    many = few + ", " + ", ".join(f"age + {at}" for at in range(1, 18))
    assert len(visits.plan(asked(few)).cells) == 79_935
    plan = visits.plan(asked(many))  # as for too many groups: they are found
    assert plan.cells == () and plan.selection is not None
    with pytest.raises(QuestionRefusedError, match=r"too many groups\. .*1,000,000 values in all"):
        asker(accounting="pure").plan(asked(many))
    with pytest.raises(QuestionRefusedError, match="1,000,000 values in all"):
        visits.plan(asked(f"GROUPING SETS (({few}), ({', '.join(f'age + {at}' for at in range(1, 18))}))"))


def test_planning_has_an_end(visits, monkeypatch):
    monkeypatch.setattr(fairness, "PLANNING_SECONDS", -1.0)
    with pytest.raises(QuestionRefusedError, match="too long to plan"):
        visits.plan(asked("region"))
    fairness.check_patience()  # outside nothing is limited


# --- by weight


def test_the_oldest_go_first():
    kept: WeightedCache[str] = WeightedCache(100)
    for each in "abcd":
        kept.put(each, each.upper(), 23)
    assert kept.get("a") == "A" and kept.weight == 96
    kept.put("e", "E", 23)
    assert kept.get("b") is None and kept.get("a") == "A" and len(kept) == 4
    kept.put("e", "other", 3)
    assert kept.get("e") == "other" and kept.weight == 76


def test_what_is_too_heavy_is_not_kept():
    kept: WeightedCache[str] = WeightedCache(100)
    kept.put("a", "A", 25)
    assert kept.get("a") is None and not len(kept)


def test_what_values_weigh():
    assert weight_of([(1.0, None), ("x" * 64, True)]) == 6
    assert weight_of_parts([Column("x", Type.NUMBER), text("x" * 320)]) == 26


def test_every_cache_of_values_is_one_by_weight():
    assert domains._KEPT.most <= 1_000_000 and public_facts._KEPT.most <= 1_000_000

"""The lattice search against all nodes, tried one by one in plain Python."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.unit.anonymity.tables import Case, random_case, satisfied, write_files

from dalenius.anonymity.classes import Groups
from dalenius.anonymity.losses import LOSSES
from dalenius.anonymity.models import DistinctDiversity, KAnonymity, Presence
from dalenius.anonymity.roles import Roles
from dalenius.anonymity.run import anonymize
from dalenius.anonymity.table import Table
from dalenius.anonymity.transformers.hiding import hide
from dalenius.errors import InputError


def brute_force(case: Case, loss: str) -> float | None:
    """The least loss of all nodes and all sets of suppressed classes; None where none is allowed."""
    table, roles = case.table, case.roles
    population = next((each.population for each in case.models if isinstance(each, Presence)), None)
    people = [] if population is None else list(zip(*(population[name].cells() for name in roles.quasi), strict=True))
    # the hierarchy of each column, by value; with a population, of all values that either has
    paths = list[dict[str | None, list[str | None]]]()
    for at, name in enumerate(roles.quasi):
        both = Table.of({name: [*table[name].cells(), *(person[at] for person in people)]})
        found = roles.hierarchy(both, name)
        paths.append(
            {
                value: [labels[own[code]] for labels, own in zip(found.labels, found.maps, strict=True)]
                for code, value in enumerate(found.labels[0])
            }
        )
    rows = list(zip(*(table[name].cells() for name in roles.quasi), strict=True))
    best: float | None = None
    for node in itertools.product(*(range(len(next(iter(each.values())))) for each in paths)):
        kept = defaultdict[tuple[str | None, ...], list[int]](list)
        beside = Counter(tuple(path[v][lv] for path, v, lv in zip(paths, who, node, strict=True)) for who in people)
        for number, row in enumerate(rows):
            kept[tuple(path[value][level] for path, value, level in zip(paths, row, node, strict=True))].append(number)
        failing = [key for key in {*kept, *beside} if not satisfied(case, kept.get(key, []), beside[key])]
        good = [key for key in kept if key not in failing]
        # every set of suppressed classes that holds all failing ones; failing ones alone, or more of them
        for many in range(len(good) + 1) if failing else [0]:
            for more in itertools.combinations(good, many):
                gone = [row for key in [*failing, *more] for row in kept.get(key, [])]
                if len(gone) > case.suppress * len(rows) + 1e-9:
                    continue
                shown = [kept[key] for key in good if key not in more]
                elsewhere = sum(beside[key] for key in beside if key in failing or key in more or key not in kept)
                if (failing or more) and not satisfied(case, gone, elsewhere):
                    continue
                value = measured(case, loss, paths, rows, node, shown, gone)
                best = value if best is None or value < best else best
    return best


def measured(case, loss, paths, rows, node, kept, gone) -> float:
    many = len(rows)
    if loss == "discernibility":
        return sum(len(each) ** 2 for each in kept) + many * len(gone)
    if loss == "class-size":
        return many / (len(kept) + bool(gone))
    found, most = 0.0, 0.0
    for at, (path, level) in enumerate(zip(paths, node, strict=True)):
        weight = case.roles.weight(case.roles.quasi[at])
        seen = Counter(row[at] for row in rows)
        for number, row in enumerate(rows):
            under = seen if number in gone else [v for v in seen if path[v][level] == path[row[at]][level]]
            if loss == "ncp":
                found += weight * (len(under) - 1) / max(len(seen) - 1, 1)
                most += weight
            else:
                found += weight * math.log2(sum(seen[value] for value in under) / seen[row[at]])
                most += weight * math.log2(many / seen[row[at]])
    return found / most if most else 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_nothing_is_better_than_the_optimum(loss: str, tmp_path: Path, rounds: Callable[[int], int]):
    write_files(tmp_path)
    reached, proved = 0, 0
    for seed in range(rounds(200)):
        case = random_case(np.random.default_rng([LOSSES.index(loss), seed]), tmp_path)
        best = brute_force(case, loss)
        if best is None:
            with pytest.raises(InputError):
                anonymize(case.table, case.roles, case.models, suppress=case.suppress, loss=loss)
            continue
        found = anonymize(case.table, case.roles, case.models, suppress=case.suppress, loss=loss)
        assert found.bound is not None and found.bound <= best + 1e-9 and found.loss.of(loss) >= best - 1e-9
        sure = all(isinstance(each, KAnonymity | DistinctDiversity) for each in case.models)
        assert found.optimal or not sure
        if found.optimal:
            assert found.gap == pytest.approx(0, abs=1e-9)
            assert found.loss.of(loss) == pytest.approx(best, abs=1e-9), seed
            proved += 1
        reached += 1
    assert reached >= rounds(200) / 3 and proved >= 0.95 * reached


def test_more_is_suppressed_where_failing_rows_are_too_few():
    # the two rows with 3 cannot go alone; with the three rows of another class they can, and the rest stays as it is
    table = Table.of({"a": ["1"] * 3 + ["2"] * 3 + ["3"] * 2 + ["4"] * 12})
    roles = Roles.from_dict({"quasi": ["a"]}, Path())
    found = anonymize(table, roles, [KAnonymity(3)], suppress=0.25)
    assert found.optimal and found.suppressed == 5 and found.loss.ncp == pytest.approx(0.25)
    less = anonymize(table, roles, [KAnonymity(3)], suppress=0.2)
    assert less.optimal and less.loss.ncp == 1


def test_sets_that_were_not_tried_are_a_bound_and_no_proof():
    # 25 of 40 classes must go with the failing one; sets of so many are not among the first few
    sizes = np.array([2, *[4] * 40])
    good, costs = sizes > 2, np.linspace(1, 2, 41)
    found = hide(Groups(sizes, {}), good, 170, costs, lambda groups: groups.sizes >= 100)
    assert found.kept is not None and not found.kept[0] and 100 <= int(sizes[~found.kept].sum()) <= 170
    assert 0 < found.least < float(costs[1:26].sum())
    # one must go: which is the cheapest that fits is proved
    found = hide(
        Groups(np.array([2, 9, 4, 4]), {}), np.arange(4) > 0, 8, np.array([0.0, 1, 3, 2]), lambda g: g.sizes > 2
    )
    assert found.least == 2 and found.kept is not None and found.kept.tolist() == [False, True, True, False]
    found = hide(Groups(np.array([2, 9]), {}), np.arange(2) > 0, 8, np.array([0.0, 1]), lambda g: g.sizes > 2)
    assert found.kept is None and found.least == math.inf


def test_nothing_is_better_with_a_population(tmp_path: Path, rounds: Callable[[int], int]):
    write_files(tmp_path)
    reached = 0
    for seed in range(rounds(200)):
        rng = np.random.default_rng(seed)
        case = random_case(rng, tmp_path)
        quasi = {name: case.table[name].cells() for name in case.roles.quasi}
        extra = int(rng.integers(case.table.rows, 3 * case.table.rows))
        drawn = [list(rng.choice(np.array(each, object), extra)) for each in quasi.values()]
        people = Table.of({name: [*own, *new] for (name, own), new in zip(quasi.items(), drawn, strict=True)})
        bounds = [(0.0, 0.7), (0.2, 0.6), (0.1, 1.0)][seed % 3]
        case = Case(case.table, case.roles, (KAnonymity(2), Presence(*bounds, people)), case.suppress)
        best = brute_force(case, "ncp")
        if best is None:
            with pytest.raises(InputError):
                anonymize(case.table, case.roles, case.models, suppress=case.suppress)
            continue
        found = anonymize(case.table, case.roles, case.models, suppress=case.suppress)
        assert found.loss.ncp == pytest.approx(best, abs=1e-9), seed
        greedy = anonymize(case.table, case.roles, case.models, suppress=case.suppress, method="greedy")
        assert greedy.loss.ncp >= best - 1e-9
        reached += 1
    assert reached >= rounds(200) / 4


def test_the_best_so_far_comes_with_how_far_it_may_be(tmp_path: Path):
    rng = np.random.default_rng(1)
    names = [f"q{at}" for at in range(9)]
    table = Table.of({name: [str(each) for each in rng.integers(0, 40, 2000)] for name in names})
    roles = Roles.from_dict(
        {"quasi": names, "hierarchies": {name: {"width": 2, "levels": 6} for name in names}}, tmp_path
    )
    found = anonymize(table, roles, [KAnonymity(5)], suppress=0.05, time=0.2)
    assert not found.optimal and found.bound is not None and found.gap is not None
    assert 0 <= found.bound < found.loss.ncp and found.gap == pytest.approx(found.loss.ncp - found.bound)
    assert found.models[0].met

"""Joint questions over three real tables: what is added, what is charged, what is refused before anything is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.together import NAMES, Hospital, ask, charges, hospitals, policy, write

from dalenius import Curator
from dalenius.app.joint_seat import Seat
from dalenius.errors import DaleniusError, NotAllowedError, PartyGoneError, PartyRefusedError
from dalenius.joint import run_files
from dalenius.joint.meeting import new_run_id
from dalenius.ledger import Ledger
from dalenius.measuring._exact import exact
from dalenius.measuring.measures import count_in
from dalenius.queries.ask import Ask
from dalenius.queries.jointly.kind import KIND, JointRequest
from dalenius.queries.jointly.planning import JointAsk
from dalenius.queries.planning import plan_ask
from dalenius.releasing.leaving import Asker, release
from dalenius.tables.policy import JOINT

BY_REGION = "SELECT region, COUNT(*) AS n, SUM(cost) AS total, AVG(cost) AS mean FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[Hospital]:
    return hospitals(tmp_path_factory.mktemp("three"))


def seat(hospital: Hospital, question: str = BY_REGION, epsilon: float = 1.0, names: tuple[str, ...] = NAMES) -> Seat:
    name = hospital.party.card.name
    return Seat.of(hospital.party, JointAsk(question, epsilon, name, names, max(1, (len(names) - 1) // 2)))


def integers(asker: Asker, plan: Any, snapshot: Any) -> list[list[int]]:
    """Before any noise."""
    return exact(plan, snapshot.engine(asker.engines), asker.salt(snapshot.dataset))


def test_before_noise_the_parts_add_up_to_the_integers_of_the_pooled_table(three: list[Hospital], tmp_path: Path):
    parts = []
    for each in three:
        own = seat(each)
        parts.append(integers(own.asker, own.planned.plan, own.planned.snapshot))
    bits = [each.bits for each in own.planned.plan.measures]

    write(tmp_path / "visits.csv", [row for each in three for row in each.rows])
    (tmp_path / "visits.toml").write_text(policy("all", [*NAMES, "all"], more="[analysts.ana]\nepsilon = 5"))
    pooled = Curator(tmp_path / "home")
    pooled.protect(tmp_path / "visits.toml", yes=True)
    asker = Asker("ana", pooled.ledger, pooled.registry, pooled.engines)
    found = plan_ask(asker, Ask(BY_REGION, 1.0))
    whole = integers(asker, count_in(found.plan, bits), found.snapshot)

    added = [[sum(cells) for cells in zip(*measure, strict=True)] for measure in zip(*parts, strict=True)]
    assert added == whole
    assert any(value for measure in whole for value in measure)


def test_what_is_opened_is_the_sum_of_what_the_parties_wrote_down(three: list[Hospital]):
    question = "SELECT region, COUNT(*) AS n, AVG(cost) AS mean FROM visits GROUP BY region"
    release, *others = ask(three, question)
    assert not isinstance(release, DaleniusError), release
    assert [each["charged"] for each in others] == [True, True]
    brought, stored = [], []
    for each in three:
        own = seat(each, question)
        (record,) = own.files.unfinished(own.mark, "clinic")
        assert record.inputs is not None
        brought.append(record.inputs)
        ledger = Curator(each.home).ledger
        content = ledger.content(ledger.receipt(each.curator.releases()[-1].id))[1]
        stored.append(json.loads(content)["measures"])
    opened = [int(value) for measure in stored[0] for value in measure["values"]]
    assert opened == [sum(each) for each in zip(*brought, strict=True)]
    assert stored[0] == stored[1] == stored[2]


def test_every_ledger_pays_the_same_and_the_same_again_is_free(three: list[Hospital]):
    before = [len(charges(each)) for each in three]
    question = "SELECT COUNT(*) AS n FROM visits WHERE cost > 50"
    first = ask(three, question, 0.5)[0]
    own = [charges(each)[count:] for each, count in zip(three, before, strict=True)]
    assert [len(each) for each in own] == [1, 1, 1]
    assert {each["epsilon"] for (each,) in own} == {0.5} and len({each["rho"] for (each,) in own}) == 1
    assert {each["analyst"] for (each,) in own} == {JOINT} and {each["kind"] for (each,) in own} == {"joint"}
    again = ask(three, question, 0.5)[0]
    assert again.free and again.rows == first.rows and not first.free
    assert [len(charges(each)) for each in three] == [count + 1 for count in before]
    afresh = ask(three, question, 0.5, fresh=True)[0]
    assert not afresh.free
    assert [len(charges(each)) for each in three] == [count + 2 for count in before]


def test_noise_is_made_for_one_person_at_all_parties_unless_the_policies_say_otherwise(tmp_path: Path):
    for folder in ("all", "one"):
        (tmp_path / folder).mkdir()
    everywhere = hospitals(tmp_path / "all", people=5)
    apart = hospitals(tmp_path / "one", people=5, more="overlap = 1")
    question = "SELECT COUNT(*) FROM visits"
    wide, narrow = (seat(found[0], question).planned for found in (everywhere, apart))
    assert (wide.overlap, narrow.overlap) == (3, 1)
    assert wide.mechanisms[0].squared_sensitivity == 9 * narrow.mechanisms[0].squared_sensitivity == 81
    for each in (wide, narrow):  # both cost what was typed, and hardly less
        assert 0.999 * each.rho < sum(float(one.rho) for one in each.mechanisms) <= each.rho


DIFFERENT: dict[str, tuple[dict[str, object], str]] = {
    "bounds": ({"high": 300}, "visits.cost"),
    "limit": ({"rows": 4}, "limits of one unit"),
    "overlap": ({"more": "overlap = 2"}, "overlap"),
    "delta": ({"delta": 1e-7}, "rho"),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_another_plan_at_one_party_is_refused_and_named_and_nobody_pays(tmp_path: Path, what: str):
    other, key = DIFFERENT[what]
    found = hospitals(tmp_path, people=5, other={"lab": other})
    own, *_ = ask(found, "SELECT region, SUM(cost) FROM visits GROUP BY region", patience=3)
    assert isinstance(own, PartyRefusedError) and own.party == "lab"
    assert key in str(own), own
    assert [charges(each) for each in found] == [[], [], []]
    assert not list((found[0].home / "joint" / "runs").glob("*"))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"more": "", "partners": '"clinic"'}, "may not be asked with these parties"),
        ({"epsilon": 0.1}, "no ε = 1 left"),
    ],
)
def test_a_party_that_may_not_take_part_says_so_and_nobody_pays(tmp_path: Path, other: Any, words: str):
    found = hospitals(tmp_path, people=5, other={"lab": other})
    own, *_ = ask(found, "SELECT COUNT(*) FROM visits", patience=3)
    assert isinstance(own, PartyRefusedError) and words in str(own)
    assert [charges(each) for each in found] == [[], [], []]


def test_a_party_that_counts_for_long_is_waited_for(tmp_path: Path):
    found = hospitals(tmp_path, people=5, other={"lab": {"answer": 2.5}})
    release = ask(found, "SELECT COUNT(*) AS n FROM visits", patience=1.0)[0]
    assert not isinstance(release, DaleniusError), release


def test_limits_that_protect_found_do_not_count(tmp_path: Path):
    found = hospitals(tmp_path, people=30)
    for each in found:
        file = tmp_path / f"{each.party.card.name}-data" / "visits.toml"
        file.write_text(file.read_text().replace("rows = 3", ""))
        each.curator.protect(file, yes=True)
    own, *_ = ask(found, "SELECT COUNT(*) FROM visits", patience=3)
    assert isinstance(own, DaleniusError) and "rows" in str(own)
    assert all(JOINT not in {entry["analyst"] for entry in charges(each)} for each in found)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("SELECT COUNT(DISTINCT patient) FROM visits", ""),
        ("SELECT MEDIAN(cost) FROM visits", "no quantiles"),
        ("SELECT patient, COUNT(*) FROM visits GROUP BY patient", ""),
    ],
)
def test_questions_whose_parts_do_not_add_up_are_refused(three: list[Hospital], question: str, words: str):
    with pytest.raises(DaleniusError) as refused:
        seat(three[0], question)
    assert words in str(refused.value)


def test_a_stranger_hears_nothing_of_tables(three: list[Hospital]):
    for question in ("SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM nothing"):
        with pytest.raises(NotAllowedError) as refused:
            seat(three[1], question, names=("lab", "stranger"))
        assert "visits" not in str(refused.value) and "nothing" not in str(refused.value)


def test_a_run_whose_notes_are_lost_is_dead_and_its_charge_stays(three: list[Hospital]):
    first = three[0]
    question = "SELECT COUNT(*) AS n FROM visits WHERE cost < 10"
    before = [len(charges(each)) for each in three]
    ask(three, question)
    own = seat(three[1], question)
    (record,) = own.files.unfinished(own.mark, "clinic")
    own.files.forget(record.run)
    with pytest.raises(DaleniusError, match="cannot be taken up again"):
        own.take(record.run, "clinic")
    assert [len(charges(each)) for each in three] == [count + 1 for count in before]
    assert seat(first, question).take(record.run, "clinic").inputs is not None


def test_a_party_that_is_away_leaves_the_question_open_and_free_to_go_on(tmp_path: Path):
    found = hospitals(tmp_path, people=20)
    question = "SELECT COUNT(*) AS n FROM visits"
    gone = ask(found[:2], question, patience=1.5, names=("lab", "registry"))[0]
    assert isinstance(gone, PartyGoneError) and gone.party == "registry"
    release = ask(found, question)[0]
    assert not isinstance(release, DaleniusError)
    assert [len(charges(each)) for each in found] == [1, 1, 1]


class Away:
    """Parties of which one is gone after this one has charged."""

    def add_up(self, charge: int, inputs: Callable[[], Sequence[int]]) -> Sequence[int]:
        error = PartyGoneError("registry", why="It left.", fix="Wait.")
        error.resumable = True
        raise error


def broken_off(own: Seat) -> bytes:
    """A run that this party has charged, and nothing more."""
    run = new_run_id()
    own.take(run, "clinic")
    with pytest.raises(PartyGoneError) as gone:
        release(KIND.prepare(own.asker, JointRequest(own.planned, own.key(run), Away())), own.asker)
    assert gone.value.charge.epsilon == 1.0
    return run


def state_of(own: Seat, run: bytes) -> str:
    charged = own.charged(run)
    return "" if charged is None else charged[1]


def failures(hospital: Hospital) -> int:
    return sum(entry.kind == "failure" for entry in Ledger.open(hospital.home).entries())


def test_a_charge_stays_open_while_its_run_can_be_taken_up_and_then_fails_for_good(tmp_path: Path):
    found = hospitals(tmp_path, people=10)
    clinic, question = found[0], "SELECT COUNT(*) AS n FROM visits"
    own = seat(clinic, question)
    first, second = broken_off(own), broken_off(own)
    assert failures(clinic) == 0 and state_of(own, first) == "claimed"
    own.files.forget(second)
    for _ in range(2):
        with pytest.raises(DaleniusError, match="cannot be taken up again"):
            seat(clinic, question).take(second, "clinic")
    assert failures(clinic) == 1 and state_of(own, second) == "failed"
    answer = ask(found, question)[0]  # goes on with the first, at no further charge
    assert not isinstance(answer, DaleniusError)
    assert [len(charges(each)) for each in found] == [2, 1, 1]
    assert state_of(own, first) == "answered"


def test_a_run_is_never_looked_at_twice_though_the_data_changed_meanwhile(tmp_path: Path):
    found = hospitals(tmp_path, people=10)
    clinic, question = found[0], "SELECT COUNT(*) AS n FROM visits"
    own = seat(clinic, question)
    run = broken_off(own)
    write(tmp_path / "clinic-data" / "visits.csv", clinic.rows[:5])
    clinic.curator.refresh("visits")
    later = seat(clinic, question)
    with pytest.raises(DaleniusError, match="cannot be taken up again"):
        later.take(run, "clinic")
    later.files.forget(run)
    with pytest.raises(DaleniusError, match="cannot be taken up again"):
        later.take(run, "clinic")
    assert len(charges(clinic)) == 1


def test_a_run_is_dead_when_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = hospitals(tmp_path, people=10)
    own = seat(found[0], "SELECT COUNT(*) AS n FROM visits")
    run = broken_off(own)
    monkeypatch.setattr(run_files, "WINDOW", -1.0)
    with pytest.raises(DaleniusError, match="cannot be taken up again"):
        own.take(run, "clinic")
    assert not list((found[0].home / "joint" / "runs").iterdir())
    assert len(charges(found[0])) == 1 and failures(found[0]) == 1


def test_what_goes_wrong_with_rows_and_files_is_not_told_to_partners(tmp_path: Path):
    found = hospitals(tmp_path, people=10)
    (tmp_path / "lab-data" / "visits.csv").write_text("patient,region,cost\nx,north,1\n")
    own, told, _ = ask(found, "SELECT COUNT(*) FROM visits", patience=3)
    assert isinstance(own, PartyRefusedError) and "This party could not take part" in str(own)
    for each in (own, told):
        assert "visits.csv" not in str(each) and "lab-data" not in str(each) and "changed" not in str(each)
    assert [charges(each) for each in found] == [[], [], []]


def test_a_coarser_count_makes_room_and_too_large_numbers_are_refused(tmp_path: Path):
    found = hospitals(tmp_path, people=5, high=10**7)
    plan = seat(found[0], BY_REGION).planned
    for measure, room in zip(plan.plan.measures, plan.room, strict=True):
        assert room >= 10**8 * measure.limit
    assert 3 * room + plan.mechanisms[-1].reach < 2**60
    for each in found:
        each.curator.ledger.database.close()
    (tmp_path / "large").mkdir()
    large = hospitals(tmp_path / "large", people=5, high=10**10)
    with pytest.raises(DaleniusError, match="too large for a joint sum"):
        seat(large[0], "SELECT SUM(cost) FROM visits")

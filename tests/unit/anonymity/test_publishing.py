"""Publishing rows of a protected table: on record before they leave, once, without a price, and said ever after."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from tests.published import PROTECTED, ROLES, laid_out, protected_in

from dalenius.anonymity import Options, Roles, asked, check, publishing, read_table
from dalenius.anonymity import table as tables
from dalenius.curator import Curator
from dalenius.errors import InputError, LedgerCorruptError, NotAllowedError, OtherHomeError, SourceChangedError
from dalenius.ledger import publications
from dalenius.ledger.requests import OWNER
from dalenius.ledger.verification import verify
from dalenius.releasing.stored import read_release

K5 = Options(k=5)
GONE = "ε no longer bounds what can be learned"


@pytest.fixture
def curator(tmp_path: Path) -> Curator:
    return protected_in(tmp_path)


def entries(curator: Curator) -> list[str]:
    return [each.kind for each in curator.ledger.entries()]


def test_what_is_published_keeps_the_models_and_stands_in_the_history_with_its_hash(curator, tmp_path):
    before = curator.ledger.balance("people")
    found = curator.publish("people", K5, output=tmp_path / "out.csv", yes=True, reason="a law asks for it")
    roles = Roles(quasi=("age", "zip", "sex"), sensitive=("diagnosis",))
    assert check(read_table(tmp_path / "out.csv"), roles, asked(k=5)).met
    assert found.record is not None
    assert hashlib.sha256((tmp_path / "out.csv").read_bytes()).hexdigest() == found.record.release
    (entry,) = curator.ledger.records(("publication",))
    assert entry.data["release"] == found.record.release and entry.data["reason"] == "a law asks for it"
    assert "P00" not in entry.body  # no row, no name
    assert curator.ledger.balance("people") == before  # it adds to no total
    assert verify(curator.ledger, given=[curator.ledger.receipt(found.record.id)]).receipts == 1


def test_it_has_no_price_wherever_releases_are_listed(curator):
    found = curator.publish("people", K5, yes=True)
    stored = curator.releases()[-1]
    assert stored.kind == "publication"
    assert dict(stored.charge) == {"epsilon": None, "delta": None, "rho": None}
    told = read_release(curator.ledger, stored.id)
    assert told["content"]["facts"]["rows"] == 300 and told["receipt"]["charge"]["epsilon"] is None
    assert found.to_dict()["guarantee"] is None


def test_everybody_is_told_from_then_on_and_nobody_before(curator):
    ana = curator.analyst("ana")
    count = "SELECT COUNT(*) AS n FROM people"
    assert not any(GONE in note for note in ana.preview(count).notes)
    curator.publish("people", K5, yes=True)
    assert any(GONE in note for note in ana.preview(count).notes)
    assert any(GONE in note for note in ana.explain(count).notes)
    assert any(GONE in note for note in ana.ask(count, epsilon=0.1).notes)
    assert any(GONE in note for note in ana.preview_many([count], epsilon=0.1).notes)
    assert all(GONE in each.notes[-1] for each in ana.ask_many([count], epsilon=0.2).releases)
    assert ana.releases()[-1].kind != "publication"  # nobody else's release


def test_a_history_that_is_read_anew_or_from_its_checkpoint_says_the_same(curator):
    curator.publish("people", K5, yes=True)
    from dalenius.ledger.ledger import Ledger
    from dalenius.ledger.proof import _kept, _restored

    found = Ledger.open(curator.home).published("people")
    assert len(found) == 1
    with curator.ledger.state() as state:
        assert _restored(_kept(state)).published("people") == found


def test_new_people_were_not_in_it(curator, tmp_path):
    curator.publish("people", K5, yes=True)
    text = (tmp_path / "people.csv").read_text().replace("P0", "Q0")
    (tmp_path / "people.csv").write_text(text)
    curator.refresh("people")  # the same people, for all that anybody knows
    assert curator.ledger.published("people")
    (tmp_path / "people.csv").write_text(text.replace("Q0", "R0"))
    curator.refresh("people", new_people=True, yes=True, reason="wave 2, drawn from people not in wave 1")
    assert not curator.ledger.published("people")


def test_without_a_yes_nothing_is_written_and_nothing_is_on_record(curator, tmp_path):
    with pytest.raises(InputError, match=r"cannot be undone.*yes"):
        curator.publish("people", K5, output=tmp_path / "out.csv")
    look = curator.publish("people", K5, dry_run=True)
    assert look.facts["rows"] == 300 and look.record is None
    assert "publication" not in entries(curator)
    assert not (tmp_path / "out.csv").exists() and not (curator.home / publishing.FOLDER).exists()


def test_the_same_request_is_the_same_publication(curator, tmp_path):
    first = curator.publish("people", K5, yes=True)
    again = curator.publish("people", K5, output=tmp_path / "again.csv", yes=True)
    assert again.free and again.record == first.record and entries(curator).count("publication") == 1
    assert (tmp_path / "again.csv").read_bytes() == first.file.read_bytes()
    curator.publish("people", Options(k=6), yes=True)
    assert entries(curator).count("publication") == 2


def test_the_record_is_durable_before_the_file_appears(curator, tmp_path, monkeypatch):
    """Whoever is interrupted while the file is written finds the entry, and no part of the file; then all of it."""
    seen = []

    def interrupted(*_: object) -> None:
        seen.append(entries(curator).count("publication"))
        raise KeyboardInterrupt

    monkeypatch.setattr("shutil.copyfile", interrupted)
    with pytest.raises(KeyboardInterrupt):
        curator.publish("people", K5, output=tmp_path / "out.csv", yes=True)
    assert seen == [1]
    assert not [each for each in tmp_path.iterdir() if "out.csv" in each.name]
    monkeypatch.undo()
    assert curator.publish("people", K5, output=tmp_path / "out.csv", yes=True).free
    assert (tmp_path / "out.csv").exists()


def test_what_cannot_be_recorded_does_not_leave(curator, tmp_path, monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise LedgerCorruptError("No.", why="", fix="")

    monkeypatch.setattr(publications, "record", broken)
    with pytest.raises(LedgerCorruptError):
        curator.publish("people", K5, output=tmp_path / "out.csv", yes=True)
    assert not [each for each in tmp_path.iterdir() if "out.csv" in each.name]


def test_a_half_written_file_is_not_left_in_the_home_either(curator, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, "_write_csv", interrupted)
    with pytest.raises(KeyboardInterrupt):
        curator.publish("people", K5, yes=True)
    assert not list((curator.home / publishing.FOLDER).iterdir())


def test_files_that_changed_are_not_published(curator, tmp_path):
    (tmp_path / "people.csv").write_text((tmp_path / "people.csv").read_text() + "X,30,53711,F,flu\n")
    with pytest.raises(SourceChangedError):
        curator.publish("people", K5, yes=True)
    assert "publication" not in entries(curator)


def test_a_stored_file_that_was_changed_is_not_handed_out(curator, tmp_path):
    found = curator.publish("people", K5, yes=True)
    found.file.write_text("name\nAnn\n")
    with pytest.raises(LedgerCorruptError, match="changed"):
        curator.publish("people", K5, output=tmp_path / "out.csv", yes=True)
    assert not (tmp_path / "out.csv").exists()


def test_the_source_is_never_written_over(curator, tmp_path):
    for name in ("people.csv", "zip.csv"):
        with pytest.raises(InputError, match="one of the files that are read"):
            curator.publish("people", K5, output=tmp_path / name, yes=True)
    with pytest.raises(NotAllowedError, match="would lie in a home"):
        curator.publish("people", K5, output=curator.home / "out.csv", yes=True)


def test_only_the_owner_publishes(curator):
    with pytest.raises(NotAllowedError, match="published by the owner"):
        curator.analyst("ana").obtain("publication", {"table": "people", "k": 5, "yes": True})
    done = curator.analyst(OWNER).obtain("publication", {"table": "people", "k": 5, "yes": True})
    assert done.to_dict()["published"] is True


def test_an_unknown_option_names_the_nearest(curator):
    with pytest.raises(InputError, match=r"no option 'supress'.*Did you mean 'suppress'"):
        curator.analyst(OWNER).obtain("publication", {"table": "people", "k": 5, "supress": 0.1})


def test_a_series_remembers_who_had_which_class(curator, tmp_path):
    state = tmp_path / "series.state"
    options = Options(m=2, id="name", previous=str(state))
    first = curator.publish("people", options, yes=True)
    assert state.stat().st_mode & 0o777 == 0o600 and first.facts["release"] == 1
    assert curator.publish("people", options, yes=True).facts["release"] == 2  # its state is another one now


def test_a_curve_leaves_out_what_cannot_be_reached(tmp_path):
    from dalenius.anonymity.sources import files_rows
    from dalenius.tables.anonymity import read_unprotected

    name, source, section = read_unprotected(laid_out(tmp_path, 40))
    rows = files_rows(name, source, section, None)
    found = publishing.loss_curve(rows.read(), rows, Options(l=2), (2, 5, 41, 1))
    assert [each["k"] for each in found] == [2, 5]
    assert found[0]["loss"]["ncp"] <= found[1]["loss"]["ncp"]


def second(curator: Curator, folder: Path, *, source: str = '"others.csv"', name: str = "others") -> None:
    """Another protected table, of other people."""
    rows = (folder / "people.csv").read_text().replace("P0", "Q0")
    (folder / "others.csv").write_text(rows)
    policy = (PROTECTED + ROLES).replace('"people"', f'"{name}"').replace('"people.csv"', source)
    (folder / f"{name}.toml").write_text(policy)
    curator.protect(folder / f"{name}.toml")


def asked_of(curator: Curator, source: list[str], **more: object) -> publishing.Published:
    section = curator.policy("people").anonymity
    given = {"table": "people", "k": 5, "yes": True, "source": source, "section": section, **more}
    return cast("publishing.Published", curator.analyst(OWNER).obtain("publication", given))


def test_files_of_two_data_sets_or_of_a_table_and_others_are_refused(curator, tmp_path):
    second(curator, tmp_path)
    mine, theirs = str(tmp_path / "people.csv"), str(tmp_path / "others.csv")
    with pytest.raises(NotAllowedError, match="several data sets"):
        asked_of(curator, [mine, theirs])
    (tmp_path / "free.csv").write_text((tmp_path / "people.csv").read_text().replace("P0", "R0"))
    with pytest.raises(NotAllowedError, match=r"only in part.*Name the table: people"):
        asked_of(curator, [mine, str(tmp_path / "free.csv")])
    (tmp_path / "copy.csv").write_text((tmp_path / "people.csv").read_text())
    with pytest.raises(NotAllowedError, match="only in part"):
        asked_of(curator, [str(tmp_path / "copy.csv")])
    assert "publication" not in entries(curator)
    assert asked_of(curator, [mine]).record is not None


def test_other_files_of_one_table_are_another_publication(curator, tmp_path):
    (tmp_path / "more.csv").write_text((tmp_path / "people.csv").read_text().replace("P0", "S0"))
    second(curator, tmp_path, source='["others.csv", "more.csv"]')
    first = asked_of(curator, [str(tmp_path / "others.csv")])
    other = asked_of(curator, [str(tmp_path / "more.csv")])
    assert not other.free and entries(curator).count("publication") == 2
    assert first.record is not None and other.record is not None
    assert first.record.table == other.record.table == "others" and first.record.key != other.record.key
    assert asked_of(curator, [str(tmp_path / "more.csv")]).free


def test_a_protected_table_is_no_hierarchy_population_or_state(curator, tmp_path):
    second(curator, tmp_path)
    (tmp_path / "copy.txt").write_text((tmp_path / "others.csv").read_text())
    for name in ("others.csv", "copy.txt"):
        file = str(tmp_path / name)
        section = {**curator.policy("people").anonymity, "hierarchies": {"zip": file}}
        with pytest.raises(NotAllowedError, match="is a protected table's file"):
            asked_of(curator, [str(tmp_path / "people.csv")], section=section, dry_run=True)
        with pytest.raises(NotAllowedError, match="is a protected table's file"):
            curator.publish("people", Options(presence=(0, 0.5), population=file), dry_run=True)
        with pytest.raises(NotAllowedError, match="is a protected table's file"):
            curator.publish("people", Options(m=2, id="name", previous=file), yes=True)


def test_what_another_home_protects_is_neither_published_nor_read_beside(curator, tmp_path, monkeypatch):
    monkeypatch.delenv("DALENIUS_HOME", raising=False)
    other = tmp_path / "elsewhere"
    other.mkdir()
    protected_in(other, 120)
    theirs = str(other / "people.csv")
    with pytest.raises(OtherHomeError):
        asked_of(curator, [theirs])
    with pytest.raises(OtherHomeError):
        curator.publish("people", Options(presence=(0, 0.5), population=theirs), dry_run=True)


def test_a_series_of_unprotected_files_remembers_over_http_too(curator, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    laid_out(data, 120)
    (data / "people.csv").write_text((data / "people.csv").read_text().replace("P0", "Q0"))
    state = tmp_path / "series.state"
    given = {"m": 2, "id": "name", "previous": str(state), "k": None}
    found = asked_of(curator, [str(data / "people.csv")], **given)
    assert found.record is None and found.facts["release"] == 1
    assert asked_of(curator, [str(data / "people.csv")], **given).facts["release"] == 2


def test_a_series_that_is_interrupted_after_its_record_finds_its_state(curator, tmp_path, monkeypatch):
    state = tmp_path / "series.state"
    options = Options(m=2, id="name", previous=str(state))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(publishing, "keep_state", interrupted)
    with pytest.raises(KeyboardInterrupt):
        curator.publish("people", options, yes=True)
    monkeypatch.undo()
    assert not state.exists() and entries(curator).count("publication") == 1
    again = curator.publish("people", options, yes=True)
    assert again.free and state.stat().st_mode & 0o777 == 0o600
    assert curator.publish("people", options, yes=True).facts["release"] == 2


def test_a_state_is_no_output_and_lies_in_no_home(curator, tmp_path):
    state = tmp_path / "out.csv"
    with pytest.raises(InputError, match="named for two things"):
        curator.publish("people", Options(m=2, id="name", previous=str(state)), output=state, yes=True)
    with pytest.raises(NotAllowedError, match="would lie in a home"):
        curator.publish("people", Options(m=2, id="name", previous=str(curator.home / "state.json")), yes=True)
    assert "publication" not in entries(curator)


def test_no_file_of_a_protected_table_is_written_over(curator, tmp_path):
    second(curator, tmp_path)
    before = (tmp_path / "others.csv").read_text()
    (tmp_path / "link.csv").hardlink_to(tmp_path / "others.csv")
    for name in ("others.csv", "link.csv"):
        with pytest.raises(InputError, match="a file of a protected table"):
            curator.publish("people", K5, output=tmp_path / name, yes=True)
    assert (tmp_path / "others.csv").read_text() == before


@pytest.mark.parametrize("options", [Options(k=1), Options(l=1), Options(t=1.0), Options(k=1, l=1, t=1)])
def test_what_every_table_satisfies_publishes_no_protected_one(curator, options):
    with pytest.raises(InputError, match=r"Every table has .* leave as it is"):
        curator.publish("people", options, yes=True)
    assert "publication" not in entries(curator)


def test_zero_is_something_that_was_asked():
    assert Options(t=0.0).words == "t = 0" and Options(beta=0.0, k=2).words == "k = 2, beta = 0"
    assert not Options(t=0.0).asks_nothing


def test_a_publication_is_of_the_people_whose_rows_left(curator):
    """The epoch on record is that of the rows, whoever the data set is about by then."""
    from dalenius.anonymity.sources import table_rows

    rows = table_rows("people", curator.registry)
    assert rows.version is not None
    earlier = replace(rows, version=replace(rows.version, epoch=3))
    found = publishing.publish(curator.ledger, earlier, publishing.Wanted("people", K5, yes=True))
    assert found.record is not None and found.record.epoch == 3 and not curator.ledger.published("people")


def with_events(folder: Path) -> Curator:
    """A protected table in which some people have several rows, with columns in no role."""
    policy = laid_out(folder, 100, protected=True)
    lines = (folder / "people.csv").read_text().splitlines()
    rows = [f"{each},w{number}" for number, each in enumerate([*lines[1:], *lines[1:4]])]
    (folder / "people.csv").write_text("\n".join([f"{lines[0]},ward", *rows]) + "\n")
    policy.write_text(policy.read_text().replace("rows = 1", "rows = 2").replace('identifiers = ["name"]\n', ""))
    curator = Curator(folder / ".dalenius")
    curator.protect(policy)
    return curator


def test_who_a_row_is_about_is_never_published_and_several_rows_are_said_aloud(tmp_path):
    curator = with_events(tmp_path)
    found = curator.publish("people", K5, output=tmp_path / "out.csv", yes=True)
    assert set(read_table(tmp_path / "out.csv")["name"].cells()) == {"*"}
    assert found.to_dict()["as_they_are"] == ["ward"]
    (said,) = found.to_dict()["warnings"]
    assert said.startswith("6 rows belong to somebody who has another: k counts rows, not people")
    (entry,) = curator.ledger.records(("publication",))
    assert entry.data["facts"]["warnings"][0].startswith("Some rows belong")  # no count of what did not leave
    assert curator.publish("people", K5, yes=True).to_dict()["warnings"]  # on record before: said again


def test_a_second_publication_of_the_same_people_warns_of_intersection(curator):
    assert not curator.publish("people", K5, yes=True).facts["warnings"]
    for dry in (True, False):
        (said,) = curator.publish("people", Options(k=6), yes=True, dry_run=dry).facts["warnings"]
        assert "published before" in said and "intersect" in said


def test_a_table_in_which_everything_is_lost_says_what_to_change(curator):
    (said,) = curator.publish("people", Options(k=290), dry_run=True).facts["warnings"]
    assert "Everything is lost" in said and "smaller k" in said


def test_what_cannot_be_read_says_which_line_or_what_to_save_it_as(tmp_path):
    from dalenius.anonymity.sources import read_files

    (tmp_path / "a.csv").write_bytes("name,zip\nAnn,1\nZoë,2\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"Line 3 of a\.csv is not UTF-8"):
        read_files([tmp_path / "a.csv"])
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"spreadsheet.*Save the sheet as CSV UTF-8"):
        read_files([tmp_path / "a.xlsx"])

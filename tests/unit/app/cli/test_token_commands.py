"""`dalenius token`, as an owner meets it."""

import json
import os
import stat

import pytest

from dalenius.app.cli import build, run
from dalenius.errors import AuthMissingError
from dalenius.ledger import Budget, Ledger, verify
from dalenius.ledger.chain import digest
from dalenius.ledger.tokens import Tokens


@pytest.fixture
def home(tmp_path):
    ledger = Ledger.create(tmp_path / "home")
    ledger.set_budget("students", Budget(1.0, 1e-6, unit="student_id"))
    ledger.set_allotment("students", "ana", 0.8)
    ledger.database.close()
    return ledger.home


@pytest.fixture
def call(home, capsys):
    def calling(*words):
        code = run(build(), ["token", *map(str, words), "--home", str(home)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return calling


@pytest.fixture
def answer(call):
    """Exit code and the object."""

    def answering(*words):
        code, out, _ = call(*words, "--json")
        assert out.count("\n") == 1
        return code, json.loads(out)

    return answering


@pytest.fixture
def tokens(home):
    return Tokens(Ledger.open(home))


ANA = ("create", "--role", "analyst", "--analyst", "ana")


def unwrapped(text):
    """On one line: where a line ends depends on how long the path of this run's folder is."""
    return " ".join(text.split())


def test_a_token_is_printed_once_and_alone(call, tokens, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")  # never wrapped: it is copied
    code, out, err = call(*ANA)
    assert code == 0 and out.count("\n") == 1
    token = tokens.check(out.strip())
    assert (token.role, token.analyst, token.trusted) == ("analyst", "ana", False)
    assert "shown this once: only its hash is kept" in unwrapped(err) and "Warning" not in err
    assert out.strip() not in str(call("list")) + str(call("list", "--json"))
    verify(tokens._ledger)


def test_json_has_the_token_and_what_is_known_of_it(answer, tokens):
    code, made = answer(*ANA, "--trusted", "--note", "the notebook", "--expires", "12h")
    token = tokens.check(made.pop("token"))
    assert code == 0 and made == token.to_dict()
    assert (made["trusted"], made["note"], made["state"]) == (True, "the notebook", "active")


@pytest.mark.parametrize(("life", "days"), [("12h", 0.5), ("30d", 30), ("52w", 364), ("366d", 366)])
def test_a_life_is_hours_days_or_weeks(answer, life, days):
    from datetime import datetime

    _, made = answer("create", "--role", "owner", "--expires", life)
    lived = datetime.fromisoformat(made["expires"]) - datetime.fromisoformat(made["created"])
    assert abs(lived.total_seconds() / 86400 - days) < 1e-3


@pytest.mark.parametrize(
    "words",
    [
        ("--role", "king"),
        ("--role", "analyst"),
        ("--role", "owner", "--analyst", "ana"),
        *(("--role", "owner", "--expires", life) for life in ("", "30", "1y", "0d", "-1d", "1.5d", "367d", "\u0661d")),
        ("--role", "owner", "--expires", "999999w"),
        ("--role", "owner", "--note", "a\nb"),
        (),
    ],
)
def test_what_makes_no_sense_is_bad_input_and_makes_no_token(call, answer, tokens, tmp_path, words):
    file = tmp_path / "token"
    assert call("create", *words, "-o", file)[:2] == (2, "") and not file.exists()
    code, found = answer("create", *words)
    assert (code, found["error"]["code"]) == (2, "input.invalid")
    assert tokens.all() == []


def test_a_token_in_a_file_is_for_its_owner_only_and_not_printed(call, answer, tokens, tmp_path):
    file = tmp_path / "ana.token"
    code, out, err = call(*ANA, "-o", file)
    text = file.read_text().strip()
    assert code == 0 and stat.S_IMODE(file.stat().st_mode) == 0o600
    assert tokens.check(text).analyst == "ana" and text not in out + err and "only its hash is kept" in unwrapped(out)
    code, made = answer(*ANA, "-o", tmp_path / "second.token")
    second = (tmp_path / "second.token").read_text().strip()
    assert (
        made["file"].endswith("second.token") and second not in str(made) and digest(second.encode()) not in str(made)
    )


@pytest.mark.parametrize("how", ["file", "link", "dangling link"])
def test_a_file_that_is_there_is_never_replaced(call, tokens, tmp_path, how):
    file, other = tmp_path / "ana.token", tmp_path / "other"
    if how != "dangling link":
        (file if how == "file" else other).write_text("precious")
    if how != "file":
        file.symlink_to(other)
    code, out, err = call(*ANA, "-o", file)
    assert code == 2 and out == "" and "there already" in unwrapped(err) and tokens.all() == []
    assert not other.exists() if how == "dangling link" else file.read_text() == "precious"


def test_a_file_that_cannot_be_written_is_something_missing(call, tokens, tmp_path):
    assert call(*ANA, "-o", tmp_path / "no" / "such" / "folder")[0] == 5
    assert tokens.all() == []


def test_a_token_that_could_not_be_written_is_revoked(call, tokens, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, out, _ = call(*ANA, "-o", tmp_path / "ana.token", "--json")
    monkeypatch.undo()
    assert code == 5 and json.loads(out)["error"]["code"] == "source.unavailable"
    assert not (tmp_path / "ana.token").exists()
    assert [each.state for each in tokens.all()] == ["revoked"]


def test_an_analyst_without_an_allotment_is_warned_about(call):
    code, _, err = call("create", "--role", "analyst", "--analyst", "eve")
    assert code == 0 and "eve has no allotment yet" in unwrapped(err)
    assert call("create", "--role", "analyst", "--analyst", "eve", "--quiet")[2] == ""


def test_the_list_shows_all_and_obeys_nobody(call, answer, tokens):
    assert "There are no tokens." in unwrapped(call("list")[1]) and answer("list") == (0, {"tokens": []})
    tokens.create("analyst", "[red]ana[/]", note="[bold]x")
    _, second = tokens.create("auditor", trusted=True)
    tokens.revoke(second.id)
    first = next(tokens._ledger.records(("token",))).data
    tokens._ledger.record("token", first | {"id": "0" * 12, "note": "\x1b[2J"})
    code, out, _ = call("list")
    assert code == 0 and "[red]ana[/]" in out and "[bold]x" in out and "the auditor" in out and "trusted" in out
    assert "active" in out and "revoked" in out and "\x1b" not in out and "�[2J" in out
    assert answer("list")[1] == {"tokens": [each.to_dict() for each in tokens.all()]}
    assert "hash" not in str(answer("list"))


def test_a_beginning_is_enough_to_revoke(call, answer, tokens):
    text, token = tokens.create("analyst", "ana")
    code, done = answer("revoke", token.id[:6])
    assert code == 0 and done == {**tokens.all()[0].to_dict(), "revoked_before": False}
    with pytest.raises(AuthMissingError):
        tokens.check(text)
    assert answer("revoke", token.id)[1]["revoked_before"] is True
    assert "was revoked before" in unwrapped(call("revoke", token.id)[1])
    assert len(list(tokens._ledger.records(("token",)))) == 2


def test_a_beginning_of_several_or_none_is_refused(answer, tokens):
    made = [tokens.create("owner")[1].id for _ in range(17)]  # two of them begin alike
    shared = next(each[0] for each in made if sum(other[0] == each[0] for other in made) > 1)
    for beginning, message in (
        (shared, "Several tokens begin so."),
        ("x", "no such"),
        ("", "no such"),
        ("\x00", "no such"),
    ):
        code, found = answer("revoke", beginning)
        assert code == 2 and message in found["error"]["message"]
    assert all(each.state == "active" for each in tokens.all())


def test_the_ledger_tells_of_tokens_without_their_hashes(home, tokens, capsys):
    text, token = tokens.create("analyst", "ana")
    tokens.revoke(token.id)
    assert run(build(), ["ledger", "--home", str(home)]) == 0
    out = unwrapped(capsys.readouterr().out)
    assert f"token {token.id} for ana" in out and f"token {token.id} is revoked" in out
    assert digest(text.encode())[:12] not in out

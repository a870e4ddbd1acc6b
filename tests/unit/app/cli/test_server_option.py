"""`--server`: the same commands, the same print, asked of a server."""

from __future__ import annotations

import json

import pytest
from tests.unit.remote.server import TOKEN, Server, says

from dalenius import Curator

COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def served(shop, monkeypatch):
    for name in ("DALENIUS_SERVER", "DALENIUS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    server = Server(Curator(shop.folder / ".dalenius"))
    shop.file = shop.folder / "token"
    shop.file.write_text(f"{TOKEN}\n")
    shop.file.chmod(0o600)
    shop.server = server
    yield shop
    server.stop()


def at(shop, *words):
    """The command, asked of the server."""
    return [*words, "--server", shop.server.url, "--token-file", shop.file]


def test_a_question_to_a_server_prints_as_one_at_home(served):
    for words in (
        ("preview", COUNT),
        ("preview", COUNT, "--plan", "--json"),
        ("explain", COUNT, "--rows", "1"),
        ("preview", "SELECT AVG(age) FROM visits GROUP BY region", "--error", "5", "--total", "amount=99.9"),
        ("tables",),
        ("tables", "visits"),
        ("tables", "visits", "--json"),
    ):
        home, far = served.call(*words), served.call(*at(served, *words))
        # at home, the only analyst is told on stderr
        assert home[0] == far[0] == 0 and home[1] == far[1] and far[2] == ""
    code, first = served.json(*at(served, "ask", COUNT, "--epsilon", "0.1", "--rows", "1"))
    assert code == 0 and first["charge"]["epsilon"] == 0.1
    again = served.json("ask", COUNT, "--epsilon", "0.1", "--rows", "1")[1]
    assert again["free"] and again["rows"] == first["rows"]
    code, out, _ = served.call(*at(served, "ask", COUNT, "--epsilon", "0.1", "--rows", "1", "-o", "n.csv"))
    assert code == 0 and "free: asked before" in out and (served.folder / "n.csv").exists()
    assert served.call(*at(served, "budget")) == served.call("budget", "--analyst", "ana")
    assert served.json(*at(served, "budget")) == served.json("budget", "--analyst", "ana")


def test_a_server_from_the_environment(served, monkeypatch):
    monkeypatch.setenv("DALENIUS_SERVER", served.server.url)
    monkeypatch.setenv("DALENIUS_TOKEN", TOKEN)
    assert served.json("preview", COUNT)[0] == 0 and served.server.seen
    served.server.seen.clear()
    assert served.json("preview", COUNT, "--home", ".dalenius")[0] == 0 and not served.server.seen
    monkeypatch.setenv("DALENIUS_HOME", ".dalenius")
    assert "both" in served.refused("input.invalid", 2, "preview", COUNT)["message"]


def test_without_a_price_the_choices_are_shown(served):
    code, found = served.json(*at(served, "ask", COUNT))
    assert code == 2 and len(found["preview"]["choices"]) == 3


@pytest.mark.parametrize(
    "words",
    [
        ("ask", COUNT, "--epsilon", "0.1", "--analyst", "ana"),
        ("ask", COUNT, "--epsilon", "0.1", "--home", ".dalenius"),
        ("budget", "--analyst", "ana"),
        ("budget", "--plot", "left.png"),
        ("tables", "visits", "--fake", "5", "-o", "rows.csv"),
    ],
)
def test_what_does_not_go_with_a_server_is_refused_before_anything_is_sent(served, words):
    served.refused("input.invalid", 2, *at(served, *words))
    assert not served.server.seen


def test_a_token_must_be_there_and_never_shows(served):
    words = ("preview", COUNT, "--server", served.server.url)
    assert "token-file" in served.refused("auth.missing", 3, *words)["fix"]
    served.refused("source.unavailable", 5, *words, "--token-file", "nowhere")
    served.refused("input.invalid", 2, "preview", COUNT, "--token-file", served.file)
    for text in ("", "\n", "zwei Wörter", "two words"):
        served.file.write_text(text)
        error = served.refused("input.invalid", 2, *words, "--token-file", served.file)
        assert not text.strip() or text not in json.dumps(error)
    served.file.write_text("dalenius_0123456789ab_wr0ng")
    code, out, err = served.call(*words, "--token-file", served.file)
    assert code == 3 and "wr0ng" not in out + err


def test_a_token_that_others_can_read_is_warned_about(served):
    served.file.chmod(0o644)
    code, _, err = served.call(*at(served, "preview", COUNT))
    assert code == 0 and "chmod 600" in " ".join(err.split())
    assert served.call(*at(served, "preview", COUNT), "--quiet")[2] == ""


def test_a_table_of_a_server_cannot_steer_the_terminal(served):
    (version,) = served.server.curator.tables()
    table = served.server.table(version)
    bad = "[red]x\x1b[2J"
    column = {"type": bad, "zone": bad, "bounds": [bad, 2.5e-7], "keys": [bad], "default": bad}
    evil = {**table, "name": bad, "dataset": bad, "unit": [bad], "path": bad, "closed": bad, "columns": {bad: column}}
    evil["limits"] = {"rows": 3, "totals": {bad: "1.5"}, "clipped": {"rows": 0.5}}
    evil["public"] = {bad: {"key": [bad], "columns": {bad: bad}}}
    for words in (("tables",), ("tables", "visits")):
        served.server.tricks += [says(200, {"tables": [evil]})]
        code, out, _ = served.call(*at(served, *words))
        assert code == 0 and "\x1b" not in out and "[red]x" in out
    assert "0.00000025" in out

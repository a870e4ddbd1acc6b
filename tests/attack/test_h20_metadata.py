"""H20: nothing but noisy numbers depends on the victim: no plan, schema, size, refusal, log line, error or file.

Everything that an analyst can see of a table with the victim's 500 rows, and of the one without them, is written down
and compared letter by letter. Both stand in the same place, one after the other.
"""

from __future__ import annotations

import json
import logging
import re
import shutil

import pyarrow.parquet as pq
import pytest
from tests.attack.hostile import RARE, people, plan_of, protected, ran
from tests.opened import duckdb_of

from dalenius.app.cli import build, run
from dalenius.errors import DaleniusError
from dalenius.measuring.engines.duckdb.measuring import selects_of
from dalenius.queries.preview import Preview

ASKED = [
    "SELECT COUNT(*) FROM visits",
    "SELECT region, COUNT(*), SUM(amount) FROM visits GROUP BY region",
    f"SELECT COUNT(*) FROM visits WHERE note = '{RARE}'",
    "SELECT age, COUNT(DISTINCT user_id) FROM visits WHERE amount > 4000 GROUP BY age",
    "SELECT smoker, region, COUNT(*) FROM visits GROUP BY ALL ORDER BY region, smoker LIMIT 5",
    "SELECT DATE_TRUNC('month', day) AS m, SUM(age) FROM visits GROUP BY m",
    "SELECT COUNT_IF(LN(amount - 4999) = 0), COUNT_IF(1 / (90 - age) > 0) FROM visits",
    "SELECT region, COUNT(DISTINCT note), CORR(age, amount) FROM visits GROUP BY region",
    "SELECT AVG(amount), STDDEV(age), COUNT(*) / COUNT(DISTINCT user_id) FROM visits WHERE region = 'west'",
    "SELECT MEDIAN(age), MIN(amount), MAX(amount) FROM visits",
]
REFUSED = [
    "SELECT ARG_MAX(note, age) FROM visits",
    f"SELECT note FROM visits WHERE note = '{RARE}'",
    "SELECT note, COUNT(*) FROM visits GROUP BY note",
    "SELECT COUNT(*) FROM visits WHERE user_id = 7777",
    "SELECT COUNT(*) FROM visit",
    "SELECT COUNT(*) FROM visits WHERE agee = 90",
    "SELECT COUNT(*) FROM visits WHERE region > 5",
    "SELECT SUM(TAN(amount)) FROM visits",
    "SELECT COUNT(* FROM visits",
    "SELECT COUNT(*) FROM visits WHERE 1 / 0 = 'a'",
]
# Before anything is asked: later on, what is expected is worked out from noisy answers of one's own, too.
PREVIEWS = [
    ["preview", "SELECT COUNT(*) FROM visits"],
    ["preview", ASKED[1], "--analyst", "eve", "--epsilon", "0.1", "--json"],
    ["preview", ASKED[7], "--analyst", "eve", "--plan"],
    *(["explain", each, "--analyst", "eve", "--epsilon", "0.1"] for each in (*ASKED[3:6], REFUSED[2])),
]
COMMANDS = [
    ["tables"],
    ["tables", "visits"],
    ["tables", "--json"],
    ["tables", "visits", "--json"],
    ["policy", "show", "visits"],
    ["policy", "show", "visits", "--json"],
    ["budget", "--analyst", "eve"],
    ["budget", "--json"],
    ["ask", "SELECT COUNT(*) FROM visits"],
    *(["ask", question, "--analyst", "eve", "--epsilon", "0.1"] for question in REFUSED),
]


def masked(text: str) -> str:
    """Without what is drawn at random or tells the time: keys, hashes, signatures, moments."""
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d[0-9:.]*(?:Z|\+00:00)?", "<time>", text)
    return re.sub(r"[0-9a-fA-F]{16,}|[A-Za-z0-9+/_-]{40,}={0,2}", "<random>", text)


def outcome(call) -> str:
    try:
        return str(call())
    except DaleniusError as error:
        return json.dumps(error.to_dict(), sort_keys=True)


def shape(release) -> str:
    """Everything of a release but its noisy numbers: names, keys, how many rows, which cells have errors."""
    keys = [[cell for cell, key in zip(row, release.keys, strict=True) if key] for row in release.rows]
    receipt = {name: masked(json.dumps(value)) for name, value in (release.receipt or {}).items()}
    parts = (release.columns, release.keys, len(release.rows), keys, release.guarantee, release.charge)
    return masked(repr((*parts, release.remaining, release.free, release.confidence, release.notes, sorted(receipt))))


def observed(folder, monkeypatch, caplog, capfd, *, victim: bool) -> dict[str, str]:
    """All that an analyst, or somebody who sees the logs and the names of files, can see."""
    here = folder / "here"
    found: dict[str, str] = {}
    caplog.clear()
    capfd.readouterr()
    with caplog.at_level(logging.DEBUG):
        curator = protected(here, people(victim=victim))
        found["files after protect"] = listing(here / "home")
        eve = curator.analyst("eve")
        for question in ASKED:
            plan = plan_of(curator, question)
            found[f"plan: {question}"] = f"{plan.canonical()}\n{selects_of(plan)}\n{plan.cells}\n{plan.notes}"
            preview = eve.preview(question, epsilon=0.1)
            found[f"preview: {question}"] = f"{preview}\n{preview.plan}\n{json.dumps(preview.to_dict())}"
        found |= printed(PREVIEWS, here, capfd)
        for question in REFUSED:
            found[f"refusal: {question}"] = outcome(lambda question=question: eve.ask(question, epsilon=0.1))
        with monkeypatch.context() as patch:
            statements = ran(patch)
            for question in ASKED:
                found[f"answer: {question}"] = shape(eve.ask(question, epsilon=0.1))
                found[f"again: {question}"] = shape(eve.ask(question, epsilon=0.05))
            found["what ran"] = masked("\n".join(statements))
        found["too much"] = outcome(lambda: eve.ask("SELECT COUNT(*) FROM visits WHERE age = 90", epsilon=2.99))
        found["history"] = masked(json.dumps(eve.history()))
        found["budget"] = repr({name: each.to_dict() for name, each in eve.budget().items()})
        found["schema"] = repr(dict(duckdb_of(curator.engines.of(curator.tables()[0].fingerprint)).columns))
        found["log"] = "\n".join(masked(record.getMessage()) for record in caplog.records)
        out, err = capfd.readouterr()
        found["stdout and stderr of all this"] = out + err
        found |= printed(COMMANDS, here, capfd)
    found["files at the end"] = listing(here / "home", sizes=False)
    shutil.move(here, folder / f"gone {victim}")
    return found


def printed(commands, here, capfd) -> dict[str, str]:
    """What each command prints, and its exit code."""
    found = {}
    for command in commands:
        code = run(build(), [*command, "--home", str(here / "home")])
        out, err = capfd.readouterr()
        found[f"$ {' '.join(command)}"] = masked(f"{code}\n{out}\n{err}")
    return found


def listing(home, *, sizes: bool = True) -> str:
    """Names and sizes. The ledger grows by pages; a stored number may be a digit longer, so its size is left out.

    So is that of the contribution index, which is personal data as the table itself is: it lies in a folder that only
    its owner can enter.
    """
    assert (home / "storage").stat().st_mode & 0o777 == 0o700
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    shown = [
        f"{path.relative_to(home)} {path.stat().st_size if sizes and path.parent.name != 'storage' else ''}"
        for path in files
    ]
    return "\n".join(shown)


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def test_nothing_but_noisy_numbers_depends_on_the_victim(tmp_path, monkeypatch, caplog, capfd):
    with_victim = observed(tmp_path, monkeypatch, caplog, capfd, victim=True)
    without = observed(tmp_path, monkeypatch, caplog, capfd, victim=False)
    assert not differing(with_victim, without)
    assert len(with_victim) > 50
    assert with_victim["stdout and stderr of all this"] == ""  # asking in Python prints nothing


def test_no_value_of_a_row_is_in_anything_that_is_shown(tmp_path, monkeypatch, caplog, capfd):
    """The victim's rare word shows only where the question itself said it."""
    found = observed(tmp_path, monkeypatch, caplog, capfd, victim=True)
    said = {name: text for name, text in found.items() if RARE not in name}
    for name in ("what ran", "history"):  # hold the texts of questions
        said.pop(name)
    assert not [name for name, text in said.items() if RARE in text or "7777" in text.replace("user_id = 7777", "")]


@pytest.fixture
def briefly(monkeypatch):
    """What is planted shows at once: with fewer questions and commands too."""
    for name, few in {"ASKED": 7, "REFUSED": 2, "COMMANDS": 2}.items():  # after seven, one more is too much
        monkeypatch.setitem(globals(), name, globals()[name][:few])


@pytest.mark.usefixtures("briefly")
def test_an_exact_row_count_in_a_preview_would_be_seen(tmp_path, monkeypatch, caplog, capfd):
    """Teeth: a preview that knows how many rows there are differs between the neighbours."""
    shown = Preview.__str__

    def telling(self):
        return f"{shown(self)}\n{pq.read_metadata(tmp_path / 'here' / 'visits.parquet').num_rows} rows"

    monkeypatch.setattr(Preview, "__str__", telling)
    one = observed(tmp_path, monkeypatch, caplog, capfd, victim=True)
    other = observed(tmp_path, monkeypatch, caplog, capfd, victim=False)
    assert f"preview: {ASKED[0]}" in differing(one, other)


@pytest.mark.usefixtures("briefly")
def test_a_log_line_with_a_number_of_rows_would_be_seen(tmp_path, monkeypatch, caplog, capfd):
    """Teeth: so does a log line of the engine about what it found."""
    from dalenius.measuring import _exact
    from dalenius.queries import answering

    exact = _exact.exact

    def chatty(plan, engine, salt, **more):
        found = exact(plan, engine, salt, **more)
        logging.getLogger("dalenius").debug("sums %s", found)
        return found

    monkeypatch.setattr(answering, "exact", chatty)
    one = observed(tmp_path, monkeypatch, caplog, capfd, victim=True)
    other = observed(tmp_path, monkeypatch, caplog, capfd, victim=False)
    assert differing(one, other) == ["log"]


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Who asks about the table with the victim, and about the one without."""
    folder = tmp_path_factory.mktemp("both")
    return [protected(folder / str(victim), people(victim=victim)).analyst("eve") for victim in (True, False)]


@pytest.mark.parametrize("question", ASKED)
def test_the_number_of_rows_is_public_before_asking(both, question):
    """As many rows as the preview says, unless LIMIT asks for fewer."""
    for eve in both:
        groups = eve.preview(question, epsilon=0.1).groups
        assert groups is not None  # all of them public
        rows = len(eve.ask(question, epsilon=0.1).rows)
        assert rows == (min(5, groups) if "LIMIT 5" in question else groups)

"""Where data lie is for the owner to know: no answer, listing or error over HTTP tells an analyst a path."""

from __future__ import annotations

from pathlib import Path

from tests.attack.hostile import people, protected
from tests.serving import serving

PUBLIC = '\n[public]\ntables = { regions = "lists/regions.csv" }\n'
GETS = ("tables", "tables/visits", "budget", "budget/over-time", "history", "me", "files", "policies/visits", "ledger")


def test_an_analyst_is_told_no_path_not_even_of_files_that_are_gone(tmp_path: Path) -> None:
    folder = tmp_path / "somewhere secret"
    curator = protected(folder, people(victim=False))
    (folder / "lists").mkdir()
    (folder / "lists" / "regions.csv").write_text("code\nnorth\n")
    text = (folder / "visits.toml").read_text()
    (folder / "visits.toml").write_text(text + PUBLIC)
    curator.protect(folder / "visits.toml", yes=True)
    curator.ledger.database.close()
    with serving(curator.home, "--data-dir", str(folder), config="console = false\nrate = 1000") as server:
        eve = server.analyst("eve")
        told: list[bytes] = []

        def look() -> None:
            told.extend(eve.get(f"/v1/{each}").content for each in GETS)
            for table in ("visits", "regions", "nowhere", str(folder / "visits.parquet")):
                sql = f'SELECT COUNT(*) AS n FROM "{table}"'
                told.extend(eve.ask(sql, **body).content for body in ({"epsilon": 0.01}, {"epsilon": 100}, {}))
                told.append(eve.post("/v1/preview", {"sql": f'SELECT COUNT(*) FROM "{table}"'}).content)

        look()
        (folder / "visits.parquet").rename(folder / "away.parquet")
        (folder / "lists" / "regions.csv").unlink()
        look()
        reply = eve.ask("SELECT COUNT(*) AS n FROM visits", epsilon=0.02)
        assert reply.json["code"] == "source.changed"
        assert reply.json["charge"]["epsilon"] == 0
    asked = str(folder / "visits.parquet").encode()  # which the question itself named
    for each in told:
        rest = each.replace(asked, b"")
        assert str(tmp_path).encode() not in rest and b"somewhere secret" not in rest, each
        assert b"parquet" not in rest and b".csv" not in rest, each

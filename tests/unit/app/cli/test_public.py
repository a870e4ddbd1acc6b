"""Public tables on the command line: listed, read exactly, and for nothing."""

import json

import pytest

PUBLIC = '[public]\ntables = { regions = { source = "regions.csv", key = "code" } }\n'
BY_SIZE = "SELECT name, pop FROM regions ORDER BY pop DESC"


@pytest.fixture
def public(shop):
    (shop.folder / "regions.csv").write_text("code,name,pop\n1,north,10\n2,[red]south,2000000\n3,,\n")
    policy = shop.folder / "visits.toml"
    policy.write_text(
        policy.read_text() + '[public]\ntables = { regions = { source = "regions.csv", key = "code" } }\n'
    )
    code, _, err = shop.call("protect", "visits.toml", "--yes")
    assert code == 0, err
    return shop


def test_a_public_answer_has_no_error_and_no_price(public):
    before = public.spent()
    code, out, err = public.call("ask", BY_SIZE, "--analyst", "ana")
    lines = [" ".join(line.split()) for line in out.splitlines() if line.strip()]
    assert code == 0 and err == ""
    assert lines == ["name pop", "[red]south 2000000", "north 10", "NULL NULL", "public, exact, free"]
    assert public.spent() == before


def test_json_says_that_it_is_public(public):
    code, found = public.json("ask", BY_SIZE, "--analyst", "ana")
    assert code == 0 and found["rows"][0] == ["[red]south", 2000000]
    assert found["guarantee"] == {"kind": "public", "epsilon": 0.0, "delta": 0.0, "unit": None, "neighbors": None}
    assert found["charge"] == {"epsilon": 0.0, "delta": 0.0, "rho": None} and found["receipt"] is None
    assert found["noise_error"] == [[None, None]] * 3


def test_an_answer_goes_into_files_too(public):
    code, _, err = public.call("ask", BY_SIZE, "--analyst", "ana", "-o", "out.csv")
    assert code == 0 and "Wrote" in err
    assert (public.folder / "out.csv").read_text().splitlines()[:2] == ['"name","pop"', '"[red]south",2000000']
    assert public.call("ask", BY_SIZE, "--analyst", "ana", "-o", "out.json")[0] == 0
    assert json.loads((public.folder / "out.json").read_text())["guarantee"]["kind"] == "public"


def test_a_preview_says_that_it_is_free(public):
    code, out, _ = public.call("preview", BY_SIZE, "--analyst", "ana", "--plan")
    assert code == 0 and "public, exact, free" in out and "public tables only (regions)" in out
    code, found = public.json("preview", BY_SIZE, "--analyst", "ana")
    assert code == 0 and found["public"] and found["choices"] == [] and found["columns"] == ["name", "pop"]


def test_tables_shows_the_columns_of_public_tables_and_not_where_they_are(public):
    code, out, _ = public.call("tables", "visits")
    assert code == 0 and "public regions: code BIGINT, name VARCHAR, pop BIGINT; unique: code" in " ".join(out.split())
    assert "regions" in public.call("tables")[1]
    code, found = public.json("tables", "visits")
    columns = {"code": "BIGINT", "name": "VARCHAR", "pop": "BIGINT"}
    assert found["tables"][0]["public"] == {"regions": {"key": ["code"], "columns": columns}}
    assert str(public.folder) not in json.dumps(found)
    (public.folder / "regions.csv").unlink()
    assert public.json("tables", "visits")[1]["tables"][0]["public"]["regions"]["columns"] is None


def test_a_refusal_shows_its_place(public):
    code, found = public.json("ask", "SELECT name,\n getenv('HOME') FROM regions", "--analyst", "ana")
    assert code == 3 and found["error"]["code"] == "sql.refused" and found["error"]["at"] == {"line": 2, "column": 2}


def test_a_key_that_is_not_unique_is_refused(shop):
    (shop.folder / "regions.csv").write_text("code\n1\n1\n")
    policy = shop.folder / "visits.toml"
    policy.write_text(
        policy.read_text() + '[public]\ntables = { regions = { source = "regions.csv", key = "code" } }\n'
    )
    code, found = shop.json("policy", "check", "visits.toml")
    assert code == 2 and found["error"]["message"] == "public.tables.regions.key: this is not unique."

"""The owner's page, in a real browser on a real server: protect, invite, files that come in, names that are code."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, sync_playwright
from tests.serving import Client, Reply, Server, serving

from dalenius.app.console.owner import written
from dalenius.app.http import files
from dalenius.errors import InputError, PolicyInvalidError
from dalenius.ledger.ledger import Ledger
from dalenius.tables.policy import Kind
from dalenius.tables.reading import read_text

pytestmark = pytest.mark.browser

HOSTILE = "<script>alert(1)</script>"
SECRET = "zanzibar"  # a value of the data
MOST = 20_000
ROWS = "".join(f"{place % 50},{'nsew'[place % 4]},{place % 90}.5,{place},{SECRET}\n" for place in range(400))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("protect")
    (folder / "data").mkdir()
    (folder / "data" / "visits.csv").write_text(f"patient_id,region,cost,{HOSTILE},note\n{ROWS}")
    Ledger.create(folder / "home").record("note", {"alarm": "late", "charge": 7, "dataset": "visits"})
    with serving(folder / "home", "--data-dir", str(folder / "data"), config=f"upload = {MOST}") as found:
        yield found
        text = found.log_file.read_text()
        assert "Traceback" not in text
        assert '"bug"' not in text


@pytest.fixture
def page() -> Iterator[Page]:
    """A page of a browser; anything that a script on it says or breaks fails the test."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        found = browser.new_page(viewport={"width": 1440, "height": 1000})
        found.set_default_timeout(20_000)
        wrong: list[str] = []

        def dismissed(dialog: Dialog) -> None:
            wrong.append(f"dialog {dialog.message}")
            dialog.dismiss()

        found.on("dialog", dismissed)
        found.on("pageerror", lambda error: wrong.append(str(error)))
        yield found
        assert wrong == []
        browser.close()


def test_an_owner_protects_a_table_and_invites_an_analyst(server: Server, page: Page) -> None:
    page.goto(f"{server.url}/sign-in")
    page.fill("input[name=token]", server.token("owner"))
    page.click("button[type=submit]")
    page.get_by_text("No table is protected yet").wait_for()

    page.get_by_role("tab", name="Protect a table").click()
    page.get_by_label("File in the data folder").click()
    page.get_by_role("option", name="visits.csv").click()
    page.get_by_label("Low of cost").fill("0")
    page.get_by_label("High of cost").fill("cheap")
    page.get_by_label("Keys, with commas of region").fill("n, s, e, w")
    page.get_by_label("Rows of one unit").fill("20")
    page.get_by_label("Groups of one unit").fill("4")
    assert page.get_by_text(HOSTILE, exact=True).first.is_visible()
    assert page.locator("main script, [role=main] script").count() == 0

    page.get_by_text('"cheap"').wait_for()  # it stands in the policy as a text, and is refused with its place
    page.get_by_role("button", name="Check").click()
    alert = page.get_by_role("alert").filter(has_text="columns.cost.bounds")
    alert.wait_for()
    assert server.owner().get("/v1/tables").json["tables"] == []

    page.get_by_label("High of cost").fill("100")
    page.get_by_text("bounds = [0, 100]").wait_for()
    page.get_by_role("button", name="Check").click()
    page.get_by_text("Would protect: visits").wait_for()
    assert server.owner().get("/v1/tables").json["tables"] == []
    assert SECRET not in page.content()

    page.get_by_role("button", name="Protect", exact=True).last.click()
    page.get_by_text("Protected: visits").wait_for()
    (table,) = server.owner().get("/v1/tables").json["tables"]
    assert (table["unit"], table["columns"]["cost"]["bounds"]) == (["patient_id"], [0, 100])
    assert HOSTILE in table["columns"]
    assert "note" not in table["columns"]  # a free text is left out unless the owner wants it

    page.get_by_role("tab", name="Analysts").click()
    page.get_by_label("Analyst's name").fill("ana")
    page.get_by_role("button", name="Invite").click()
    token = page.get_by_label("Token", exact=True).input_value()
    me = server.client(token).get("/v1/me")
    assert (me.status, me.json["analyst"], me.json["trusted"]) == (200, "ana", False)
    page.get_by_role("button", name="Done").click()
    page.get_by_label("Token", exact=True).wait_for(state="detached")
    assert token not in page.content()

    page.get_by_role("button", name=f"Revoke {me.json['id']}").click()
    page.get_by_role("button", name="Revoke it").click()
    page.get_by_text("1 that have ended").wait_for()
    assert server.client(token).get("/v1/me").status == 401

    page.get_by_role("tab", name="Tables").click()
    page.get_by_role("heading", name="visits").wait_for()
    assert page.get_by_text(HOSTILE).first.is_visible()

    page.get_by_role("tab", name="Alarms (1)").click()
    page.get_by_text("visits · charge 7").wait_for()
    assert page.get_by_text("was not ready in time").is_visible()


# --- files that come in


def signed_in(server: Server, token: str) -> str:
    body = f"token={token}".encode()
    reply = server.client(None).post("/sign-in", body, headers={"Content-Type": "application/x-www-form-urlencoded"})
    return reply.headers["set-cookie"].partition(";")[0]


def upload(server: Server, cookie: str, name: str, content: bytes, origin: str | None = None) -> Reply:
    headers = {"Cookie": cookie, "X-File-Name": name, "Content-Type": "application/octet-stream"}
    client: Client = server.client(None)
    found = client.post("/protect/upload", content, headers=headers | {"Origin": origin or server.url})
    client.close()  # who is refused may not have been heard to the end
    return found


def in_pieces(server: Server, cookie: str, pieces: list[bytes]) -> int:
    """Sends a file whose length is not told beforehand."""
    connection = http.client.HTTPConnection(server.url.partition("//")[2], timeout=20)
    headers = {"Cookie": cookie, "X-File-Name": "a.csv", "Origin": server.url}
    try:
        connection.request("POST", "/protect/upload", iter(pieces), headers, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


def test_a_file_comes_in_once_under_a_plain_name(server: Server) -> None:
    folder, cookie = server.home.parent / "data", signed_in(server, server.token("owner"))
    content = b"id,x\n" + b"1,2\n" * 100
    done = upload(server, cookie, "..%2F..%2Fnew%20table%3B.CSV", content)
    assert (done.status, done.json) == (201, {"name": "new_table.csv"})
    assert (folder / "new_table.csv").read_bytes() == content
    assert upload(server, cookie, "new%20table.csv", b"id\n3\n").status == 400
    assert (folder / "new_table.csv").read_bytes() == content


def test_a_file_is_taken_from_the_owner_alone_and_not_too_large(server: Server) -> None:
    folder, cookie = server.home.parent / "data", signed_in(server, server.token("owner"))
    before = sorted(folder.iterdir())
    assert upload(server, "a=b", "a.csv", b"id\n1\n").status == 401
    assert upload(server, signed_in(server, server.token("analyst", "eve")), "a.csv", b"id\n1\n").status == 403
    assert upload(server, cookie, "a.csv", b"id\n1\n", origin="http://elsewhere.example").status == 403
    assert upload(server, cookie, "a.csv", b"id\n" + b"1" * MOST).status == 413
    assert in_pieces(server, cookie, [b"1" * (MOST // 2)] * 3) == 413
    assert in_pieces(server, cookie, []) == 400
    assert upload(server, cookie, "a.toml", b"id\n1\n").status == 400
    assert sorted(folder.iterdir()) == before


def test_the_list_of_files_shows_neither_links_nor_hidden_files_nor_the_home(tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "data" / "home"
    for folder in (data / "deep", data / ".hidden", home):
        folder.mkdir(parents=True)
    for file in (tmp_path / "out.csv", data / "deep" / "a.csv", data / ".hidden" / "b.csv", home / "c.parquet"):
        file.write_text("x\n1\n")
    (data / "link.csv").symlink_to(tmp_path / "out.csv")
    (data / "folder").symlink_to(tmp_path)
    (data / "notes.txt").write_text("x")
    assert files.listed(data, home) == ["deep/a.csv"]


@pytest.mark.parametrize("name", ["", ".csv", "a", "a.csv.exe", "../.csv", "___.parquet"])
def test_a_name_that_says_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        files.safe_name(name)


# --- the policy that the form writes


def test_what_is_typed_is_a_value_and_never_code() -> None:
    typed = '1]\nx = "\\'
    wish = written.Wish("a.csv", typed, "id", [written.ColumnWish(typed, "BIGINT", True, Kind.INTEGER, typed, "5")])
    with pytest.raises(PolicyInvalidError) as error:
        read_text(written.text(wish))
    assert "TOML" not in error.value.message  # it can be read; what it says is refused


def test_a_full_form_is_a_good_policy() -> None:
    columns = [
        written.ColumnWish("id", "BIGINT", False, Kind.INTEGER),
        written.ColumnWish("cost", "DOUBLE", True, Kind.NUMBER, "0", "99.5", default="1"),
        written.ColumnWish("region", "VARCHAR", True, Kind.CATEGORY, keys="n, s ,,", default="n"),
        written.ColumnWish("day", "DATE", True, Kind.DATE, "2025-01-01", "2025-12-31"),
        written.ColumnWish("at", "TIMESTAMP", True, Kind.DATETIME),
        written.ColumnWish("paid", "BOOLEAN", True, Kind.BOOLEAN, default="True"),
        written.ColumnWish(HOSTILE, "BIGINT", True, Kind.INTEGER, keys="1, 2"),
    ]
    wish = written.Wish("a.csv", "a", "id", columns, rows="20", analysts=[("ana b", "0.5"), ("", "1")])
    policy = read_text(written.text(wish))
    assert list(policy.columns) == [each.name for each in columns[1:]]
    assert (policy.columns["region"].keys, policy.columns[HOSTILE].keys) == (("n", "s"), (1, 2))
    assert policy.columns["paid"].default is True
    assert (policy.contribution.rows, policy.contribution.groups, policy.analysts) == (20, None, {"ana b": 0.5})
    wish.delta, wish.analysts = "0", []
    pure = read_text(written.text(wish)).budget
    assert pure is not None
    assert (pure.accounting, pure.delta) == ("pure", 0)
    wish.dataset = "others"
    assert read_text(written.text(wish)).budget is None
    wish.unit = ""
    with pytest.raises(PolicyInvalidError, match="filled in"):
        read_text(written.text(wish))

"""The owner's page, in a real browser on a real server: protect, invite, files that come in, names that are code."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.browser.walking import asked, chart, ready, sign_in, write
from tests.serving import Client, Reply, Server, serving

from dalenius.app.console.parts import policy_form
from dalenius.app.console.parts.policy_form import ColumnForm, PolicyForm
from dalenius.app.http import files
from dalenius.errors import InputError, PolicyInvalidError
from dalenius.ledger.ledger import Ledger
from dalenius.tables.policy import Kind
from dalenius.tables.reading import read_text

pytestmark = pytest.mark.browser

HOSTILE = "<script>alert(1)</script>"
SECRET = "zanzibar"  # a value of the data
MOST = 20_000
HEAD = "patient_id,region,cost,day,note\n"
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
def page(server: Server, opened: Callable[..., Page]) -> Page:
    """The owner's page."""
    found = opened()
    sign_in(found, server, server.token("owner"))
    expect(found.get_by_role("tab", name="Tables")).to_be_visible()
    return found


def form(page: Page, file: str, name: str) -> None:
    """Fills in the form for a file, up to a good policy."""
    page.get_by_role("tab", name="Protect a table").click()
    page.get_by_label("File in the data folder").click()
    page.get_by_role("option", name=file, exact=True).click()
    filled(page, name)


def filled(page: Page, name: str) -> None:
    page.get_by_label("Table name").fill(name)
    page.get_by_label("Low of cost").fill("0")
    page.get_by_label("High of cost").fill("100")
    page.get_by_label("Keys, with commas of region").fill("n, s, e, w")
    page.get_by_label("Rows of one unit").fill("20")
    page.get_by_label("Groups of one unit").fill("4")
    for each in (f'name = "{name}"', "bounds = [0, 100]", "rows = 20", "groups = 4"):
        expect(page.locator(".cm-content")).to_contain_text(each)


def protect(page: Page, name: str) -> None:
    page.get_by_role("button", name="Protect", exact=True).click()
    expect(page.get_by_text(f"Protected: {name}")).to_be_visible()


def invite(page: Page, name: str, dataset: str) -> str:
    """The token, which is shown once."""
    page.get_by_role("tab", name="Analysts").click()
    page.get_by_label("Analyst's name").fill(name)
    page.get_by_label("Data set").locator("visible=true").first.click()
    page.get_by_role("option", name=dataset, exact=True).click()
    page.get_by_label("Allotment, ε").fill("0.5")
    page.get_by_role("button", name="Invite", exact=True).click()
    token = page.get_by_label("Token", exact=True).input_value()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_label("Token", exact=True)).to_have_count(0)
    assert token not in page.content()
    return token


def test_an_owner_protects_a_table_and_invites_an_analyst_who_asks(
    server: Server, page: Page, opened: Callable[..., Page]
) -> None:
    form(page, "visits.csv", "invited")
    assert page.get_by_text(HOSTILE, exact=True).first.is_visible()
    page.get_by_label("High of cost").fill("cheap")
    expect(page.locator(".cm-content")).to_contain_text('"cheap"')  # a text, and refused with its place
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_role("alert")).to_contain_text("columns.cost.bounds")
    page.get_by_label("High of cost").fill("100")
    expect(page.locator(".cm-content")).to_contain_text("bounds = [0, 100]")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("Would protect: invited")).to_be_visible()
    assert "invited" not in [each["name"] for each in server.owner().get("/v1/tables").json["tables"]]
    assert SECRET not in page.content()
    protect(page, "invited")
    (table,) = server.owner().get("/v1/tables/invited").json["tables"]
    assert (table["unit"], table["columns"]["cost"]["bounds"]) == (["patient_id"], [0, 100])
    assert HOSTILE in table["columns"]
    assert "note" not in table["columns"]  # a free text is left out unless the owner wants it

    token = invite(page, "ana", "invited")
    me = server.client(token).get("/v1/me").json
    assert (me["analyst"], me["trusted"]) == ("ana", False)
    other = opened()
    sign_in(other, server, token)
    ready(other)
    expect(chart(asked(other))).to_be_visible()

    page.get_by_role("button", name=f"Revoke {me['id']}").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_role("button", name=f"Revoke {me['id']}")).to_have_count(0)
    assert server.client(token).get("/v1/me").status == 401
    other.get_by_role("button", name="How many rows?").click()
    expect(other.get_by_text("Your session has ended")).to_be_visible()


def test_an_owner_uploads_a_file_and_protects_it(server: Server, page: Page, tmp_path: Path) -> None:
    (tmp_path / "more visits.csv").write_text(HEAD + ROWS)
    page.get_by_role("tab", name="Protect a table").click()
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(tmp_path / "more visits.csv")
    expect(page.get_by_label("Low of cost")).to_be_visible()
    assert (server.home.parent / "data" / "more_visits.csv").exists()
    filled(page, "more")
    protect(page, "more")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a file").click()
    chooser.value.set_files(tmp_path / "more visits.csv")  # it is there
    expect(page.get_by_role("alert")).to_contain_text("The file was not taken.")


def test_an_owner_changes_a_policy_and_sees_the_difference(server: Server, page: Page) -> None:
    # Files of its own: the same people cannot be protected twice, under two budgets.
    (server.home.parent / "data" / "changing.csv").write_text(HEAD + ROWS[ROWS.index("\n") + 1 :])
    page.reload()
    form(page, "changing.csv", "changing")
    protect(page, "changing")
    page.get_by_role("tab", name="Tables").click()
    page.get_by_role("button", name="Change changing").click()
    editor = page.locator(".cm-content")
    expect(editor).to_contain_text('name = "changing"')
    text = server.owner().get("/v1/policies/changing").json["policy"]
    write(page, text.replace("epsilon = 1.0", "epsilon = 2.0"))
    expect(editor).to_contain_text("epsilon = 2.0")
    page.get_by_role("button", name="Protect", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This changes a policy in force")
    expect(dialog).to_contain_text("budget.epsilon: 1.0 → 2.0")
    dialog.get_by_role("button", name="Record it").click()
    expect(dialog.get_by_role("alert")).to_be_visible()  # without a reason, more is not promised away
    dialog.get_by_label("Reason (needed)").fill("the board agreed")
    dialog.get_by_role("button", name="Record it").click()
    expect(page.get_by_text("Protected: changing")).to_be_visible()
    page.get_by_role("tab", name="Tables").click()
    page.get_by_role("button", name="History changing").click()
    expect(page.get_by_role("dialog")).to_contain_text("budget.epsilon: 1.0 → 2.0")
    expect(page.get_by_role("dialog")).to_contain_text("Reason: the board agreed")


def test_an_owner_refreshes_a_table_after_a_look(server: Server, page: Page) -> None:
    file = server.home.parent / "data" / "fresh.csv"
    file.write_text(HEAD + 2 * ROWS)
    page.reload()
    form(page, "fresh.csv", "fresh")
    protect(page, "fresh")
    page.get_by_role("tab", name="Tables").click()
    page.get_by_role("button", name="Refresh fresh").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Look first").click()
    expect(dialog).to_contain_text("There is nothing to do.")
    expect(dialog.get_by_role("button", name="Refresh now")).to_be_disabled()
    file.write_text(HEAD + 3 * ROWS)
    dialog.get_by_role("button", name="Look first").click()
    expect(dialog).to_contain_text("they become the next data version")
    dialog.get_by_text("These are new people").click()
    expect(dialog.get_by_role("button", name="Refresh now")).to_be_disabled()  # it was not looked at so
    dialog.get_by_role("button", name="Look first").click()
    expect(dialog).to_contain_text("Give one, and look again.")
    dialog.get_by_text("These are new people").click()
    dialog.get_by_role("button", name="Look first").click()
    expect(dialog.get_by_role("button", name="Refresh now")).to_be_enabled()
    dialog.get_by_role("button", name="Refresh now").click()
    expect(page.get_by_text("fresh is at data version 2.")).to_be_visible()
    assert server.owner().get("/v1/tables/fresh").json["tables"][0]["data_version"] == 2


def test_an_owner_sees_alarms_and_what_to_do(page: Page) -> None:
    page.get_by_role("tab", name="Alarms (1)").click()
    expect(page.get_by_text("visits · charge 7")).to_be_visible()
    expect(page.get_by_text("was not ready in time")).to_be_visible()
    expect(page.get_by_text("somebody may be probing")).to_be_visible()


# --- files that come in


def signed_in(server: Server, token: str) -> str:
    body = f"token={token}".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.url}
    reply = server.client(None).post("/sign-in", body, headers=headers)
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
    assert files.list_files(data, home) == ["deep/a.csv"]


@pytest.mark.parametrize("name", ["", ".csv", "a", "a.csv.exe", "../.csv", "___.parquet"])
def test_a_name_that_says_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError):
        files.safe_name(name)


# --- the policy that the form writes


def test_what_is_typed_is_a_value_and_never_code() -> None:
    typed = '1]\nx = "\\'
    form = PolicyForm("a.csv", typed, "id", [ColumnForm(typed, "BIGINT", True, Kind.INTEGER, typed, "5")])
    with pytest.raises(PolicyInvalidError) as error:
        read_text(policy_form.text(form))
    assert "TOML" not in error.value.message  # it can be read; what it says is refused


def test_a_full_form_is_a_good_policy() -> None:
    columns = [
        ColumnForm("id", "BIGINT", False, Kind.INTEGER),
        ColumnForm("cost", "DOUBLE", True, Kind.NUMBER, "0", "99.5", default="1"),
        ColumnForm("region", "VARCHAR", True, Kind.CATEGORY, keys="n, s ,,", default="n"),
        ColumnForm("day", "DATE", True, Kind.DATE, "2025-01-01", "2025-12-31"),
        ColumnForm("at", "TIMESTAMP", True, Kind.DATETIME),
        ColumnForm("paid", "BOOLEAN", True, Kind.BOOLEAN, default="True"),
        ColumnForm(HOSTILE, "BIGINT", True, Kind.INTEGER, keys="1, 2"),
    ]
    form = PolicyForm("a.csv", "a", "id", columns, rows="20", analysts=[("ana b", "0.5"), ("", "1")])
    policy = read_text(policy_form.text(form))
    assert list(policy.columns) == [each.name for each in columns[1:]]
    assert (policy.columns["region"].keys, policy.columns[HOSTILE].keys) == (("n", "s"), (1, 2))
    assert policy.columns["paid"].default is True
    assert (policy.contribution.rows, policy.contribution.groups, policy.analysts) == (20, None, {"ana b": 0.5})
    form.delta, form.analysts = "0", []
    pure = read_text(policy_form.text(form)).budget
    assert pure is not None
    assert (pure.accounting, pure.delta) == ("pure", 0)
    form.dataset = "others"
    assert read_text(policy_form.text(form)).budget is None
    form.unit = ""
    with pytest.raises(PolicyInvalidError, match="filled in"):
        read_text(policy_form.text(form))

"""Protect a table: a file, a form made from its schema, the policy as it grows, and the check."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nicegui import events, ui

from dalenius.app.console.frame import attempt, busy, card, dialog_named, empty, heading
from dalenius.app.console.lines import LONGEST
from dalenius.app.console.parts import policy_form
from dalenius.app.console.parts.editor import Editor, dress
from dalenius.app.console.parts.policy_form import ColumnForm, PolicyForm
from dalenius.app.console.parts.tables import changes
from dalenius.app.http import files
from dalenius.app.http.guard import UPLOAD
from dalenius.app.views import as_sentence
from dalenius.app.views.tables import found_words, search_words
from dalenius.queries.release import shown
from dalenius.tables.draft import EPSILONS
from dalenius.tables.policy import BOUNDED, KEYED, TIMES, Kind

if TYPE_CHECKING:
    from dalenius.app.console.sessions import Session
    from dalenius.owner.protect import Protected
    from dalenius.tables.registry import Version

MOST = 150  # columns in the form; more can be written into the policy
_LONGEST = 200_000  # characters of a policy
_PROTECT = "POST /v1/protect"
_OWN = "one of its own"
_UNIT = (
    "Who is protected: a person, a device, a household. Everything with the same unit counts as one. Choose the "
    "largest thing whose presence must not show."
)
_EPSILON = (
    "ε caps what may ever be learned about one unit, over all questions of all analysts: whatever is believed about "
    "somebody before, the odds change by at most a factor of e^ε (ε = 0.1: 1.1, 1: 2.7, 3: 20). δ is what may be lost "
    "on top of the factor: well below 1/(number of units). Others chose about:"
)
_BOUNDS = (
    "Bounds and keys are what a value can be, for anyone: never what is true of this data. Without bounds, a number "
    "can be counted and filtered, not summed. Without keys, groups cost budget. The default stands for absent values."
)
_LIMITS = (
    "What one unit adds at most; the rest of heavier units is cut off. Empty: found privately when the table is "
    "protected, at a price, once; 'Check' says how much. With few units, declare them."
)
_BY_HAND = "You edited the text: it counts as it stands, and the form no longer changes it."


class Protecting:
    """The part of one open page."""

    def __init__(self, session: Session, done: Callable[[], Awaitable[None]]) -> None:
        self.session, self._done = session, done
        self.root: Path | None = session.service.settings.data_dir
        self.form: PolicyForm | None = None
        self.generated = ""
        self.datasets: list[str] = []
        self.said: ui.column
        if self.root is None:
            empty(
                "This server was given no data folder. Start it with --data-dir, or set data_dir in config.toml; "
                "or protect tables with 'dalenius protect' where the files are.",
                "folder_off",
            )
            return
        self._choose()
        with ui.row().classes("w-full items-start gap-4"):
            self.left = ui.column().classes("gap-3").style("flex: 3 1 680px; min-width: 0")
            right = ui.column().classes("gap-2").style("flex: 2 1 360px; min-width: 0")
            with right.style("position: sticky; top: 64px; z-index: 1"):  # it stays in sight beside a long form
                self._policy()

    async def refresh(self) -> None:
        """Reads the list of files anew."""
        if self.root is None:
            return
        root, curator = self.root, self.session.service.curator

        def work() -> tuple[list[str], list[str]]:
            return files.list_files(root, curator.home), list(curator.ledger.datasets())

        found = await attempt(self.session, "GET /v1/files", work, self.said)
        if found is not None:
            names, self.datasets = found
            self.file.set_options(names)
            self.none.set_visibility(not names)

    def load(self, version: Version) -> None:
        """Puts the policy in force into the editor, to be changed there."""
        if self.root is None:
            ui.notify("This server was given no data folder: change the policy where its file is.", type="warning")
            return
        self.form, self.generated = None, ""
        self.left.clear()
        with self.left:
            ui.label(f"The policy of {version.table}, as it is in force. Change it in the text.").classes("d-muted")
        self.file.set_value(None)
        self.said.clear()
        self.result.clear()
        self.by_hand.set_visibility(False)
        self.editor.set_value(version.text)

    # --- the file

    def _choose(self) -> None:
        with ui.row().classes("w-full items-center gap-3"):
            self.file = ui.select([], label="File in the data folder", with_input=True, on_change=self._chosen)
            self.file.props("outlined dense").style("width: 22rem; max-width: 100%")
            most = self.session.service.settings.upload
            upload = ui.upload(max_file_size=most, auto_upload=True, max_files=1).style("display: none")
            upload.props["url"] = UPLOAD  # a route of ours: straight into the data folder, as it comes
            upload.props["send-raw"] = True
            upload.props[":headers"] = "files => [{name: 'X-File-Name', value: encodeURIComponent(files[0].name)}]"
            upload.on("added", lambda: busy(self.said, "The file is coming in…"), args=[])
            upload.on("uploaded", self._uploaded, js_handler="(info) => emit(info.xhr.responseText)")
            upload.on("failed", self._failed, js_handler="(info) => emit(info.xhr.responseText)")
            upload.on("rejected", self._rejected, args=[])
            self.upload = upload
            button = ui.button("Upload a file", icon="upload").props("outline no-caps")
            button.on("click", js_handler=f"() => getElement({upload.id}).$refs.qRef.pickFiles()")
            ui.label(f".csv or .parquet, up to {most / 2**20:,.0f} MiB").classes("d-muted text-caption")
        self.none = ui.label("There is no .csv or .parquet file in the data folder yet.").classes("d-muted")
        self.said = ui.column().classes("w-full gap-2")

    async def _uploaded(self, event: events.GenericEventArguments) -> None:
        name = _field(event.args, "name")
        self.upload.reset()
        self.said.clear()
        await self.refresh()
        if name in (self.file.options or []):
            self.file.set_value(name)

    def _failed(self, event: events.GenericEventArguments) -> None:
        self.upload.reset()
        told = [_field(event.args, each) for each in ("title", "detail")]
        _alert(self.said, "The file was not taken.", *(each for each in told if each))

    def _rejected(self) -> None:
        _alert(self.said, "The file was not taken.", "It is larger than this server takes. Put it there yourself.")

    async def _chosen(self) -> None:
        name, root = self.file.value, self.root
        if not name or root is None:
            return
        busy(self.said, "Reading the schema…")
        found = await attempt(
            self.session, "GET /v1/files/{name:path}", lambda: files.columns_of(name, root), self.said
        )
        if found is None or name != self.file.value:  # another one was chosen meanwhile
            return
        self.said.clear()
        self.form = policy_form.first_form(name, found)
        self.left.clear()
        with self.left:
            self._fields(self.form)
        self.generated = ""
        self._write(anew=True)

    # --- the form

    def _fields(self, form: PolicyForm) -> None:
        with _part("Table"):
            with ui.row().classes("w-full gap-3"):
                self._text("Table name", form.name, lambda value: setattr(form, "name", value))
                names = {each.name: shown(each.name, 60) for each in form.columns}
                self._select("Unit", names, form.unit or None, lambda value: setattr(form, "unit", value or ""))
                if self.datasets:
                    choices = {"": _OWN, **{each: each for each in self.datasets}}
                    self._select("Data set", choices, "", lambda value: self._joined(form, value or ""))
            _muted(_UNIT)
        with _part("Budget") as self.budget:
            with ui.row().classes("w-full gap-3"):
                self._text("ε, for ever", form.epsilon, lambda value: setattr(form, "epsilon", value))
                self._text("δ", form.delta, lambda value: setattr(form, "delta", value))
            with ui.expansion("Which ε?", icon="help_outline").classes("w-full"):
                _muted(_EPSILON)
                for who, epsilon, whose in EPSILONS:
                    _muted(f"{who}: {epsilon}, {whose}")
        with _part("Columns"):
            _muted(_BOUNDS)
            for each in form.columns[:MOST]:
                self._column(each)
            if len(form.columns) > MOST:
                for each in form.columns[MOST:]:
                    each.include = False
                _muted(f"{len(form.columns) - MOST:,} more columns are left out; write them into the policy.")
        with _part("Contribution"):
            with ui.row().classes("w-full gap-3"):
                self._text("Rows of one unit", form.rows, lambda value: setattr(form, "rows", value))
                self._text("Groups of one unit", form.groups, lambda value: setattr(form, "groups", value))
            _muted(_LIMITS)
        with _part("Analysts"):
            _muted("What each may spend of the budget. Tokens are given under 'Analysts', after this.")
            rows = ui.column().classes("w-full gap-2")
            ui.button("Add an analyst", icon="add", on_click=lambda: self._analyst(form, rows)).props(
                "flat no-caps dense"
            )

    def _joined(self, form: PolicyForm, dataset: str) -> None:
        form.dataset = dataset
        self.budget.set_visibility(not dataset)

    def _analyst(self, form: PolicyForm, rows: ui.column) -> None:
        at = len(form.analysts)
        form.analysts.append(("", "0.5"))

        def put(place: int, value: str) -> None:
            pair = list(form.analysts[at])
            pair[place] = value
            form.analysts[at] = (pair[0], pair[1])

        with rows, ui.row().classes("gap-3"):
            self._text(f"Analyst {at + 1}", "", lambda value: put(0, value))
            self._text(f"ε of analyst {at + 1}", "0.5", lambda value: put(1, value))

    def _column(self, column: ColumnForm) -> None:
        name = shown(column.name, 60)
        with ui.row().classes("w-full items-center gap-2 q-py-xs").style("border-top: 1px solid var(--d-line)"):
            box = ui.checkbox(value=column.include).props("dense")
            box.props["aria-label"] = f"Include {name}"
            with ui.column().classes("gap-0").style("flex: 1 1 9rem; min-width: 0"):
                ui.label(name).classes("text-weight-medium").style("overflow-wrap: anywhere")
                _muted(f"{shown(column.declared, 30)} in the source")
            if column.kind is None:
                box.disable()
                _muted("cannot be asked about")
                return
            kinds = {each.value: each.value for each in Kind}

            def typed(value: Any) -> None:
                column.kind = Kind(value)
                shape()

            kind = self._select("Type", kinds, column.kind.value, typed, name, width="7.5rem")
            low, high, keys, default = (
                self._text(label, "", partial(setattr, column, field), name, width)
                for label, field, width in (
                    ("Low", "low", "7rem"),
                    ("High", "high", "7rem"),
                    ("Keys, with commas", "keys", "11rem"),
                    ("Default", "default", "6rem"),
                )
            )

            def shape() -> None:
                on, of = column.include, column.kind
                kind.set_visibility(on)
                for each in (low, high):
                    each.set_visibility(on and of in BOUNDED)
                    each.props["placeholder"] = "2025-12-31" if of in TIMES else ""
                keys.set_visibility(on and of in KEYED and of is not Kind.TEXT)
                default.set_visibility(on)

            def included() -> None:
                column.include = bool(box.value)
                shape()
                self._write()

            box.on_value_change(included)
            shape()

    def _text(self, label: str, value: str, put: Callable[[str], None], of: str = "", width: str = "13rem") -> ui.input:
        def changed(event: events.ValueChangeEventArguments[Any]) -> None:
            put(str(event.value or ""))
            self._write()

        field = ui.input(label, value=value, on_change=changed).props("outlined dense debounce=200 autocomplete=off")
        field.props["maxlength"] = LONGEST
        field.style(f"width: {width}")
        if of:
            field.props["aria-label"] = f"{label} of {of}"
        return field

    def _select(
        self,
        label: str,
        options: dict[str, str],
        value: str | None,
        put: Callable[[Any], None],
        of: str = "",
        width: str = "13rem",
    ) -> ui.select:
        def changed(event: events.ValueChangeEventArguments[Any]) -> None:
            put(event.value)
            self._write()

        field = ui.select(options, value=value, label=label, on_change=changed).props("outlined dense")
        field.style(f"width: {width}")
        if of:
            field.props["aria-label"] = f"{label} of {of}"
        return field

    # --- the policy

    def _policy(self) -> None:
        with ui.row().classes("w-full items-center gap-2"):
            ui.label("Policy (TOML)").classes("text-subtitle2")
            ui.space()
            ui.button("Check", icon="fact_check", on_click=self._check).props("outline no-caps")
            self.button = ui.button("Protect", icon="shield", on_click=self._protect).props("unelevated no-caps")
        self.result = ui.column().classes("w-full gap-2")
        with ui.row().classes("items-center gap-2") as self.by_hand:
            _muted(_BY_HAND)
            ui.button("Use the form again", on_click=lambda: self._write(anew=True)).props("flat dense no-caps")
        self.by_hand.set_visibility(False)
        self.editor = Editor("", _LONGEST, language="TOML", on_change=self._typed)
        self.editor.style("height: 55vh")
        dress(self.editor, "Policy in TOML")

    def _typed(self) -> None:
        self.by_hand.set_visibility(self.form is not None and self.editor.value != self.generated)

    def _write(self, *, anew: bool = False) -> None:
        if self.form is None or (not anew and self.editor.value != self.generated):
            return
        self.generated = policy_form.text(self.form)
        self.editor.set_value(self.generated)
        self.by_hand.set_visibility(False)
        self.result.clear()

    def _work(self, text: str, **how: Any) -> Callable[[], list[Protected]]:
        service = self.session.service
        return lambda: service.curator.protect(files.policy_from(text, service.settings.data_dir), **how)

    async def _check(self) -> None:
        busy(self.result, "Checking; the file is read as a whole…")
        done = await attempt(self.session, _PROTECT, self._work(self.editor.value, dry_run=True), self.result)
        if done is not None:
            self._told(done, "Would protect")

    async def _protect(self) -> None:
        self.button.disable()
        text = self.editor.value
        try:
            busy(self.result, "Protecting…")
            done = await attempt(self.session, _PROTECT, self._work(text), self.result)
            if done is None:
                return
            if any(each.needs for each in done):
                self._told(done, "Would change")
                self._ask(done, text)
                return
            await self._recorded(done)
        finally:
            self.button.enable()

    def _ask(self, planned: list[Protected], text: str) -> None:
        needed = any("reason" in each.needs for each in planned)
        new = all(each.state == "new" for each in planned)
        title = "Files that everyone may read" if new else "This changes a policy in force"
        with (
            dialog_named(title, persistent=True) as dialog,
            ui.card().classes("w-full gap-3").style("max-width: 720px"),
        ):
            ui.label(title).classes("text-h6").props("role=heading aria-level=2")
            for each in planned:
                ui.label(each.version.table).classes("text-weight-medium")
                changes(each.difference)
                for words in each.beside:
                    ui.label(f"{words}. Everyone who may ask can read it: record this if nobody's data are in it.")
            if needed:
                ui.label("More ε widens what was promised to the people in the table; the history must say why.")
            reason = ui.input("Reason" + (" (needed)" if needed else "")).props("outlined dense maxlength=500")
            reason.classes("w-full")
            place = ui.column().classes("w-full")

            async def act() -> None:
                busy(place, "Recording…")
                said = (reason.value or "").strip()
                done = await attempt(self.session, _PROTECT, self._work(text, yes=True, reason=said), place)
                if done is not None:
                    dialog.close()
                    await self._recorded(done)

            with ui.row().classes("gap-2"):
                ui.button("Record it", on_click=act).props("unelevated no-caps")
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps")

    async def _recorded(self, done: list[Protected]) -> None:
        self._told(done, "Protected")
        await self._done()

    def _told(self, done: list[Protected], verb: str) -> None:
        self.result.clear()
        with self.result, ui.column().classes("w-full d-line q-pa-md gap-1").props("role=status"):
            for each in done:
                same = each.state == "unchanged"
                words = "Already protected" if same else verb
                with ui.row().classes("items-center gap-2"):
                    ui.icon("verified" if each.recorded else "fact_check", color="secondary", size="sm")
                    ui.label(f"{words}: {each.version.table} ({each.state}).").classes("text-subtitle1")
                if each.search is not None:
                    _muted(as_sentence(search_words(each.search, done=each.recorded)))
                if each.limits is not None:
                    _muted(as_sentence(found_words(each.limits, each.version.policy.unit)))
                changes(each.difference)
                for words in each.beside:
                    _muted(f"{words}.")
            if any(each.recorded for each in done):
                _muted("Next: invite analysts under 'Analysts'.")


def _field(content: Any, name: str) -> str:
    """A text of a response of ours, which came back through the browser."""
    try:
        found = json.loads(content)
        return str(found.get(name) or "")[:500]
    except (TypeError, ValueError, AttributeError):
        return ""


def _alert(place: ui.column, *lines: str) -> None:
    place.clear()
    with place, ui.column().classes("w-full d-line q-pa-md gap-1").props("role=alert"):
        for each in lines:
            ui.label(each)


def _part(title: str) -> ui.column:
    part = card()
    with part:
        heading(title, 2).classes("text-subtitle1 text-weight-medium")
    return part


def _muted(words: str) -> None:
    ui.label(words).classes("d-muted text-caption")

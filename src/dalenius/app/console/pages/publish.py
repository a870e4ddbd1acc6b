"""Publish rows: what is lost at each k, and what it means to publish; then, if the owner means it, the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from nicegui import ui

from dalenius.anonymity.telling import LOST
from dalenius.app.console import calls
from dalenius.app.console.charts import loss_by_k
from dalenius.app.console.frame import attempt, busy, card, dialog_named, empty, heading, over, page, trouble, warn
from dalenius.app.console.parts.slider import Slider
from dalenius.app.console.sessions import Session, Sessions
from dalenius.app.views.publications import LIMITS, as_they_are, asked_words, how_made, loss_words
from dalenius.errors import AuthMissingError, DaleniusError
from dalenius.ledger.publications import warning
from dalenius.tables.anonymity import ROLES

if TYPE_CHECKING:
    from dalenius.anonymity.publishing import Published
    from dalenius.tables.registry import Version

KS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100)
_FIRST = 4  # k = 10
_SECONDS = 10.0  # for one k: the best so far is drawn, which is never more than what is lost
_METHODS = ["optimal", "mondrian", "local", "greedy"]
_ABOUT = (
    "Rows are made alike until everybody is one of at least k who look the same. That hides who is who from those who "
    "know no more than the quasi-identifiers. It is no guarantee: for numbers, questions with noise protect more."
)
_NOT_PEOPLE = "k counts rows, not people: of somebody with several rows it says nothing."
_DONE = "It is on record. Its rows may leave now: nothing takes that back."


def install(app: FastAPI, sessions: Sessions) -> None:  # noqa: ARG001
    """Adds the page."""

    @page("/publish", wide=True)
    async def publish(session: Session) -> None:
        place = ui.column().classes("w-full gap-4")
        found = await attempt(session, "GET /v1/tables", lambda: _tables(session), place)
        if found is None:
            return
        place.delete()
        ready = {name: each for name, each in found.items() if each["section"]}
        if not ready:
            words = "No table says who is who in it. Add [anonymity] to its policy, and protect it again."
            empty(words if found else "No table is protected yet.", "table_rows")
            return
        _Publishing(session, ready).build()


def _tables(session: Session) -> dict[str, dict[str, Any]]:
    curator = session.service.curator
    return {
        each.table: {
            "section": _with_owner(each),
            "dataset": each.dataset,
            "published": warning(curator.ledger.published(each.dataset)),
        }
        for each in curator.tables()
    }


def _with_owner(version: Version) -> dict[str, Any]:
    """Its roles; what says whose a row is names people, unless it has a role."""
    section = dict(version.policy.anonymity)
    if not section:
        return section
    named = {name for role in ROLES for name in section.get(role, ())}
    section["identifiers"] = [
        *section.get("identifiers", ()),
        *(name for name in version.policy.owner if name not in named),
    ]
    return section


class _Publishing:
    """One open page."""

    def __init__(self, session: Session, tables: dict[str, dict[str, Any]]) -> None:
        self.session, self.tables = session, tables
        self.curve: dict[int, dict[str, Any]] = {}
        self.shown: dict[str, Any] = {}  # for which options the curve is

    def build(self) -> None:
        with card():
            ui.label(_ABOUT).classes("d-muted")
            with ui.row().classes("w-full items-end gap-4"):
                names = sorted(self.tables)
                self.table = ui.select(names, value=names[0], label="Table").props("outlined dense")
                self.table.style("flex: 1 1 160px").on_value_change(self._other)
                self.diversity = self._number("l: different secrets in a class", 1, 1000)
                self.closeness = self._number("t: at most so far from the table", 0, 1, 0.05)
                self.suppress = self._number("% of rows that may be suppressed", 0, 100)
                self.method = ui.select(_METHODS, value=_METHODS[0], label="Method").props("outlined dense")
                self.method.style("flex: 1 1 120px").on_value_change(self._stale)
            with (
                ui.expansion("More models").classes("w-full").props("dense"),
                ui.row().classes("w-full items-end gap-4"),
            ):
                self.kind = self._choice("Kind of l", ["distinct", "probabilistic", "entropy", "recursive"])
                self.c = self._number("c: of recursive l-diversity", 0, 1000, 0.5)
                self.distance = self._choice("Distance of t", ["ordered", "equal", "hierarchy"])
                self.beta = self._number("β: a class may say so much more", 0, 1000, 0.5)
            self.roles = ui.column().classes("gap-0")
            with ui.row().classes("w-full items-center gap-4"):
                with ui.column().classes("gap-2").style("flex: 1 1 240px"):
                    self.words = ui.label().classes("text-weight-medium d-number").props("aria-live=polite")
                    self.slider = Slider("k", len(KS) - 1, _FIRST)
                    self.slider.on_value_change(self._moved)
                self.look = ui.button("Show what is lost", icon="show_chart", on_click=self.draw)
                self.look.props("unelevated no-caps padding='10px 20px'")
                self.button = ui.button("Publish…", icon="publish", on_click=self._ask)
                self.button.props("outline no-caps color=negative padding='10px 20px'")
        self.place = ui.column().classes("w-full gap-3").props("aria-live=polite")
        self._other()

    def _number(self, label: str, low: float, high: float, step: float = 1) -> ui.number:
        found = ui.number(label, min=low, max=high, step=step).props("outlined dense clearable")
        found.style("flex: 1 1 180px").on_value_change(self._stale)
        return found

    def _choice(self, label: str, of: list[str]) -> ui.select:
        found = ui.select(of, label=label).props("outlined dense clearable")
        found.style("flex: 1 1 160px").on_value_change(self._stale)
        return found

    @property
    def k(self) -> int:
        """Where the slider stands."""
        return KS[self.slider.value]

    def _options(self) -> dict[str, Any]:
        found: dict[str, Any] = {"table": self.table.value, "method": self.method.value, "time": _SECONDS}
        for key, field in (("l", self.diversity), ("c", self.c), ("t", self.closeness), ("beta", self.beta)):
            if field.value is not None:
                found[key] = float(field.value)
        for key, chosen in (("l_kind", self.kind), ("t_distance", self.distance)):
            if chosen.value is not None:
                found[key] = chosen.value
        if self.suppress.value is not None:
            found["suppress"] = float(self.suppress.value) / 100
        return found

    def _other(self) -> None:
        """Another table: who is who in it."""
        about = self.tables[self.table.value]
        self.roles.clear()
        with self.roles:
            section = about["section"]
            for role, words in (
                ("identifiers", "Names people, and is replaced by *"),
                ("quasi", "Others may know, and is made coarser"),
                ("sensitive", "Secret, and published as it is"),
            ):
                if section.get(role):
                    ui.label(f"{words}: {', '.join(section[role])}.").classes("d-muted text-caption")
            if about["published"]:
                warn(about["published"])
        self._stale()

    def _stale(self) -> None:
        """What is drawn is not what would be made."""
        self.curve, self.shown = {}, {}
        self.place.clear()
        self._moved()

    def _moved(self) -> None:
        known = self.curve.get(self.k)
        self.words.set_text(f"k = {self.k}" + (f": {_told(known)}" if known else ""))
        if self.curve:
            self._show()

    def _enable(self, *, working: bool) -> None:
        for each in (self.look, self.button):
            each.set_enabled(not working)

    async def draw(self) -> None:
        """What is lost at each k; nothing leaves."""
        options = self._options()
        found = await self._obtain({**options, "k": self.k, "dry_run": True, "curve": list(KS)}, "Making rows alike…")
        if found is None:
            return
        self.curve, self.shown = {each["k"]: dict(each) for each in found.curve}, options
        self.facts, self.made_for = dict(found.facts), self.k
        self._moved()

    async def _obtain(self, asked: dict[str, Any], words: str) -> Published | None:
        self._enable(working=True)
        busy(self.place, words)
        try:
            return await calls.publish(self.session, asked)
        except AuthMissingError:
            over()
        except DaleniusError as error:
            self.place.clear()
            with self.place:
                trouble(error)
        finally:
            self._enable(working=False)
        return None

    def _show(self) -> None:
        self.place.clear()
        with self.place, card().props('role=region aria-label="What is lost"'):
            heading("What is lost at each k", 2).classes("text-subtitle1 text-weight-medium")
            points = [(k, each["loss"]["ncp"]) for k, each in sorted(self.curve.items()) if each["loss"]]
            drawn = ui.echart(loss_by_k(points, self.k), renderer="svg").classes("w-full").style("height: 300px")
            drawn.props["role"], drawn.props["aria-label"] = "img", "Loss by k"
            known = self.curve.get(self.k)
            if known is None:
                ui.label(f"k = {self.k} cannot be reached with what is asked.").classes("d-warn")
            elif known["loss"]:
                ui.label(f"At k = {self.k}: {loss_words(known['loss'])}.").classes("d-number")
            if self.k == self.made_for:
                for each in self.facts["models"]:
                    column = f" of {each['column']}" if each.get("column") else ""
                    ui.label(
                        f"{each['model']}{column}: {asked_words(each['asked'])}, reaches {each['reached']:g}."
                    ).classes("d-muted text-caption")
                for line in how_made(self.facts):
                    ui.label(line).classes("d-muted text-caption")
            for line in self._of_made():
                warn(line)
            ui.label(LIMITS).classes("d-muted text-caption")

    def _ask(self) -> None:
        """Asks whether it is meant: it cannot be undone."""
        from dalenius.anonymity.publishing import WHY

        asked = {**self._options(), "k": self.k}
        name = self.table.value
        with (
            dialog_named(f"Publish rows of {name}") as dialog,
            ui.card().classes("w-full gap-3").style("max-width: 640px"),
        ):
            heading(f"Publish rows of {name}, k = {self.k}", 2).classes("text-h6")
            warn(WHY)
            for line in self._said():
                warn(line)
            sure = ui.checkbox("I understand that this cannot be undone")
            reason = ui.input("Reason").props("outlined dense maxlength=500").classes("w-full")

            async def act() -> None:
                dialog.close()
                wanted = {**asked, "yes": True, "reason": (reason.value or "").strip()}
                found = await self._obtain(wanted, "Making rows alike, then putting it on record…")
                if found is not None:
                    self._published(found)

            with ui.row().classes("gap-2"):
                confirm = ui.button("Publish", icon="publish", on_click=act).props("unelevated no-caps color=negative")
                ui.button("Cancel", on_click=dialog.close).props("flat no-caps autofocus")
            confirm.disable()
            sure.on_value_change(lambda: confirm.set_enabled(bool(sure.value)))

    def _said(self) -> list[str]:
        """What must be known before: of the table that was drawn, else that nothing is known yet."""
        if not self.curve or self._options() != self.shown:
            return [f"{_NOT_PEOPLE} “Show what is lost” tells whether somebody has several rows here."]
        return self._of_made()

    def _of_made(self) -> list[str]:
        """What is to be said of the table that was made; what it lost is of its own k alone."""
        lines = _lines(self.facts)
        return lines if self.k == self.made_for else [each for each in lines if not each.startswith(LOST)]

    def _published(self, found: Published) -> None:
        facts = found.facts
        self.curve = {}
        self.place.clear()
        with self.place, card().props("role=status"):
            heading(f"Published: {facts['rows']:,} rows in {facts['classes']:,} classes", 2).classes("text-subtitle1")
            if found.record is not None:
                ui.label(f"{_DONE} {found.record.id}, entry {found.record.entry} of the ledger.")
            warn(f"ε no longer bounds what can be learned from {found.dataset}.")
            for line in _lines(facts):
                warn(line)
            if found.file is not None:
                name = found.file.name
                ui.label(f"SHA-256 {name.partition('.')[0]}").classes("d-code").style("overflow-wrap: anywhere")
                ui.button("Download", icon="download", on_click=lambda: self._download(name)).props(
                    "unelevated no-caps"
                )

    async def _download(self, name: str) -> None:
        from dalenius.anonymity.publishing import stored_file

        home = self.session.service.curator.home
        route = "GET /v1/publications/{name}"
        content = await attempt(self.session, route, lambda: stored_file(home, name).read_bytes())
        if content is not None:
            ui.download.content(content, f"{self.table.value}{name[name.index('.') :]}")


def _lines(facts: Mapping[str, Any]) -> list[str]:
    """Columns in no role, and warnings."""
    plain = [as_they_are(facts)] if facts.get("as_they_are") else []
    return [*plain, *(facts.get("warnings") or ())]


def _told(known: dict[str, Any]) -> str:
    gone = f", {known['suppressed']:,} rows suppressed" if known.get("suppressed") else ""
    return f"{known['classes']:,} classes{gone}" + (f", NCP {known['loss']['ncp']:.3f}" if known["loss"] else "")

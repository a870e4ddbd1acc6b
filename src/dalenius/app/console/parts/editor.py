"""The editor, and questions to begin with, made from policies.

It completes names from the policy, follows the browser's theme, has a name for screen readers, and is no trap for Tab.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from nicegui import events, ui

from dalenius.queries.release import shown
from dalenius.queries.rules.parse import as_written

_WORDS = (
    "SELECT, FROM, WHERE, GROUP BY, ORDER BY, HAVING, LIMIT, AND, OR, NOT, IN, BETWEEN, LIKE, IS, NULL, AS, DISTINCT, "
    "JOIN, LEFT, ON, USING, CASE, WHEN, THEN, ELSE, END, ASC, DESC, WITH, TRUE, FALSE, DATE, INTERVAL"
)
_NUMBERS = {"integer", "number"}
_FUNCTIONS = "COUNT, SUM, AVG, MEDIAN, STDDEV, VARIANCE, MIN, MAX, ROUND, EXTRACT, DATE_TRUNC, COALESCE"
_LONGEST = 40_000  # characters; a question has up to half as many
# Runs in the browser, once the editor is there. All that is put into it is JSON.
_DRESS = """(async (id, name, options) => {
  const CM = await import("nicegui-codemirror");
  while (!getElement(id)?.editorPromise) await new Promise(resolve => setTimeout(resolve, 100));  // its tab is closed
  const component = getElement(id), view = await component.editorPromise;
  const extra = [CM.EditorView.contentAttributes.of({"aria-label": name, tabindex: "0"})];
  if (options.length) {
    const complete = (context) => {
      const word = context.matchBefore(/"?\\w*/);
      return word && (context.explicit || word.from < word.to)
        ? {from: word.from, options, validFor: /^"?\\w*$/} : null;
    };
    extra.push(CM.EditorState.languageData.of(() => [{autocomplete: complete}]));
  }
  view.dispatch({effects: CM.StateEffect.appendConfig.of(extra)});
  view.setTabFocusMode?.(true);
  const themed = () => component.setTheme(
    document.body.classList.contains("body--dark") ? "githubDark" : "vscodeLight");
  themed();
  new MutationObserver(themed).observe(document.body, {attributeFilter: ["class"]});
})"""


class Editor(ui.codemirror):
    """An editor of which no more than a page or two is ever held.

    The framework believes what a browser says of how a text changed; here that must be a change of this text, into one
    that is not too long. A change that is not is left out, and the browser gets the text as it is.
    """

    def __init__(self, text: str, longest: int, **how: Any) -> None:
        self.longest = longest
        super().__init__(text, line_wrapping=True, theme="vscodeLight", **how)

    def _event_args_to_value(self, e: events.GenericEventArguments) -> str:
        said, e.args = e.args, {}  # which the framework keeps, and has no use for
        if _is_change(said, len(self._codepoints), self.longest):
            return self._apply_change_set(said["sections"], said["inserted"])
        self.update()
        ui.notify(f"This text can have up to {self.longest:,} characters.", type="warning")
        return self.value or ""


def _is_change(said: Any, length: int, longest: int) -> bool:
    """Whether it is a change of a text of this length, as the editor writes it: kept and replaced pieces, in order."""
    if not isinstance(said, dict):
        return False
    sections, inserted = said.get("sections"), said.get("inserted")
    if not isinstance(sections, list) or not isinstance(inserted, list) or len(sections) % 2:
        return False
    if not all(isinstance(each, int) and each >= -1 for each in sections) or any(each < 0 for each in sections[::2]):
        return False
    if not all(isinstance(lines, list) and all(isinstance(each, str) for each in lines) for lines in inserted):
        return False
    kept = sum(old for old, new in zip(sections[::2], sections[1::2], strict=True) if new == -1)
    put = sum(len(line) + 1 for lines in inserted for line in lines)
    return sum(sections[::2]) == length and kept + put <= longest


def sql_editor(text: str, tables: Iterable[dict[str, Any]], ask: Callable[[], Awaitable[None]]) -> ui.codemirror:
    """An editor for questions about ``tables``; Ctrl+Enter asks."""
    editor = Editor(text, _LONGEST, language="SQL", keymap={"Mod-Enter": ask})
    dress(editor.classes("d-sql"), "Question in SQL", completions(tables))
    return editor


def dress(editor: ui.codemirror, name: str, options: Iterable[dict[str, Any]] = ()) -> None:
    """What only the browser knows or can do."""
    editor.classes("w-full d-line")
    ui.run_javascript(f"{_DRESS}({editor.id}, {json.dumps(name)}, {json.dumps(list(options))})")


def completions(tables: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What may be typed: names from the policies, functions, words of SQL; each as data, never as markup."""
    found: dict[str, dict[str, Any]] = {}
    for table in tables:
        found[table["name"]] = _option(table["name"], "class", "table", boost=2)
        for name, spec in table["columns"].items():
            found[name] = _option(name, "property", f"{spec.get('type', '')} · {table['name']}", boost=3)
            for key in spec.get("keys", ()):
                if isinstance(key, str):
                    literal = "'" + key.replace("'", "''") + "'"
                    found.setdefault(literal, {"label": literal, "type": "constant", "detail": shown(name, 40)})
        for name in table.get("public") or {}:
            found[name] = _option(name, "class", "public table", boost=1)
    for name in _FUNCTIONS.split(", "):
        found.setdefault(name, {"label": name, "type": "function", "apply": f"{name}("})
    for name in _WORDS.split(", "):
        found.setdefault(name, {"label": name, "type": "keyword"})
    return list(found.values())


def _option(name: str, kind: str, detail: str, boost: int) -> dict[str, Any]:
    return {"label": as_written(name), "type": kind, "detail": shown(detail, 60), "boost": boost}


class Example(NamedTuple):
    """A question, in words and in SQL."""

    words: str
    sql: str


def examples(table: dict[str, Any]) -> list[Example]:
    r"""A few, the first of which gives a chart where the policy names keys.

    >>> table = {"name": "visits", "columns": {"region": {"type": "category", "keys": ["n", "s"]}}}
    >>> examples(table)[0]
    Example(words='Rows by region', sql='SELECT region, COUNT(*) AS n\nFROM visits\nGROUP BY region')
    """
    columns = table["columns"]
    keyed = [each for each, spec in columns.items() if spec.get("keys")]
    numbers = [each for each, spec in columns.items() if spec.get("type") in _NUMBERS and spec.get("bounds")]
    found = [Example(f"Rows by {key}", _written(table["name"], "COUNT(*) AS n", key)) for key in keyed[:1]]
    found.append(Example("How many rows?", _written(table["name"], "COUNT(*) AS n")))
    for number in numbers[:1]:
        average = f"AVG({as_written(number)}) AS average"
        found.append(Example(f"Average {number}", _written(table["name"], average)))
        found += [Example(f"Average {number} by {key}", _written(table["name"], average, key)) for key in keyed[:1]]
    return found


def _written(table: str, measure: str, key: str = "") -> str:
    if not key:
        return f"SELECT {measure}\nFROM {as_written(table)}"
    return f"SELECT {as_written(key)}, {measure}\nFROM {as_written(table)}\nGROUP BY {as_written(key)}"

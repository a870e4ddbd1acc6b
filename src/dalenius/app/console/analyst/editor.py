"""The editor for SQL: completion from the policy, the browser's theme, a name for screen readers, no trap for Tab."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from nicegui import ui

from dalenius.app.console.analyst.examples import quoted
from dalenius.queries.release import shown

_WORDS = (
    "SELECT, FROM, WHERE, GROUP BY, ORDER BY, HAVING, LIMIT, AND, OR, NOT, IN, BETWEEN, LIKE, IS, NULL, AS, DISTINCT, "
    "JOIN, LEFT, ON, USING, CASE, WHEN, THEN, ELSE, END, ASC, DESC, WITH, TRUE, FALSE, DATE, INTERVAL"
)
_FUNCTIONS = "COUNT, SUM, AVG, MEDIAN, STDDEV, VARIANCE, MIN, MAX, ROUND, EXTRACT, DATE_TRUNC, COALESCE"
# Runs in the browser, once the editor is there. All that is put into it is JSON.
_DRESS = """(async (id, name, options) => {
  const CM = await import("nicegui-codemirror");
  while (!getElement(id)?.editorPromise) await new Promise(resolve => setTimeout(resolve, 100));  // its tab is closed
  const component = getElement(id), view = await component.editorPromise;
  const extra = [CM.EditorView.contentAttributes.of({"aria-label": name})];
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
    document.body.classList.contains("body--dark") ? "githubDark" : "githubLight");
  themed();
  new MutationObserver(themed).observe(document.body, {attributeFilter: ["class"]});
})"""


def sql_editor(text: str, tables: Iterable[dict[str, Any]], ask: Callable[[], Awaitable[None]]) -> ui.codemirror:
    """An editor for questions about ``tables``; Ctrl+Enter asks."""
    editor = ui.codemirror(text, language="SQL", theme="githubLight", line_wrapping=True, keymap={"Mod-Enter": ask})
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
    return {"label": quoted(name), "type": kind, "detail": shown(detail, 60), "boost": boost}

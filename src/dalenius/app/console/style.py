"""How the console looks: one set of colours for light and one for dark, and the mark."""

from __future__ import annotations

from urllib.parse import quote

# A person behind a screen that lets only the outline through.
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1f5a8a"/>'
    '<g fill="#fff"><circle cx="16" cy="11.5" r="4.5"/><path d="M7 26c0-5 4-8 9-8s9 3 9 8z"/></g>'
    '<path d="M5 16h22M5 21h22" stroke="#1f5a8a" stroke-width="1.6"/></svg>'
)
ICON = "data:image/svg+xml," + quote(MARK)
BAR, WHISKER = "#4a86b8", "#c2410c"  # of charts; both stand out on both backgrounds

_COLOURS = """
:root { --d-back: #f6f8fa; --d-card: #ffffff; --d-text: #1b232c; --d-muted: #53606d; --d-line: #d8dfe6;
  --d-strong: #1f5a8a; --d-soft: #e8f0f7; --d-bad: #b3261e; --d-warn: #845400; --d-good: #2f6b40; }
"""
_DARK = """--d-back: #11161b; --d-card: #1a2128; --d-text: #e7ecf1; --d-muted: #a9b4bf; --d-line: #313b46;
  --d-strong: #8fc1ea; --d-soft: #22303d; --d-bad: #f2b8b5; --d-warn: #f0c36d; --d-good: #8cc79d;"""

# In place of a script that would look at every change of a page to write them: the few short names that pages use, and
# what these count on. In the framework's own layers, so that they win over its parts and lose against what follows.
_SHORT = """
@layer base {
  *, ::before, ::after { box-sizing: border-box; margin: 0; padding: 0; border: 0 solid; }
  html { line-height: 1.5; }
  a { color: inherit; text-decoration: inherit; }
  ul, ol { list-style: none; }
  img, svg, canvas { display: block; vertical-align: middle; }
  table { border-collapse: collapse; border-color: inherit; }
  button, input, select, textarea { font: inherit; color: inherit; letter-spacing: inherit; background: transparent; }
}
@layer utilities {
  .w-full { width: 100%; }
  .gap-0 { gap: 0; } .gap-1 { gap: .25rem; } .gap-2 { gap: .5rem; } .gap-3 { gap: .75rem; } .gap-4 { gap: 1rem; }
  .items-start { align-items: flex-start; } .items-center { align-items: center; } .items-end { align-items: flex-end; }
  .items-baseline { align-items: baseline; }
  .justify-between { justify-content: space-between; } .justify-center { justify-content: center; }
  .text-center { text-align: center; }
  .bg-transparent { background-color: transparent; }
}
"""

STYLE = f"""
{_SHORT}
{_COLOURS}
body.body--dark {{ {_DARK} }}
body {{ background: var(--d-back) !important; color: var(--d-text); }}
body.body--dark .text-primary {{ --q-primary: var(--d-strong); }}
body.body--dark .q-field--focused {{ --q-primary: var(--d-strong); }}
body.body--dark .text-secondary {{ --q-secondary: var(--d-good); }}
body.body--dark .text-negative {{ --q-negative: var(--d-bad); }}
body.body--dark .text-warning {{ --q-warning: var(--d-warn); }}
.q-header {{ background: var(--d-card) !important; color: var(--d-text) !important;
  border-bottom: 1px solid var(--d-line); }}
.d-head {{ display: flex; flex-wrap: wrap; align-items: center; column-gap: 1rem; min-height: 56px; width: 100%; }}
.d-nav {{ display: flex; gap: .25rem; overflow-x: auto; max-width: 100%; }}
.d-nav a {{ display: inline-flex; align-items: center; gap: .4rem; padding: .45rem .7rem; white-space: nowrap;
  color: var(--d-muted); text-decoration: none; border-radius: 8px; font-weight: 500; }}
.d-nav a:hover {{ background: var(--d-soft); color: var(--d-text); }}
.d-nav a[aria-current] {{ background: var(--d-soft); color: var(--d-strong); }}
.d-who {{ margin-left: auto; display: flex; align-items: center; gap: .5rem; }}
.d-page {{ max-width: 1180px; margin: 0 auto; width: 100%; }}
.d-page, .q-card {{ overflow-wrap: anywhere; }}
.d-page.d-wide {{ max-width: 1440px; }}
.d-card {{ background: var(--d-card); border: 1px solid var(--d-line); border-radius: 12px; }}
.d-line {{ border: 1px solid var(--d-line); border-radius: 8px; }}
.d-muted {{ color: var(--d-muted); }}
.d-warn {{ color: var(--d-warn); }}
.d-good {{ color: var(--d-good); }}
.d-bad {{ color: var(--d-bad); font-weight: 500; }}
.d-grid {{ display: grid; gap: 1rem; width: 100%;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)); }}
.d-number {{ font-variant-numeric: tabular-nums; }}
.d-code {{ font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 13px; }}
.d-tag {{ display: inline-block; padding: .1rem .55rem; border-radius: 99px; font-size: 12px; font-weight: 500;
  background: var(--d-soft); color: var(--d-strong); }}
.d-tag.d-free {{ color: var(--d-good); }}
.d-understood {{ display: grid; grid-template-columns: minmax(7rem, 11rem) 1fr; gap: .35rem 1rem; margin: 0; }}
.d-understood dt, .d-understood dd {{ margin: 0; min-width: 0; }}
.d-tip {{ border-left: 3px solid var(--d-strong); padding: .1rem 0 .1rem .8rem; }}
@layer theme {{ /* the framework's first layer: there it wins over "outline: 0 !important" of a later one */
  :focus-visible {{ outline: 3px solid #2f7fd1 !important; outline-offset: 2px !important; }}
  .q-field :focus-visible {{ outline: none !important; }} /* the whole field shows it */
}}
.q-field--focused .q-field__control::after {{ border: 3px solid #2f7fd1 !important; }}
.cm-editor {{ font-size: 14px; border-radius: 8px; }}
.cm-editor .cm-activeLine, .cm-editor .cm-activeLineGutter {{ background: transparent !important; }}
.d-sql {{ height: auto; }}
.d-sql .cm-gutters {{ border-radius: 7px 0 0 7px; }}
.d-sql .cm-editor {{ min-height: 5.5rem; max-height: 40vh; }}
/* Short enough that the list does not hide Ask below the editor, which would then take no press. */
.d-sql .cm-tooltip.cm-tooltip-autocomplete > ul {{ max-height: 5.2em !important; }}
#q-loading-bar {{ display: none; }}
.nicegui-content {{ padding: 0; }}
.d-nowrap {{ white-space: nowrap; }}
.q-table__container {{ background: transparent !important; color: inherit; }}
.q-dialog .q-card {{ background: var(--d-card); color: var(--d-text); position: relative; z-index: 1; }}
.q-table__grid-item-card {{ background: transparent; }}
.nicegui-echart svg text {{ fill: var(--d-muted) !important; }}
.nicegui-error-popup {{ background: var(--d-card) !important; color: var(--d-text); border: 1px solid var(--d-warn); }}
@media (max-width: 599px) {{
  .d-understood {{ grid-template-columns: 1fr; }}
  .d-nav {{ order: 3; width: 100%; padding-bottom: .25rem; }}
  .d-nav .q-icon, .q-tab .q-icon {{ display: none; }}
  .q-tab {{ padding: 0 10px; }}
}}
@media print {{ .d-noprint, header {{ display: none !important; }} }}
"""

SIGN_IN_STYLE = f"""
{_COLOURS}
@media (prefers-color-scheme: dark) {{ :root {{ {_DARK} }} }}
body {{ background: var(--d-back); color: var(--d-text); font: 16px/1.5 Roboto, system-ui, sans-serif; margin: 0; }}
main {{ max-width: 26rem; margin: 10vh auto 0; padding: 1.5rem; background: var(--d-card);
  border: 1px solid var(--d-line); border-radius: 12px; }}
@media (max-width: 480px) {{ main {{ margin: 1rem; }} }}
.name {{ display: flex; align-items: center; gap: .5rem; margin: 0; font-weight: 500; font-size: 1.1rem; }}
h1 {{ font-size: 1.6rem; font-weight: 400; margin: 1rem 0 .5rem; }}
label {{ display: block; font-weight: 500; margin-top: 1rem; }}
input {{ width: 100%; box-sizing: border-box; padding: .7rem; font: inherit; margin: .25rem 0 1rem; color: inherit;
  background: var(--d-back); border: 1px solid var(--d-muted); border-radius: 8px; }}
input::placeholder {{ color: var(--d-muted); }}
button {{ padding: .6rem 1.2rem; font: inherit; font-weight: 500; color: #fff; background: #1f5a8a; border: 0;
  border-radius: 8px; cursor: pointer; }}
:focus-visible {{ outline: 3px solid #2f7fd1; outline-offset: 2px; }}
[role=alert] {{ color: var(--d-bad); font-weight: 500; }}
[role=status] {{ color: var(--d-good); }}
.more {{ color: var(--d-muted); font-size: .85rem; margin: 1.5rem 0 0; }}
"""

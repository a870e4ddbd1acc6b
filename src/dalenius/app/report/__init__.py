"""The report: what a home promised, what was spent and done, and whether its history holds; for an outside reader.

Everything is told from the entries of the history themselves, up to the one that was verified last: no number in it is
of another moment than the head that stands in it. Nothing here looks at data.

`gathering` verifies the history and has `story` read it, entry by entry, with `accounts` for what was spent; `model` is
what comes out. `html` writes it down, with `promises` and `record` for its sections, `charts` for its drawings, `words`
for its theorems and glossary.
"""

from dalenius.app.report.gathering import report
from dalenius.app.report.html import POLICY, body, document
from dalenius.app.report.model import Report, Spending
from dalenius.app.report.style import STYLE

__all__ = ["POLICY", "STYLE", "Report", "Spending", "body", "document", "report"]

"""The report: what a home promised, what was spent and done, and whether its history holds; for an outside reader.

Everything is told from the entries of the history themselves, up to the one that was verified last: no number in it is
of another moment than the head that stands in it. Nothing here looks at data.

`gathering` verifies the history and reads it, entry by entry, with `sums` for what was spent; `model` is what comes
out. `html` writes it down, with `sections`, `elements` for their parts, `words` for its theorems and glossary.
"""

from dalenius.app.report.gathering import report
from dalenius.app.report.html import POLICY, SERVED, STYLE, body, document
from dalenius.app.report.model import Report, Spending

__all__ = ["POLICY", "SERVED", "STYLE", "Report", "Spending", "body", "document", "report"]

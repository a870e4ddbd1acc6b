"""Puts the last full result of the hostile tests into docs/attacks/RESULTS.md.

    DALENIUS_LONG=1 python -m pytest tests/attack --junitxml=long.xml
    python scripts/attack_results.py COMMIT long.xml …

Several files are read as one run: what measures time runs by itself. Rows of which nothing ran stay as they are; each
says of which day and commit it is.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "attacks" / "RESULTS.md"
TESTS = ROOT / "tests" / "attack"
BEGIN, END = "<!-- made by scripts/attack_results.py -->", "<!-- until here: full results -->"
OTHERS = {  # what has no class of its own, or is in all of them
    "test_transcripts": "whole releases under one noisy transcript",
    "test_lives": "whole homes, over refreshes, policies and periods",
    "test_neighbour_fuzzer": "exact integers of neighbours, one table",
    "test_joined_fuzzer": "exact integers of neighbours, several tables",
    "test_synthetic_neighbours": "exact integers of neighbours, synthetic tables",
    "test_planted_bugs": "planted bugs, each caught",
    "test_ledger_tampering": "edited ledgers",
    "test_ledger_forgeries": "forged ledgers",
}


@dataclass
class Seen:
    """What became of some tests."""

    files: set[str] = field(default_factory=set)
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    days: set[str] = field(default_factory=set)

    @property
    def ran(self) -> bool:
        """Whether anything did."""
        return bool(self.passed + self.failed)

    @property
    def words(self) -> str:
        """In a cell of the table."""
        parts = [f"{self.passed:,} passed"]
        parts += [f"**{self.failed:,} failed**"] if self.failed else []
        parts += [f"{self.skipped:,} skipped"] if self.skipped else []
        return ", ".join(parts)


def main(commit: str, reports: list[Path]) -> None:
    """Reads the reports, renews the rows of what ran."""
    seen: dict[str, Seen] = defaultdict(Seen)
    for file in sorted(TESTS.glob("test_*.py")):
        if (found := _class_of(file.stem)) is not None:
            seen[found].files.add(file.name)
    for report in reports:
        for suite in ET.parse(report).iter("testsuite"):  # noqa: S314 (our own)
            day = suite.get("timestamp", "")[:10]
            for case in suite.iter("testcase"):
                stem = next((each for each in case.get("classname", "").split(".") if each.startswith("test_")), "")
                found = _class_of(stem)
                if found is not None:
                    _count(seen[found], case, day)
    before = _rows()
    rows = []
    for name, each in _ordered(seen):
        cells = f"{each.words} | {each.seconds:,.0f} s | {max(each.days, default='')}, {commit}"
        rows.append(f"| {name} | {_files(each)} | {cells if each.ran else before.get(name, 'not run | |')} |")
    heads = ["| class | tests | last full result | took | run |", "|---|---|---|---|---|"]
    _renew("\n".join([*heads, *rows]))


def _rows() -> dict[str, str]:
    """What the page says now: of each class its last three cells."""
    page = PAGE.read_text(encoding="utf-8")
    table = page[page.index(BEGIN) : page.index(END)]
    cells = [[each.strip() for each in line.strip("|").split("|")] for line in table.splitlines() if line[:2] == "| "]
    return {row[0]: " | ".join(row[2:]) for row in cells if len(row) == 5}


def _class_of(stem: str) -> str | None:
    hostile = re.match(r"test_h(\d\d)_", stem)
    return f"H{int(hostile[1])}" if hostile else OTHERS.get(stem)


def _count(seen: Seen, case: ET.Element, day: str) -> None:
    seen.days.add(day)
    seen.seconds += float(case.get("time", 0))
    if case.find("failure") is not None or case.find("error") is not None:
        seen.failed += 1
    elif case.find("skipped") is not None:
        seen.skipped += 1
    else:
        seen.passed += 1


def _ordered(seen: dict[str, Seen]) -> list[tuple[str, Seen]]:
    classes = sorted((each for each in seen if re.fullmatch(r"H\d+", each)), key=lambda each: int(each[1:]))
    return [(each, seen[each]) for each in (*classes, *(each for each in OTHERS.values() if each in seen))]


def _files(seen: Seen) -> str:
    return ", ".join(f"`{each}`" for each in sorted(seen.files))


def _renew(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(f"{page[:start]}\n\n{text}\n\n{page[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], [Path(each) for each in sys.argv[2:]])

"""Names in backquotes or brackets, and texts with a letter before them: the quotes of other databases.

    `region`, [region]    →  "region"
    N'Zoë', r'^A'         →   'Zoë',  '^A'

Each is as long as before, so that every mistake is still pointed at where it stands.
"""

from __future__ import annotations

import re

# Texts, names and remarks are passed over as a whole. Behind a name or a parenthesis a bracket is an index of a list.
_PARTS = re.compile(
    r"""(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*+'|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$"""
    r"""|(?:(?<![\w$])(?P<letter>[NnRr]))?'(?:[^']|'')*+'|"(?:[^"]|"")*+"|--[^\n]*|/\*.*?\*/"""
    r"""|`(?P<back>[^`"\n]+)`|(?<![\w)\]"`])\[(?P<bracket>[^\W\d][^\[\]"'`,\n]*)\]""",
    re.DOTALL,
)
_NESTED = re.compile(r"/\*(?:(?!\*/).)*/\*", re.DOTALL)  # remarks in remarks: where they end is the tokenizer's matter


def requote(text: str) -> str:
    """The text with the quotes that are read here.

    >>> print(requote("SELECT [mean age], `n` FROM t WHERE a = N'x' AND b IN ['[c]']"))
    SELECT "mean age", "n" FROM t WHERE a =  'x' AND b IN ['[c]']
    """
    if not any(each in text for each in "`['") or _NESTED.search(text):
        return text
    return _PARTS.sub(_requoted, text)


def _requoted(found: re.Match[str]) -> str:
    name = found["back"] or found["bracket"]
    if name:
        return f'"{name}"'
    whole = found[0]
    return " " + whole[1:] if found["letter"] else whole

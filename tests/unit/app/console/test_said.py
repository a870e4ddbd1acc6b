"""What a browser may say to a page, and how much of what it is told is kept for it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from dalenius.app.console.lines import LONGEST, History, is_heard, is_too_long, is_unread, limit_history, size
from dalenius.app.console.parts.editor import Editor


def page_with(kind, number=7, element=SimpleNamespace):
    """A page that has one element, with one listener."""
    found = element.__new__(element)
    found._event_listeners = {"x": SimpleNamespace(type=kind)}
    return SimpleNamespace(elements={number: found})


def event(*args, number=7, listener="x"):
    return {"id": number, "listener_id": listener, "args": [json.dumps(each) for each in args]}


def test_only_what_our_pages_listen_to_is_heard():
    assert is_heard(page_with("click"), event())
    for kind in ("selection", "sub_pages_navigate", "sub_pages_open", "anchorPositions", "update:selected"):
        assert not is_heard(page_with(kind), event()), kind
    assert not is_heard(page_with("click", number=0), event(number=0))  # the page itself
    for odd in ({}, {"id": [], "listener_id": "x"}, {"id": 7, "listener_id": {}}, {"id": 8, "listener_id": "x"}):
        assert not is_heard(page_with("click"), odd), odd


def test_what_is_kept_of_an_event_is_short():
    values, clicks = page_with("update:modelValue"), page_with("click")
    assert not is_too_long(values, event({"value": 3, "label": "é" * 255}))
    assert not is_too_long(values, event("'\"" * (LONGEST // 2)))  # the longest text that a field takes
    assert is_too_long(values, event("a" * 10_000))
    assert is_too_long(values, event([[]] * 1000))
    assert is_too_long(values, event(*[None] * 1000))
    assert not is_too_long(clicks, event({f"of a pointer {at}": at for at in range(100)}))
    assert is_too_long(clicks, event([[]] * 10_000))


@pytest.mark.parametrize("args", ["text", {"0": "1"}, [1], [{}], [["1"]]])
def test_what_no_page_would_send_is_too_long_for_anything(args):
    for page in (page_with("click"), page_with("update:value", element=Editor)):
        assert is_too_long(page, {"id": 7, "listener_id": "x", "args": args})


def test_only_the_text_of_an_editor_may_be_long():
    assert not is_too_long(page_with("update:value", element=Editor), event({"inserted": [["a" * 40_000]]}))
    assert is_too_long(page_with("keybinding", element=Editor), event({"key": "a" * 40_000}))
    assert is_too_long(page_with("update:value"), event({"inserted": [["a" * 40_000]]}))


# --- what a page was told


def entry(number, content):
    return (number, 0.0, ("page", "update", {"1": {"props": content}}))


def test_a_history_holds_so_many_bytes_and_forgets_the_oldest():
    history = History(10_000)
    for at in range(100):
        history.append(entry(at, "a" * 1000))
    assert 3 <= len(history) <= 9 and history[-1][0] == 99
    assert sum(size(each, 10**6) for each in history) <= 10_000
    history.append(entry(100, "a" * 20_000))  # too large to be kept, and what comes before is of no use without it
    assert not history
    history.append(entry(101, "😀" + "a" * 4000))  # of which each character takes four bytes
    assert not history
    history.append(entry(102, b"a" * 4000))
    assert [each[0] for each in history] == [102]


def test_a_history_can_be_rewound_and_pruned_as_before():
    history = History(20_000)
    for again in range(3):
        for at in range(5):
            history.append(entry(at, "a" * 1000))
        assert len(history) == 5
        assert (history.pop()[0], history.popleft()[0], len(history)) == (4, 0, 3)
        history.clear()
        assert not history, again


def test_a_page_keeps_its_history_when_its_browser_comes_back():
    page: Any = SimpleNamespace(outbox=SimpleNamespace(message_history=None))
    limit_history(page)
    page.outbox.message_history.append(entry(0, ""))
    limit_history(page)
    assert len(page.outbox.message_history) == 1


def test_who_does_not_read_is_told_no_more():
    def line(*waiting):
        return SimpleNamespace(queue=SimpleNamespace(_queue=[SimpleNamespace(data=each) for each in waiting]))

    assert not is_unread(None) and not is_unread(line()) and not is_unread(line(None, "a" * 10_000, b"a" * 2**20))
    assert is_unread(line(*["a"] * 400))
    assert is_unread(line(*[b"a" * 2**20] * 5))

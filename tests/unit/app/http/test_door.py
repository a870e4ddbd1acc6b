"""Whoever keeps the server's threads busy keeps nobody else out, and nothing that a library logs is heard."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from dalenius.app.http import service as module
from dalenius.app.http.monitoring import start_log
from dalenius.app.http.service import Service
from dalenius.app.http.settings import Settings
from dalenius.ledger import Ledger
from dalenius.ledger.tokens import Role


def test_tokens_are_checked_while_all_other_threads_are_busy(tmp_path):
    Ledger.create(tmp_path / "home")
    service = Service(tmp_path / "home", Settings(), speed=1.0)
    text, token = service.tokens.create(Role.AUDITOR)
    free = threading.Event()

    async def run() -> None:
        busy = [asyncio.create_task(service.run(lambda: free.wait(60))) for _ in range(2 * module._QUICK)]
        await asyncio.sleep(0)
        try:
            assert await asyncio.wait_for(service.holder(text), 30) == token
            assert not any(each.done() for each in busy)
        finally:
            free.set()
        assert all(await asyncio.gather(*busy))

    asyncio.run(run())
    service.close()


def test_a_library_that_quotes_the_question_is_not_heard(monkeypatch: pytest.MonkeyPatch, capfd):
    root, ours = logging.getLogger(), logging.getLogger("dalenius.http")
    monkeypatch.setattr(root, "handlers", [])  # pytest's own would hear everything
    monkeypatch.setattr(ours, "handlers", [])
    monkeypatch.setattr(ours, "propagate", True)
    words = "'SELECT 1' contains unsupported syntax"
    logging.getLogger("sqlglot").warning(words)
    assert words in capfd.readouterr().err
    start_log()
    logging.getLogger("sqlglot").warning(words)
    assert words not in capfd.readouterr().err

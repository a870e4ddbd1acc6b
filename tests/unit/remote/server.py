"""A small real HTTP server over a real curator, which misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dalenius.app.views.balances import balances_json, totals
from dalenius.app.views.tables import summary
from dalenius.errors import AuthMissingError, DaleniusError, InputError, UnknownTableError
from dalenius.measuring.plan import Limits

TOKEN = "dalenius_0123456789ab_" + "s3cret" * 7


def problem(error):
    """As the contract has it."""
    told = error.to_dict()["error"]
    return {
        "type": f"urn:dalenius:{told['code']}",
        "title": told["message"],
        "status": error.status,
        "detail": f"{told['why']} {told['fix']}",
        **told,
    }


class Server:
    """Answers for analyst `ana`. `tricks` are played before what is answered, one a request."""

    def __init__(self, curator, name="ana"):
        self.curator, self.analyst = curator, curator.analyst(name)
        self.seen = []  # (method, path, headers, body)
        self.tricks: deque[Any] = deque()
        self.later = 0.0  # seconds after which an answer leaves
        self.answers = {}  # idempotency key → release or error, as the ledger keeps them
        self.jobs = {}
        self.opened = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                super().setup()
                outer.opened += 1

            def do_GET(self):
                outer.handle(self, None)

            def do_POST(self):
                outer.handle(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self._thread = threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self._thread.join()

    def handle(self, handler, content):
        body = None if content is None else json.loads(content)
        self.seen.append((handler.command, handler.path, dict(handler.headers), body))
        trick = self.tricks.popleft() if self.tricks else None
        if callable(trick):
            trick = trick(self, handler, body)
            if trick is None:
                return
        try:
            if handler.headers["Authorization"] != f"Bearer {TOKEN}":
                raise AuthMissingError("There is no such token.", why="It is unknown.", fix="Ask the owner.")
            status, data = self.answer(handler.path, body)
        except DaleniusError as error:
            status, data = error.status, problem(error)
        if trick == "drop":  # after the charge
            handler.close_connection = True
            return
        send(handler, status, json.dumps(data).encode(), cut=trick == "cut")

    def answer(self, path, body):
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path.split("/")[2:]:
            case ["me"]:
                return 200, {"id": "0123456789ab", "role": "analyst", "analyst": self.analyst.name, "state": "active"}
            case ["preview"]:
                found = self.analyst.preview(body["sql"], **wishes(body))
                plan = found.described() if body.get("plan") else {}
                return 200, {"question": body["sql"], **found.to_dict(), **plan}
            case ["explain"]:
                limits = wishes(body).get("limits")
                found = self.analyst.explain(body["sql"], epsilon=body.get("epsilon"), limits=limits)
                return 200, {"question": body["sql"], **found.to_dict()}
            case ["ask"]:
                return self.ask(body)
            case ["jobs", id_]:
                return 200, self.job(id_)
            case ["budget"]:
                return 200, {"datasets": balances_json(totals(self.curator.ledger, self.analyst.name))}
            case ["tables"]:
                return 200, {"tables": [self.table(each) for each in self.curator.tables()]}
            case ["tables", name]:
                return 200, {"tables": [self.table(self.curator.history(name)[-1])]}
            case ["history"]:
                rows = [each for each in self.analyst.history() if each["entry"] > int(query["after"])]
                rows, more = rows[:2], len(rows) > 2  # small pages
                return 200, {"history": rows, "next": rows[-1]["entry"] if more else None}
            case ["receipts", id_]:
                return 200, {"id": id_}
        raise UnknownTableError("There is no such path.", why="It is unknown.", fix="See the reference.")

    def table(self, version):
        registry = self.curator.registry
        return summary(version, registry.limits(version), registry.closed(version.table))

    def ask(self, body):
        key = body["idempotency_key"]
        if key not in self.answers:
            self.answers[key] = body, self.analyst.ask(body["sql"], **wishes(body))
        first, release = self.answers[key]
        if first != body:
            raise InputError("This idempotency key was used for another request.", why="One each.", fix="Use another.")
        data = {"question": body["sql"], **release.to_dict()}
        if self.later:
            self.jobs[key[:8].encode().hex()] = time.monotonic() + self.later, data, None
            return 202, self.job(key[:8].encode().hex())
        return 200, data

    def job(self, id_):
        if id_ not in self.jobs:
            raise UnknownTableError("There is no such job.", why="It is unknown.", fix="Ask again.")
        leaves, data, failed = self.jobs[id_]
        left = leaves - time.monotonic()
        state = "running" if left > 0 else "failed" if failed else "done"
        return {
            "id": id_,
            "state": state,
            "leaves": "2030-01-01T00:00:00Z",
            "seconds_left": max(0.0, left),
            "result": data if state == "done" else None,
            "problem": failed if state == "failed" else None,
        }


def wishes(body):
    found = {name: body[name] for name in ("epsilon", "error", "confidence", "delta") if name in body}
    if "limits" in body:
        given = dict(body["limits"])
        given["totals"] = {
            name: Fraction(each) if isinstance(each, str) else each for name, each in given.get("totals", {}).items()
        }
        found["limits"] = Limits(**given)
    return found


def send(handler, status, content, *, cut=False, **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2] if cut else content)
    if cut:
        handler.close_connection = True


def says(status, content=b"<html>no</html>", **headers):
    """A trick: this reply, whatever was asked."""
    content = content if isinstance(content, bytes) else json.dumps(content).encode()
    return lambda server, handler, body: send(handler, status, content, **headers)

"""Every example in README and docs/ runs.

Python blocks of one page share a namespace, top to bottom. A shell block is run when it calls `dalenius`:
lines with a `$ ` prompt are commands and the rest is output (shown, not compared); without any prompt, every
line is a command.
`<!-- file: NAME -->` before a block writes it to NAME in the page's folder, for later blocks to read.
`<!-- skip: why -->` before a block leaves it out, and needs its reason. An example that should fail says how:
`<!-- exit: 4 -->`.
`$ dalenius serve … &`, alone in its block, starts a server that ends with the page. It takes a free port, which is put
for the port that the page names (8400 by default) in every later block; `curl` is then run too.
`$ dalenius --home HOME party &`, alone in its block, starts a party of joint computations that ends with the page.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests import forked
from tests.contract.forked import forking

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

BLOCK = re.compile(
    r"(?P<marks>(?:^[ ]*<!--[^\n]*-->\s*\n)*)"
    r"^(?P<indent>[ ]*)```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^[ ]*```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
MARK = re.compile(r"<!--\s*(?P<name>skip|file|exit):\s*(?P<value>.*?)\s*-->")
PARTY = re.compile(r"dalenius (?P<options>--home \S+ )party\s*&")
SERVE = re.compile(r"dalenius serve\b(?P<options>[^\n]*?)\s*&")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    marks: dict[str, str]


def blocks_of(page: str) -> list[Block]:
    found = []
    for match in BLOCK.finditer(page):
        text = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
        marks = {mark["name"]: mark["value"] for mark in MARK.finditer(match["marks"])}
        line = page.count("\n", 0, match.start("text")) + 1
        found.append(Block(match["language"], text, line, marks))
    return found


def commands_of(block: Block) -> str:
    lines = block.text.splitlines()
    prompted = [line[2:] for line in lines if line.startswith("$ ")]
    return "\n".join(prompted or lines)


def calls(program: str, commands: str) -> bool:
    return any(re.search(rf"(^|[|;&]\s*|\$\(){program}\b", line) for line in commands.splitlines())


@dataclass
class Servers:
    """The servers that one page has started."""

    folder: Path
    ports: dict[str, str] = field(default_factory=dict)
    processes: list[subprocess.Popen[str] | forked.Process] = field(default_factory=list)

    def start(self, options: str) -> None:
        """Not by way of the shell: what is ended at the end has to be the server itself."""
        given = shlex.split(options)
        named = given[given.index("--port") + 1] if "--port" in given else "8400"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DALENIUS_")}
        with (self.folder / f"serve {named}.log").open("w") as log:
            words = ["-m", "dalenius", "serve", *given, "--port", "0", "--json"]
            process: subprocess.Popen[str] | forked.Process
            if forked.POSSIBLE:
                process = forked.start(words, log, environment)  # in the working directory, which is the page's folder
            else:
                process = subprocess.Popen(
                    [sys.executable, *words],
                    cwd=self.folder,
                    env=environment,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        self.processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (self.folder / f"serve {named}.log").read_text()
        self.ports[named] = str(urlsplit(json.loads(line)["url"]).port)

    def start_party(self, options: str) -> None:
        """A party, at the address that its home says."""
        words = [sys.executable, "-m", "dalenius", *shlex.split(options), "party"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DALENIUS_")}
        process = subprocess.Popen(
            words, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.processes.append(process)
        assert process.stdout is not None
        assert "waits for calls" in process.stdout.readline()

    def placed(self, block: Block) -> Block:
        """The block with the ports that there are."""
        text = block.text
        for named, port in self.ports.items():
            text = re.sub(rf"\b{named}\b", port, text)
        return replace(block, text=text)

    def runs(self, commands: str) -> bool:
        """Whether a shell block is run."""
        curl = bool(self.ports) and calls("curl", commands)
        return (curl or calls("dalenius", commands)) and not (curl and shutil.which("curl") is None)


@contextmanager
def servers_of(folder: Path) -> Iterator[Servers]:
    found = Servers(folder)
    try:
        yield found
    finally:
        for process in found.processes:
            process.send_signal(signal.SIGTERM)
        for process in found.processes:
            assert process.stdout is not None
            process.stdout.close()
            assert process.wait(60) == 0


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with forking(tmp_path_factory.mktemp("forked")) as folder:
        yield folder


def run_shell(commands: str, folder: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    # First on the path our `dalenius`, then the tests' own environment: what runs is the package under test.
    path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DALENIUS_")}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={**environment, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page: Path, place: Path, programs: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(place)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with servers_of(place) as servers:
        for found in blocks_of(page.read_text()):
            block, where = servers.placed(found), f"{page.relative_to(ROOT)}:{found.line}"
            if "skip" in block.marks:
                assert block.marks["skip"], f"{where}: a skipped example needs its reason"
            elif "file" in block.marks:
                file = place / block.marks["file"]
                file.parent.mkdir(exist_ok=True)
                file.write_text(block.text)
            elif block.language in {"python", "py"}:
                # Blank lines first, so that a traceback shows the line of the page.
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
            elif block.language in {"bash", "console", "sh", "shell"}:
                commands = commands_of(block)
                if server := SERVE.fullmatch(commands.strip()):
                    servers.start(server["options"])
                elif party := PARTY.fullmatch(commands.strip()):
                    servers.start_party(party["options"])
                elif servers.runs(commands):
                    done = run_shell(commands, place, programs)
                    expected = int(block.marks.get("exit", "0"))
                    assert done.returncode == expected, f"{where}\n{done.stdout}\n{done.stderr}"


def test_a_page_is_cut_into_its_blocks():
    page = (
        "<!-- skip: needs a server -->\n```bash\ndalenius serve\n```\n\n"
        "1. so:\n\n    ```console\n    $ dalenius account a.json\n    ε = 1\n    $ ls\n    ```\n"
    )
    first, second = blocks_of(page)
    assert first.marks == {"skip": "needs a server"}
    assert commands_of(second) == "dalenius account a.json\nls"
    assert calls("dalenius", commands_of(second))
    assert not calls("dalenius", "make demo\npip install dalenius")


def test_a_port_that_a_page_names_becomes_the_one_that_its_server_has(tmp_path: Path):
    servers = Servers(tmp_path, {"8400": "50001", "8401": "50002"})
    block = Block("bash", "curl http://127.0.0.1:8400/v1/me; echo 18400 8401", 1, {})
    assert servers.placed(block).text == "curl http://127.0.0.1:50001/v1/me; echo 18400 50002"
    assert servers.runs("curl x") and not Servers(tmp_path).runs("curl x")
    assert SERVE.fullmatch("dalenius serve --port 8401 &")
    assert not SERVE.fullmatch("dalenius serve --port 8401")
    assert PARTY.fullmatch("dalenius --home lab party &")
    assert not PARTY.fullmatch("dalenius --home lab party")


def test_a_command_of_a_page_is_a_process_like_any_other(tmp_path: Path, programs: Path):
    """Its folder, environment, pipes, errors and exit code are the shell's."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "one.json").write_text('[{"mechanism": "pure", "epsilon": 0.5}]')
    commands = (
        "cd other\ndalenius account one.json --delta 0 --json\ndalenius account --delta 0 --json < one.json | cat"
    )
    done = run_shell(commands, tmp_path, programs)
    assert done.returncode == 0 and done.stdout.count('"epsilon": 0.5') == 2, done
    assert done.stderr == ""
    done = run_shell("dalenius --version\nDALENIUS_HOME=nowhere dalenius budget\necho on", tmp_path, programs)
    assert done.returncode not in {0, 1} and "nowhere" in done.stderr and "on\n" not in done.stdout, done

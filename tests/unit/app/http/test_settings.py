"""`[server]` in config.toml: every key, and every value that cannot be."""

import pytest

from dalenius.app.http.settings import FILE, Settings, read_settings
from dalenius.errors import DaleniusError, InputError, NotAllowedError, SourceUnavailableError

GOOD = """
[server]
host = "::1"
port = 0
tls_cert = "cert.pem"
tls_key = "/keys/key.pem"
data_dir = "tables"
rate = 2
burst = 3
concurrency = 4
body = 5
receive = 0.5
wait = 0.25
slots = 2
grace = 0
[other]
x = 1
"""


def written(home, text):
    (home / FILE).write_text(text)
    return read_settings(home)


def test_without_a_file_the_defaults_hold(tmp_path):
    assert read_settings(tmp_path) == Settings()
    assert Settings().host == "127.0.0.1" and Settings().port == 8400 and Settings().data_dir is None


def test_every_key_is_read(tmp_path):
    found = written(tmp_path, GOOD)
    assert (found.host, found.port, found.rate, found.burst, found.concurrency) == ("::1", 0, 2.0, 3, 4)
    assert (found.body, found.receive, found.wait, found.slots, found.grace) == (5, 0.5, 0.25, 2, 0.0)
    assert found.tls_cert == tmp_path / "cert.pem" and found.data_dir == tmp_path / "tables"
    assert str(found.tls_key) == "/keys/key.pem" and found.tls and found.loopback


def test_what_is_given_wins(tmp_path):
    (tmp_path / FILE).write_text('[server]\nport = 1\nhost = "localhost"')
    found = read_settings(tmp_path, port=2, host=None)
    assert (found.port, found.host) == (2, "localhost")
    with pytest.raises(InputError):
        read_settings(tmp_path, port=-1)


NUMBERS = (
    "public_slots",
    "public_seconds",
    "public_memory",
    "results",
    "results_token",
    "rate",
    "burst",
    "concurrency",
    "body",
    "receive",
    "wait",
    "slots",
)
BAD = [
    *((name, value) for name in NUMBERS for value in ("0", "-1", "nan", "inf", "-inf", "true", '"5"', "[]", "{}")),
    *((name, "1.5") for name in ("port", "burst", "concurrency", "body", "slots")),
    *(("port", value) for value in ("-1", "65536", "true", '"8400"')),
    *(("grace", value) for value in ("-1", "nan", "inf", "true", '"1"')),
    *((name, value) for name in ("host", "data_dir", "tls_cert", "tls_key") for value in ('""', "5", "true", "[]")),
    ("slots", "11"),
    ("tls_cert", '"alone.pem"'),
    ("tls_key", '"alone.pem"'),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_what_cannot_be_is_refused_by_name(tmp_path, name, value):
    with pytest.raises(InputError, match="server.(tls_cert|" + name + ")"):
        written(tmp_path, f"[server]\n{name} = {value}\n")


@pytest.mark.parametrize(("name", "meant"), [("hosts", "host"), ("trusted_proxies", ""), ("Port", "port"), ("x", "")])
def test_unknown_keys_are_refused(tmp_path, name, meant):
    with pytest.raises(InputError, match=f"unknown key server.{name}") as caught:
        written(tmp_path, f"[server]\n{name} = 1\n")
    assert meant in caught.value.fix


@pytest.mark.parametrize("content", [b"[server", b"server = 5", b"\xff\xfe", b"[[server]]\nport = 1"])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises((InputError, SourceUnavailableError)):
        read_settings(tmp_path)


def test_a_folder_in_its_place_is_refused(tmp_path):
    (tmp_path / FILE).mkdir()
    with pytest.raises(DaleniusError):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("localhost.evil.example", False),
        ("example.org", False),
        ("127.0.0.1.evil.example", False),
        ("2130706433", False),
    ],
)
def test_only_loopback_is_near(host, near):
    from dalenius.app.http.server import check_reach

    settings = Settings(host=host)
    assert settings.loopback == near
    check_reach(settings, without_tls=True)
    if near:
        check_reach(settings, without_tls=False)
    else:
        with pytest.raises(NotAllowedError, match="no TLS"):
            check_reach(settings, without_tls=False)

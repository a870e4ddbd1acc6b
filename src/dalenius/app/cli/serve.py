"""`dalenius serve`: the HTTP API for owners, analysts and auditors on other machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dalenius._extras import require_extra
from dalenius.app.cli.frame import Frame, framed

_FILE = "FILE"


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("serve")(serve)


@framed
def serve(
    frame: Frame,
    host: Annotated[str | None, typer.Option("--host", metavar="H", help="Where to listen; 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="P", help="8400, or the next free one; 0 takes any.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", metavar=_FILE, help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar=_FILE, help="Its key, PEM.")] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", metavar="DIR", help="Policies that come over HTTP may name files below it."),
    ] = None,
    public_url: Annotated[
        str | None,
        typer.Option("--public-url", metavar="URL", help="Where browsers reach it, behind a proxy."),
    ] = None,
    no_console: Annotated[bool, typer.Option("--no-console", help="The API alone, without the web page.")] = False,
    without_tls: Annotated[
        bool,
        typer.Option("--without-tls", help="Be reached by other machines in the clear, as behind a proxy."),
    ] = False,
) -> None:
    """Serves the HTTP API until it is stopped. Who may do what is in the tokens: 'dalenius token create'.

    Example: dalenius serve --data-dir /srv/tables
    """
    require_extra("serve", "fastapi", "nicegui", "prometheus_client", "uvicorn")
    from dalenius.app.http.monitoring import start_log
    from dalenius.app.http.server import address, check_reach, listen
    from dalenius.app.http.server import serve as run
    from dalenius.app.http.settings import read_settings

    home = frame.require_home()
    settings = read_settings(
        home,
        host=host,
        port=port,
        tls_cert=_absolute(tls_cert),
        tls_key=_absolute(tls_key),
        public_url=public_url,
        data_dir=_absolute(data_dir),
        console=False if no_console else None,
    )
    check_reach(settings, without_tls=without_tls)
    start_log(quiet=frame.quiet)
    listening = listen(settings)
    where = address(settings, listening)

    def ready() -> None:
        frame.emit_now({"url": where}, f"Serving on {where}. Stop with Ctrl-C.")

    run(home, settings, listening, ready)
    frame.note("Stopped. Whatever was charged is in the ledger.")


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()

"""regard serve: the page in the browser, and the HTTP API behind it."""

from __future__ import annotations

import ipaddress
import logging
import sys
from typing import Annotated

import typer

from regard.core.shapes import InputError, MissingError


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on; others than this machine need 0.0.0.0")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free")] = 8000,
    model: Annotated[
        list[str] | None, typer.Option(help="NAME=FOLDER, a model that `regard train` made; may be given again")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name by which browsers call this machine; may be given again")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Requests that are worked on at once")] = 2,
    waiting: Annotated[int, typer.Option(min=0, help="Requests that may wait for these; the next get 503")] = 32,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that one request may take")] = 20.0,
) -> None:
    """Type a sentence, translate, tag, fill in …, choose a mechanism and see it: in the browser, offline.

    regard serve --model en-fr=runs/en-fr
    """
    from regard import pretrained

    try:
        from regard.web.app import make_app
        from regard.web.models import Models, parse
        from regard.web.server import listen, make_server
        from regard.web.work import Work
    except ModuleNotFoundError as error:
        if error.name not in ("fastapi", "uvicorn", "starlette", "pydantic"):
            raise
        raise MissingError("the page needs fastapi and uvicorn; pip install 'regard[web]'") from None
    if not timeout < 1e6:
        raise InputError(f"--timeout {timeout}: expected seconds, at most 1,000,000")
    models = Models(parse(model or []), pretrained.names().values())
    logging.basicConfig(level=logging.WARNING, format="regard: %(message)s")
    with listen(host, port) as found:
        at, real = found.getsockname()[:2]
        if not ipaddress.ip_address(at.partition("%")[0]).is_loopback:
            print(
                f"regard: warning: whoever reaches {at} can use this server; it asks for no password", file=sys.stderr
            )
        name = f"[{at}]" if ":" in at else at
        print(f"regard: http://{name}:{real}  (the API: /docs; Ctrl-C ends it)", flush=True)
        app = make_app(models, [host, *(allow_host or [])], Work(threads, waiting, timeout))
        make_server(app).run(sockets=[found])

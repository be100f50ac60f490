"""The application: a thin route for each operation, and a table of the page's files. Everything else is elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from regard import __version__
from regard.core.shapes import InputError
from regard.see.page import view_js
from regard.see.payload import pack
from regard.web import operations
from regard.web.asked import (
    Answered,
    Attend,
    Fill,
    Form,
    Generate,
    Health,
    Known,
    Mechanisms,
    Read,
    Refusal,
    Strict,
    Theme,
    Translate,
    Walk,
    Weights,
    Write,
)
from regard.web.guard import Guard
from regard.web.models import Models, UnknownModelError
from regard.web.work import BusyError, LateError, Work

As = Annotated[Form, Query(alias="as", description="json, its weights as numbers, or a file to keep.")]
Shade = Annotated[Theme, Query(description="Of a picture.")]
ABOUT = "Every operation is also a function in Python and a verb of the command line `regard`."
REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": Refusal, "description": text}
    for code, text in {
        400: "The body is no JSON.",
        403: "Host or Origin is somebody else's.",
        404: "No such model or language.",
        408: "The request came too slowly.",
        409: "It cannot be answered here: nothing to draw, no font for a script.",
        413: "The request is too large.",
        422: "A value is not as it must be; `error` says which, and what was expected.",
        503: "Too busy, or it took too long; try again after Retry-After seconds.",
    }.items()
}
FILES = {  # looked up, never joined into a path
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
FORMS = {
    "content": {
        "application/json": {},
        **{kind.partition(";")[0]: {"schema": {"type": "string"}} for kind in operations.TYPES.values()},
    }
}


def make_app(models: Models | None = None, hosts: Collection[str] = (), work: Work | None = None) -> Guard:
    """The guarded application. `hosts` are names of this server beside those of the loopback interface."""
    models, work = models or Models(), work or Work()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        work.close()

    app = FastAPI(
        title="regard", version=__version__, description=ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    _add_files(app)
    _add_lookups(app, models, work)
    _add_operations(app, models, work)
    _add_refusals(app)
    return Guard(app, hosts)


def _add_files(app: FastAPI) -> None:
    folder = resources.files("regard.web")
    ready = {path: ((folder / name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
    ready["/view.js"] = (view_js().encode(), "text/javascript; charset=utf-8")

    async def file(request: Request) -> Response:
        body, kind = ready[request.scope["path"]]
        return Response(body, media_type=kind)

    for path in ready:
        app.add_api_route(path, file, methods=["GET", "HEAD"], include_in_schema=False)


def _add_lookups(app: FastAPI, models: Models, work: Work) -> None:
    some: dict[int | str, dict[str, Any]] = {code: REFUSALS[code] for code in (403, 503)}

    @app.get("/api/health", responses=some)
    async def health() -> Health:
        """Whether it answers, and how much it has to do. Never waits for the rest."""
        return Health(**operations.health(models, work.inside, work.threads + work.waiting))

    @app.get("/api/models", responses=some)
    async def list_models() -> list[Known]:
        """The models that are here."""
        return [Known(**each) for each in operations.listed(models)]

    @app.get("/api/mechanisms", responses=some)
    async def mechanisms() -> Mechanisms:
        """Scores, normalizers and masks by name."""
        return Mechanisms(**await work.run(operations.mechanisms))


def _add_operations(app: FastAPI, models: Models, work: Work) -> None:
    async def answered(task: str, asked: Read, form: str, theme: str) -> Response:
        def do() -> tuple[Any, str]:
            shown = asked if form == "json" else asked.model_copy(update={"show": True})
            name, answer, picture = operations.ask(models, task, shown)
            if form == "json":
                return operations.answered(name, task, answer, picture), form
            return _formed(picture, form, theme), form

        return _respond(*await work.run(do))

    def add(task: str, kind: type[Strict], about: str) -> None:
        async def route(asked: Any, form: As = "json", theme: Shade = "light") -> Response:
            return await answered(task, asked, form, theme)

        route.__annotations__["asked"], route.__doc__ = kind, about
        found = {200: {**FORMS, "model": Answered | Weights}, **REFUSALS}
        app.post(f"/api/{task}", name=task, responses=found, response_model=None)(route)

    add("translate", Translate, "Translate a text: the model decides the length.")
    add("tag", Read, "A label for each word.")
    add("classify", Read, "A label for the whole text.")
    add("fill", Fill, "The words behind ____.")
    add("denoise", Write, "The whole text of a damaged one.")
    add("generate", Generate, "How a text goes on.")

    @app.post(
        "/api/attend", responses={200: {**FORMS, "model": Weights | dict[str, Any]}, **REFUSALS}, response_model=None
    )
    async def attend(asked: Attend, form: As = "json", theme: Shade = "light") -> Response:
        """What a sentence attends to, under one mechanism or several; `json` is what the page draws."""

        def do() -> Any:
            picture = operations.attend(asked)
            return pack(picture) if form == "json" else _formed(picture, form, theme)

        return _respond(await work.run(do), form)

    @app.post("/api/walk", responses=REFUSALS, response_model=dict[str, Any])
    async def walk(asked: Walk) -> Response:
        """One attention, step by step, with every number."""
        return Response(await work.run(operations.walk, asked), media_type="application/json")


def _formed(picture: Any, form: str, theme: str) -> Any:
    return operations.weights_of(picture) if form == "weights" else operations.drawn(picture, form, theme)


def _respond(found: Any, form: str) -> Response:
    if form in ("json", "weights"):
        return JSONResponse(found)
    keep = {"content-disposition": f'attachment; filename="regard.{form}"'}
    return Response(found, media_type=operations.TYPES[form], headers=keep)


def _add_refusals(app: FastAPI) -> None:
    def refusal(status: int, error: str, headers: dict[str, str] | None = None) -> JSONResponse:
        # An error may quote what came, and what came may be half a surrogate pair.
        clean = " ".join(error.split()).encode("utf-8", "replace").decode()
        return JSONResponse({"error": clean}, status, headers)

    @app.exception_handler(InputError)
    async def wrong(_: Request, error: InputError) -> JSONResponse:
        code = (
            404 if isinstance(error, UnknownModelError) else 409 if isinstance(error, operations.UnableError) else 422
        )
        return refusal(code, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return refusal(400, "the body is no JSON; expected an object such as /openapi.json describes")
        place = ".".join(str(part) for part in first["loc"] if part not in ("body", "query")) or "the body"
        return refusal(422, f"{place}: {first['msg'].removeprefix('Value error, ')}")

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers or {})
        if error.status_code == 400:
            return refusal(400, "the body is no JSON; expected an object such as /openapi.json describes")
        if error.status_code == 404:
            return refusal(404, f"there is no {request.url.path[:80]}; / is the page, /docs lists the rest", headers)
        return refusal(error.status_code, str(error.detail), headers)

    @app.exception_handler(Exception)
    async def broken(_: Request, __: Exception) -> JSONResponse:  # the guard writes it to the log
        return refusal(500, "an error of the server; its log says which")

    @app.exception_handler(BusyError)
    async def busy(_: Request, __: BusyError) -> JSONResponse:
        return refusal(503, "too many requests are waiting; try again in a moment", {"retry-after": "2"})

    @app.exception_handler(LateError)
    async def late(_: Request, __: LateError) -> JSONResponse:
        return refusal(503, "this took too long and was broken off; send a shorter text", {"retry-after": "10"})

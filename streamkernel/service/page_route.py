"""The page at / and its files, all from this package."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

_TYPES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "card.js": "text/javascript; charset=utf-8",
    "chart.js": "text/javascript; charset=utf-8",
    "jobs.js": "text/javascript; charset=utf-8",
    "rates.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


def page_router(*, jobs: bool = False) -> APIRouter:
    """Routes of the page. The files are read once; browsers must not cache them, because a release may change them.

    Parameters
    ----------
    jobs : whether the page shows jobs.
    """
    router = APIRouter(include_in_schema=False)
    folder = files("streamkernel.service") / "static"
    contents = {name: (folder / name).read_bytes() for name in _TYPES}
    if jobs:
        contents["index.html"] = contents["index.html"].replace(b"<body>", b"<body data-jobs>")

    def response(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        return Response(contents[name], media_type=_TYPES[name], headers={"cache-control": "no-cache"})

    @router.get("/")
    async def index() -> Response:
        return response("index.html")

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return response("icon.svg")

    @router.get("/static/{name}")
    async def static(name: str) -> Response:
        return response(name)

    return router

"""The page at / and its files, all from this package."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def page_router(*, jobs: bool = False) -> APIRouter:
    """Routes of the page. The files are read once; browsers must not cache them, because a release may change them.

    Parameters
    ----------
    jobs : whether the page shows jobs.
    """
    router = APIRouter(include_in_schema=False)
    folder = files("streamkernel.service") / "static"
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.name.rpartition(".")[2] in _TYPES}
    if jobs:
        contents["index.html"] = contents["index.html"].replace(b"<body>", b"<body data-jobs>")

    def response(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404)
        media_type = _TYPES[name.rpartition(".")[2]]
        return Response(contents[name], media_type=media_type, headers={"cache-control": "no-cache"})

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

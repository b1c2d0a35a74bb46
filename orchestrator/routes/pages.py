"""Pages for people: the builds and phones of the service, one build with its log, and the API.

They are frames without data, the same for everybody and so open to everybody: what they show, their
scripts ask of the API, where the one access check stands. Nothing is drawn by the server and nothing
is loaded from elsewhere; the policy in the header holds the browser to that.
"""

from importlib.resources import files
from typing import Final

from fastapi import APIRouter
from fastapi.responses import Response

from orchestrator.errors import NotFound

STATIC: Final = "/static/"
BUILD_PAGES: Final = "/builds/"
_MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}

router = APIRouter(include_in_schema=False)


@router.get("/")
def show_builds() -> Response:
    """Give the page that lists phones and builds."""
    return _file("index.html")


@router.get("/docs")
def show_api() -> Response:
    """Give the page that tells of the API; its script reads `/openapi.json`."""
    return _file("docs.html")


@router.get(BUILD_PAGES + "{build_id}")
def show_build(build_id: str) -> Response:
    """Give the page of any build; whether there is such a build, the API tells who may know."""
    del build_id
    return _file("build.html")


@router.get(STATIC + "{name}")
def give_static(name: str) -> Response:
    """Give a script, a style or a picture of the pages; raises `NotFound`."""
    return _file(name)


def _file(name: str) -> Response:
    suffix = name.rpartition(".")[2]
    known = {file.name: file for file in files("orchestrator").joinpath("web").iterdir()}
    if name not in known or suffix not in _MEDIA_TYPES:
        raise NotFound(f"there is no {name!r} among the pages")
    return Response(known[name].read_bytes(), media_type=_MEDIA_TYPES[suffix], headers=_HEADERS)

"""The OpenAPI document: what the framework writes, with every error as the problem it really is."""

import re
from collections.abc import Sequence
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from orchestrator.errors import Refusal
from orchestrator.examples import EXAMPLES
from orchestrator.problem import MEDIA_TYPE, Problem, ids_of, problem_response

_PROBLEM = {
    "description": "Why it was not done, and what to do next.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class WrongMethod(Refusal):
    """The path is known and does not take this method."""

    code = "method_not_allowed"
    status = 405
    default_hint = "The header `Allow` names the methods of this path."


def register(app: FastAPI) -> None:
    """Let an app describe itself, and answer wrong methods with all the right ones."""
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]
    app.add_exception_handler(WrongMethod.status, _on_wrong_method)


def describe(app: FastAPI) -> dict[str, Any]:
    """Give the document of an app; made once, when it is first asked for."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            openapi_version=app.openapi_version,
            routes=app.routes,
        )
        for operations in document["paths"].values():
            for operation in operations.values():
                operation["responses"].pop("422", None)
                operation["responses"]["default"] = _PROBLEM
                for parameter in operation.get("parameters", []):
                    parameter["schema"] = _never_null(parameter["schema"])
                for response in operation["responses"].values():
                    # What stands here would be the schema of each event, and theirs differ.
                    response.get("content", {}).get("text/event-stream", {}).pop("schema", None)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        schemas["Problem"] = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        for name in EXAMPLES.keys() & schemas.keys():
            schemas[name]["examples"] = [EXAMPLES[name]]
        app.openapi_schema = document
    return app.openapi_schema


def methods_of(app: FastAPI, path: str) -> Sequence[str]:
    """Give the methods that the document has for a path, sorted; none for a path outside of it."""
    for template, operations in describe(app)["paths"].items():
        parts = [re.escape(part) for part in re.split(r"\{[^}]+\}", template)]
        if re.fullmatch("[^/]+".join(parts), path):
            return sorted(method.upper() for method in operations)
    return ()


async def _on_wrong_method(request: Request, fault: Exception) -> Response:
    # Each route knows its own methods only; the document has all of a path.
    methods = await to_thread.run_sync(methods_of, request.app, request.url.path)
    known = fault.headers if isinstance(fault, HTTPException) and fault.headers else {}
    headers = {**known, "Allow": ", ".join(methods)} if methods else dict(known)
    refusal = WrongMethod(f"{request.method} is no method of {request.url.path}")
    return problem_response(refusal, ids_of(request), headers)


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Take null out of a parameter's schema: a query or a header can be left out and never be null."""
    kinds = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}

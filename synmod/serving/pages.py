"""What the server shows of itself: the page to try its programs, and the OpenAPI description of its routes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

from synmod.leaves import __version__

from .endpoints import ServedProgram

_PAGE: Final = Path(__file__).with_name("page.html")


def page() -> tuple[str, str]:
    """Return the page, and the policy under which a browser runs its one script and loads nothing from elsewhere."""
    nonce = token_urlsafe(16)
    allowed = f"script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return _PAGE.read_text("utf-8").replace("NONCE", nonce), policy


async def openapi(title: str, endpoints: Mapping[str, ServedProgram], *, has_runs: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the calls of some programs."""
    schemas = dict[str, Any]()
    paths = dict[str, Any]()
    for name, endpoint in endpoints.items():
        sides = {"inputs": endpoint.input_schema, "outputs": await endpoint.output_schema()}
        for side, schema in sides.items():
            schemas[f"{name}.{side}"] = {"$id": f"urn:synmod:{name}:{side}", **schema}  # its references stay in it
        refer = {side: {"schema": {"$ref": f"#/components/schemas/{name}.{side}"}} for side in sides}
        inputs = {"content": {"application/json": refer["inputs"]}, "required": True}
        events = {"schema": {"type": "string"}}
        kinds = {"call": {"application/json": refer["outputs"]}, "stream": {"text/event-stream": events}}
        for route, content in kinds.items():
            answers = {"200": {"description": "The outputs.", "content": content}, "default": _PROBLEM}
            operation = {"operationId": f"{route}-{name}", "summary": endpoint.description, "requestBody": inputs}
            paths[f"/{route}/{name}"] = {"post": {**operation, "responses": answers}}
    if has_runs:
        paths["/runs"] = {"get": {"operationId": "runs", "responses": {"200": {"description": "The runs."}}}}
    token = {"token": {"type": "http", "scheme": "bearer"}}
    about = {"openapi": "3.1.0", "info": {"title": title, "version": __version__}, "paths": paths}
    return {**about, "components": {"schemas": schemas, "securitySchemes": token}, "security": [{"token": []}, {}]}


_PROBLEM = {
    "description": "A failure, as RFC 9457 describes it.",
    "content": {"application/problem+json": {"schema": {"type": "object"}}},
}

"""Programs over HTTP and MCP.

Floor: 13. Purpose: `sm.serve`, an ASGI application with routes for calls, streams, chat completions, MCP and durable
runs; `sm.mcp_server`. The only importer of starlette, uvicorn and the server side of mcp. State: per application, the
requests under way and the numbers of its metrics. Speed: a request to a program that does nothing takes at most three
times as long as the same Starlette route by hand; nothing is imported before the first application is made.
Must never know: the command line, optimizers.
"""

from .front import mcp_server, serve

__all__ = ["mcp_server", "serve"]

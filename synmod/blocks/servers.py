"""The tools of an MCP server, opened for a block. The `mcp` package is imported when a server is first opened."""

import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Final

from pydantic import ValidationError

from synmod import data, errors
from synmod.leaves import Json, aio, check_choice, is_object, must_be, unique_name

from .tools import Approve, Tool, WithMedia

_URL: Final = ("http://", "https://")
_SERVER_FORMS: Final = "write a command such as ['python', 'server.py'], or an address"
_LONGEST_NAME: Final = 60
_MOST_PAGES: Final = 1_000


@asynccontextmanager
async def mcp_tools(
    server: str | Sequence[str] | Any,
    *,
    env: Mapping[str, str] | None = None,
    timeout_s: float | None = 60,
    approve: Approve | None = None,
    only: Collection[str] | None = None,
    prefix: str = "",
) -> AsyncGenerator[list[Tool]]:
    """Open an MCP server for a block and yield its tools.

    Args:
        server: The command that starts a server, as a list or as one line; the address of a running server; or any
            other argument of `mcp.Client`, such as a transport with custom headers.
        env: More environment variables for the command, which inherits only a few common ones, without API keys.
        timeout_s: Seconds until the server has listed its tools, and for one run of a tool; None for no limit.
        approve: As for `Tool`, for each of the tools.
        only: The names of the tools to yield, as the server has them; None for all.
        prefix: The beginning of the name of each tool for the model, such as `shop_`, where several servers have a tool
            of one name.

    Yields:
        The tools in the order of the server, with its names, descriptions and schemas; characters not allowed in names
        become `_`. A schema that cannot be checked here is offered as the server has it, which then checks the
        arguments. Tools run only inside the block, and cannot be saved.

    Raises:
        ConfigError: The `mcp` package is missing (names the install command), `server` is none of these, or `only` has
            the name of no tool ('Did you mean').
        ToolError: The server does not start, cannot be reached, does not answer in time or does not speak MCP; or it
            refuses the list of its tools, or lists none. When a tool is called: the server reports an error, or ends.
        RunError: When a tool is called: the block has ended.

    Example:
        >>> async def main():
        ...     async with sm.mcp_tools(["python", "shop_server.py"]) as tools:
        ...         return await sm.Agent(tools)(question)
        >>> sm.run(main)  # doctest: +SKIP

    Source: the Model Context Protocol; pydantic-ai's toolsets.
    """
    with data.import_for("mcp_tools", "'synmod-lm[mcp]'"):
        from mcp import Client, MCPError
    failure: Exception | None = None
    try:
        with aio.deadline_scope(inf if timeout_s is None else timeout_s) as limit:
            async with Client(_target(server, env)) as client:
                try:
                    described = await _list_tools(client, only)
                    limit.lift()
                    yield _tools_of(client, described, prefix, timeout_s, approve)
                except Exception as error:  # noqa: BLE001  # raised below, since closing the client would wrap it in a group
                    failure = error
        if limit.expired:
            failure = errors.ToolError(f"mcp_tools: the MCP server did not answer within timeout_s={timeout_s:g}.")
    except (OSError, MCPError, ExceptionGroup) as error:
        first: BaseException = error
        while isinstance(first, BaseExceptionGroup):
            first = first.exceptions[0]
        what = f"the MCP server cannot be used: {type(first).__name__}: {first}"
        failure = failure or errors.ToolError(f"mcp_tools: {what}. Does it start, and speak MCP?")
    if failure is not None:
        raise failure


def _target(server: Any, env: Mapping[str, str] | None) -> Any:
    """Return a server in a form that `mcp.Client` accepts."""
    from mcp import StdioServerParameters
    from mcp.server import MCPServer, Server

    if isinstance(server, str) and server.casefold().startswith(_URL):
        return server
    if isinstance(server, (MCPServer, Server)) or hasattr(server, "__aenter__"):
        return server  # pyright: ignore[reportUnknownVariableType]  (of any type parameter)
    import shlex

    if not isinstance(server, (str, list, tuple)):
        raise errors.ConfigError(f"mcp_tools: server is {server!r:.100}; {_SERVER_FORMS}.")
    try:
        parts: Sequence[Any] = shlex.split(server) if isinstance(server, str) else [*server]  # pyright: ignore[reportUnknownVariableType]  (users)
    except ValueError as error:  # a quotation without an end
        raise errors.ConfigError(f"mcp_tools: the command {server!r:.100}: {error}; {_SERVER_FORMS}.") from None
    command = [str(part) for part in parts]
    if not command:
        raise errors.ConfigError(f"mcp_tools: the command is empty; {_SERVER_FORMS}.")
    return StdioServerParameters(command=command[0], args=command[1:], env=None if env is None else dict(env))


def _mcp_name(name: str) -> str:
    """Return a name that a model may call for a tool of a server."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_LONGEST_NAME]
    return name if name.isidentifier() else f"_{name}"


async def _list_tools(client: Any, only: Collection[str] | None) -> list[Any]:
    """Return the descriptions of the tools of a server, or of those with these names.

    Raises:
        ConfigError: A name is that of no tool ('Did you mean').
        ToolError: The server refuses the list, lists no tools, or does not end; or the list is not one of MCP.
    """
    from mcp import MCPError

    tools, cursor = list[Any](), None
    for _ in range(_MOST_PAGES):
        try:
            page = await client.list_tools(cursor=cursor)
        except MCPError as error:
            raise errors.ToolError(f"mcp_tools: the MCP server refuses to list its tools: {error}") from None
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(map(str, fault["loc"]))
            text = f"the MCP server lists its tools against the protocol: {where}: {fault['msg']}"
            raise errors.ToolError(f"mcp_tools: {text}.") from None
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    else:
        raise errors.ToolError(f"mcp_tools: the MCP server lists its tools on more than {_MOST_PAGES:,} pages.")
    if not tools:
        raise errors.ToolError("mcp_tools: the MCP server lists no tools.")
    if only is None:
        return tools
    if isinstance(only, str):
        raise errors.ConfigError(must_be("mcp_tools: only", "a list of names", only))
    names = [tool.name for tool in tools]
    for name in only:
        check_choice("mcp_tools: only", name, names, error=errors.ConfigError)
    return [tool for tool in tools if tool.name in only]


def _tools_of(
    client: Any, descriptions: Sequence[Any], prefix: str, timeout_s: float | None, approve: Approve | None
) -> list[Tool]:
    """Return the tools that a server describes."""
    tools: dict[str, Tool] = {}
    for described in descriptions:
        name = unique_name(_mcp_name(f"{prefix}{described.name}"), tools)
        tools[name] = Tool(
            _run_of(client, described.name, name),
            name=name,
            description=described.description or described.title or "",
            parameters=_parameters(described.input_schema),
            timeout_s=timeout_s,
            approve=approve,
        )
    return [*tools.values()]


def _parameters(schema: Json) -> data.Schema:
    """Return the schema of the arguments of a tool, unchecked if it cannot be checked here."""
    try:
        return data.declare(schema)
    except (errors.SchemaError, errors.DataError):
        try:
            return data.foreign_schema(schema)
        except (errors.SchemaError, errors.DataError):  # it nests too deep to be sent
            return data.foreign_schema({"type": "object"})


def _run_of(client: Any, its_name: str, name: str) -> Callable[..., Any]:
    """Return the function that runs a tool of a server."""

    async def run(**arguments: Any) -> WithMedia:
        try:
            result = await client.call_tool(its_name, arguments)
        except Exception as error:  # noqa: BLE001  # of the server, or of the package if the server has ended
            if isinstance(error, RuntimeError) and "context manager" in str(error):  # of a closed client
                raise errors.RunError(f"{name}: tools of mcp_tools run inside its `async with` block.") from None
            raise errors.ToolError(f"{name}: {str(error) or type(error).__name__}") from None
        text = "\n".join(map(_text, result.content))
        if result.is_error:
            raise errors.ToolError(f"{name}: {text}")
        media = [*filter(None, map(_media, result.content))]
        json: Json = text if media else _structure_of(result.structured_content, text)
        is_wrapped = is_object(json) and json.keys() == {"result"}  # as servers wrap plain values
        return WithMedia(json["result"] if is_wrapped else json, media)

    return run


def _structure_of(content: Any, text: str) -> Json:
    """Return the structured part of a result; a text if it has none, or if that is not JSON."""
    try:
        return text if content is None else data.frozen(content)
    except errors.DataError:
        return text or str(content)


def _text(block: Any) -> str:
    """Return a part of a result as text: its text or address, else its type."""
    resource = getattr(block, "resource", block)
    text = getattr(resource, "text", None)
    if text is None and block.type == "resource_link":
        text = f"{block.name}: {block.uri}"
    return text if isinstance(text, str) else f"({block.type} {getattr(resource, 'mime_type', None) or ''})"


def _media(block: Any) -> data.Image | data.Audio | data.File | None:
    """Return the image, sound or file in a part of a result; None if it has none that is valid."""
    resource = getattr(block, "resource", block)
    content = getattr(resource, "blob", None) or (getattr(block, "data", None))
    kind = {"image": data.Image, "audio": data.Audio, "resource": data.File}.get(block.type)
    if kind is None or content is None:
        return None
    try:
        return kind(media_type=resource.mime_type or "application/octet-stream", data=content)
    except ValidationError:
        return None

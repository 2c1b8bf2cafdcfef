"""A small MCP server over stdio, of the `mcp` package itself."""

import asyncio
import os

from mcp.server.mcpserver import MCPServer
from mcp_types import ImageContent, TextContent

server = MCPServer("shop")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool(name="find.product")
def find(word: str) -> dict[str, str]:
    """Find a product."""
    return {"name": word}


@server.tool(name="find_product")
def find_again(word: str) -> str:
    """Find it once more."""
    return f"{word}!"


@server.tool(structured_output=False)
def picture() -> list:
    """Show a picture."""
    return [TextContent(type="text", text="Look:"), ImageContent(type="image", data="eA==", mime_type="image/png")]


@server.tool()
def refund(order: int) -> str:
    """Refund an order."""
    raise ValueError(f"no such order {order}")


@server.tool()
def environment() -> list[str]:
    """List the environment variables."""
    return sorted(os.environ)


@server.tool()
def leave() -> None:
    """End the server."""
    os._exit(1)


@server.tool()
async def wait() -> str:
    """Wait for a minute."""
    await asyncio.sleep(60)
    return "over"


if __name__ == "__main__":
    server.run()

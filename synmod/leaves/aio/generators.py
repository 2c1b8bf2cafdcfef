"""Closing an async generator that was left before its end, so that its clean-up is not the collector's."""

from __future__ import annotations

import inspect
from typing import Any

from .scopes import shield

_CLEAN_UP_S = 1.0


async def close_generator(source: Any) -> None:
    """Run the clean-up of an async generator now, shielded for a second; anything else is its owner's to close.

    Args:
        source: Whatever was iterated.

    Raises:
        Exception: What the clean-up raised.

    Example:
        >>> import asyncio
        >>> async def numbers():
        ...     try:
        ...         yield 1
        ...     finally:
        ...         print("closed")
        >>> async def main():
        ...     async for _ in (source := numbers()):
        ...         break
        ...     await close_generator(source)
        >>> asyncio.run(main())
        closed

    Source: contextlib.aclosing; differs: for generators alone, and shielded.
    """
    if inspect.isasyncgen(source) and source.ag_frame is not None:
        with shield(_CLEAN_UP_S):
            await source.aclose()

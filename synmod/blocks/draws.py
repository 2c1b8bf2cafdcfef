"""Independent draws: one module called several times on the same inputs, each time as a sample of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from synmod.flow import map_concurrently
from synmod.lm import current_sample, drawing
from synmod.module import Attempt, attempt

if TYPE_CHECKING:
    from synmod.module import Module


def draws(
    module: Module,
    inputs: Any,
    n: int,
    read: Callable[[Any, Attempt], Awaitable[Any]],
    *,
    numbers: Iterable[int] | None = None,
    concurrency: int | None = None,
    on_error: Literal["raise", "collect"] = "raise",
) -> map_concurrently[Any]:
    """Call `module` on `inputs` as samples 0 to n - 1, at once.

    Inside a block that draws itself the samples go on counting, so that no two draws are the same.

    Args:
        module: What is called.
        inputs: Its inputs.
        n: Number of draws.
        read: What is made of each output and its attempt, still beside the other draws; the caller keeps one.
        numbers: The numbers of the samples, asked for one by one when there is room for another; None for all n.
        concurrency: How many run at once; None for all.
        on_error: As `sm.map_concurrently` takes it.

    Returns:
        What `read` gave, in the order of the samples; to be used with `async with`.
    """
    first = current_sample() * n

    async def draw(number: int) -> Any:
        with drawing(first + number), attempt() as one:
            return await read(await module(inputs), one)

    items = range(n) if numbers is None else numbers
    return map_concurrently(draw, items, concurrency=concurrency or n, on_error=on_error, progress=False)

"""Waiting for a build that somebody else runs, and the circles that would wait for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.module.building.builds import LOCK, Build, current_build

if TYPE_CHECKING:
    from synmod.module.module import Module


async def wait_for(other: Build, module: Module) -> None:
    """Wait until `other`, which builds `module`, has ended.

    Code of the same outermost build waits for the body of `other`; everybody else for the outermost build that `other`
    belongs to, since until then it may be undone.

    Raises:
        BuildError: `other` waits, through whatever builds, for a build that the running code is a part of.
    """
    current = current_build()
    if current is None:
        await other.outermost.signal.wait()
        return
    chain = current.chain()
    with LOCK:
        if _waits_for_any(other, set(chain)):
            raise current.waits_for_itself(module, other)
        target = other if other.outermost is current.outermost else other.outermost
        for build in chain:
            build.waits_for.append(target)
    try:
        await target.signal.wait()
    finally:
        with LOCK:
            for build in chain:
                build.waits_for.remove(target)


def _waits_for_any(start: Build, goals: set[Build]) -> bool:
    """Tell whether `start` is one of the goals, or waits for one; the outermost build ends after all inside it."""
    seen: set[Build] = set()
    todo = [start] if start.outermost in goals else [start, start.outermost]
    while todo:
        build = todo.pop()
        if build in goals:
            return True
        if build not in seen:
            seen.add(build)
            todo.extend(build.waits_for)
    return False

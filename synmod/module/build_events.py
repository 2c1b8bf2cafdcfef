"""A build is announced: a frame of its own for the code of `build`, and the two build events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from synmod.module.frames import entered
from synmod.scope.ambient import ambient
from synmod.scope.events import BuildBegin, BuildEnd, place_of
from synmod.scope.frame import current_call
from synmod.scope.hooks import hooks_for
from synmod.scope.notify import begin_build, end_build

if TYPE_CHECKING:
    from synmod.module.module import Module


@asynccontextmanager
async def announced(module: Module, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> AsyncGenerator[None]:
    """Run the block as the build of `module`; the events carry the place of the call that builds, if one does."""
    caller = current_call()
    with entered(module, None, symbolic=True) as frame:
        heard = hooks_for(ambient(), module._record.hooks)
        if heard is None:
            yield
            return
        place = place_of(caller if caller is not None and caller._owner is module._record else frame, frame.phase)
        started = perf_counter()
        failure: BaseException | None = None
        try:
            await begin_build(heard, BuildBegin(*place, inputs, MappingProxyType(dict(kwargs))))
            yield
        except BaseException as error:
            failure = error
            raise
        finally:
            await end_build(heard, BuildEnd(*place, inputs, failure, perf_counter() - started))

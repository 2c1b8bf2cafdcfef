"""Watch: the entry call of one run, and where its failures arose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.scope import CallFrame, InPlace

if TYPE_CHECKING:
    from synmod.scope import BuildEnd, CallBegin, CallEnd


class Watch(InPlace):
    """Takes down the entry call of one run, and where each failure arose: one that was handled is not the run's."""

    _in_place = True

    def __init__(self) -> None:
        self.call_id: str | None = None
        self._paths: dict[int, tuple[BaseException, str]] = {}
        self._of_builds: list[BaseException] = []

    def on_call_begin(self, event: CallBegin) -> None:
        """Note the entry call."""
        if self.call_id is None:
            self.call_id = event.call_id

    def on_call_end(self, event: CallEnd) -> None:
        """Note the innermost call that failed; it ends first."""
        if event.exception is not None:
            self._paths.setdefault(id(event.exception), (event.exception, event.path))

    def open_call(
        self,
        frame: CallFrame,
        inputs: tuple[Any, ...],  # noqa: ARG002
        kwargs: Mapping[str, Any],  # noqa: ARG002
        started: float,  # noqa: ARG002
        method: str | None,  # noqa: ARG002
    ) -> None:
        """Note the entry call, of the call itself."""
        if self.call_id is None:
            self.call_id = frame.id

    def close_call(
        self,
        frame: CallFrame,
        outputs: Any,  # noqa: ARG002
        failure: BaseException | None,
        elapsed_s: float,  # noqa: ARG002
    ) -> None:
        """Note the innermost call that failed, of the call itself."""
        if failure is not None:
            self._paths.setdefault(id(failure), (failure, frame.path))

    def on_build_end(self, event: BuildEnd) -> None:
        """Note that a build failed."""
        if event.exception is not None:
            self._of_builds.append(event.exception)

    def path_of(self, failure: BaseException) -> str:
        """The path of the call in which a failure arose; "" where no call saw it."""
        return self._paths.get(id(failure), (failure, ""))[1]

    def is_of_build(self, failure: BaseException) -> bool:
        """Whether a failure is that of a build."""
        return any(failure is one for one in self._of_builds)

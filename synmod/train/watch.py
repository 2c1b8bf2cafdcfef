"""Watch: the entry call of one run, and where its failures arose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.scope import Hook

if TYPE_CHECKING:
    from synmod.scope import BuildEnd, CallBegin, CallEnd


class Watch(Hook):
    """Takes down the entry call of one run, and where each failure arose: one that was handled is not the run's."""

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

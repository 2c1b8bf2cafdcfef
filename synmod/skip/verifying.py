"""`verify_skippables`: wrong wiring is one error that lists everything, before a token is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from synmod.errors import SkipVerifyError
from synmod.module import SCHEDULERS, VERIFIERS, where
from synmod.skip.given import open_store
from synmod.skip.ordering import skips_before
from synmod.skip.skip_frame import SkipFrame
from synmod.skip.structure import Structure
from synmod.skip.wiring import Wiring
from synmod.tree import walk

if TYPE_CHECKING:
    from synmod.errors import SkipProblem
    from synmod.module import Module

_CURABLE: Final = frozenset({"unstashed", "unpopped"})


def verify_skippables(module: Module) -> None:
    """Check that every stash of a program has its pop, in execution order.

    Args:
        module: The program, or any module.

    Raises:
        SkipVerifyError: The pairs do not match; its `problems` list everything, in execution order.
        ArgumentError: It is no module.

    Example:
        >>> from synmod.skip import skippable
        >>> @skippable(pop=["doc"])
        ... class Cite(sm.Module):
        ...     pass
        >>> verify_skippables(sm.Sequential([Cite()]))
        Traceback (most recent call last):
        synmod.errors.SkipVerifyError: ...'0' declared 'doc' as poppable but it was not stashed...

    Source: torchgpipe's `verify_skippables`; differs: containers at any depth, graphs, schemas.
    """
    _raise_if_any(module, Wiring(module).problems)


def verify_root(root: Module, is_whole: bool) -> None:
    """Check a program by itself, unless it is a piece of another: a root that declares skips itself.

    While builds are to come, which may make the partners of what is there, only what none can mend is a fault. On a
    frame in hand the program is one stage of several: it may pop what is there, and stash what the next one pops.
    """
    if root._record.declaration.skips is not None:
        return
    problems = Wiring(root).problems
    frame = open_store() if problems else None
    if isinstance(frame, SkipFrame):
        names = {name for _, name in frame.slots}
        problems = [p for p in problems if p.kind != "unpopped" and (p.kind != "unstashed" or p.name not in names)]
    if problems and not is_whole and _is_unfinished(root):
        problems = [problem for problem in problems if problem.kind not in _CURABLE]
    _raise_if_any(root, problems)


def steps_before(program: Module) -> Mapping[int, Sequence[int]]:
    """The scheduling edges that the skips of a functional program add."""
    structure = Structure(program)
    execution = program._execution()
    if not structure.carriers or execution is None:
        return {}
    return skips_before(execution, structure)


def _raise_if_any(module: Module, problems: list[SkipProblem]) -> None:
    if problems:
        lines = "".join(f"\n* {problem.message}" for problem in problems)
        raise SkipVerifyError(
            f"{where(module)}: one or more pairs of stash and pop do not match:\n{lines}\n\nAdd what is missing, or "
            "put pairs of one name into Namespaces: module.isolate(Namespace()).",
            problems,
        )


def _is_unfinished(root: Module) -> bool:
    """Tell whether a module below has yet to be built."""
    return any(
        visit.kind == "node" and visit.first and hasattr(visit.value, "_record") and not visit.value._record.built
        for visit in walk(root)
    )


VERIFIERS["skips"] = verify_root
SCHEDULERS["skips"] = steps_before

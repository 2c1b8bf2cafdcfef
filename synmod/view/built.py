"""Which modules of a program are yet to be built, found in one pass from below."""

from __future__ import annotations

from typing import TYPE_CHECKING

from synmod.module import Module, is_built_here
from synmod.view.outline import below_first

if TYPE_CHECKING:
    from synmod.view.outline import Member, Outline


def unbuilt_in(outline: Outline) -> set[int]:
    """The ids of the modules that are not built, as each would say of itself.

    A class with an answer of its own asks what is below it; asked from above, again and again, that would cost the
    square of the depth.
    """
    unbuilt: set[int] = set()
    for member in below_first(outline.members[0]):
        if member.stands_for is None and not _is_built(member, unbuilt):
            unbuilt.add(id(member.module))
    return unbuilt


def _is_built(member: Member, unbuilt: set[int]) -> bool:
    """Tell whether a module is built, given those below it that are not."""
    module, record = member.module, member.module._record
    if type(module).built is Module.built:
        return is_built_here(record)
    if record.sealed:
        return is_built_here(record) and not any(id(part.module) in unbuilt for part in member.below)
    return module.built

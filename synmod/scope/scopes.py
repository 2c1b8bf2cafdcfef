"""Name scopes: the labels of the modules and blocks around a place. They decide nothing."""

from __future__ import annotations

from synmod.scope.ambient import Entered, ambient, enter, leave, take_entry
from synmod.scope.frame import Owner, current_call


class NameScope:
    """Add the name of a module to the scope of a block; plain or async, and as often as one likes.

    Args:
        owner: The module. Where its scope is innermost already, nothing is added.

    Example:
        >>> class Named:
        ...     name, hooks = "encoder", ()
        >>> with NameScope(Named()):
        ...     current_scope()
        'encoder'

    Source: tf.name_scope; differs: a label only, never a key.
    """

    __slots__ = ("_entries", "_owner")

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._entries: list[Entered] = []

    def __enter__(self) -> None:
        self._entries.append(enter("scopes", (self._owner, current_call())))

    def __exit__(self, *_: object) -> None:
        leave(take_entry(self._entries, lambda entry: entry.record))

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def current_scope() -> str:
    """Tell the names of the calls and scope blocks around this place.

    Returns:
        Names joined by `/`, the outermost first; `""` outside.

    Example:
        >>> current_scope()
        ''

    Source: tf.name_scope.
    """
    record = ambient()
    blocks = () if record is None else record.scopes
    chain: list[Owner] = []
    frame = current_call()
    while frame is not None:
        chain += [owner for owner, opened_in in reversed(blocks) if opened_in is frame]
        chain.append(frame.owner)
        frame = frame.parent
    chain += [owner for owner, opened_in in reversed(blocks) if opened_in is None]
    names: list[str] = []
    last: Owner | None = None
    for owner in reversed(chain):
        if owner is not last:
            names.append(owner.name)
        last = owner
    return "/".join(names)

"""`sow`: what a module notes on the way to a result, for the captures of the running call or for good."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, DataError, GraphError
from synmod.leaves.frozen import Json, frozen
from synmod.leaves.names import check_name
from synmod.module.attributes import ABSENT, attribute_of
from synmod.module.interface.where import where
from synmod.module.paths import current_path, frame_of, steps_of
from synmod.scope import CallFrame, current_call
from synmod.tree import ANYTHING, LISTS, Sown, Variable, VariableState, appended, get_node_impl, open_captures

if TYPE_CHECKING:
    from synmod.module.module import Module

_MAKING = threading.Lock()  # taken where a persisting sow makes its Variable


def sow(
    module: Module,
    kind: type[Variable],
    name: str,
    value: Any,
    *,
    persist: bool,
    reduce: Callable[[Any, Any], Any] | None,
    init: Callable[[], Any] | None,
) -> bool:
    """Note a value; tell whether anybody wanted it."""
    frame = current_call()
    if frame is not None and frame.symbolic:
        return False
    wanted = () if frame is None or persist else open_captures(kind)
    if not wanted and not persist:
        return False
    if not isinstance(kind, type) or not issubclass(kind, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{where(module)}: sow got {kind!r}, which is no Variable type; use sm.Intermediate, ...")
    check_name(name, "variable")
    try:
        json = frozen(value)
    except DataError as error:
        raise DataError(f"{where(module)}: sow of {name!r}: {error}") from None
    if persist:
        _persist(module, kind, name, json, reduce, init)
    elif frame is not None:
        sown = _sown(module, frame, kind, name, json, reduce, init)
        for capture in wanted:
            capture.add(sown)
    return True


def _sown(
    module: Module,
    frame: CallFrame,
    kind: type[Variable],
    name: str,
    json: Json,
    reduce: Callable[[Any, Any], Any] | None,
    init: Callable[[], Any] | None,
) -> Sown:
    """Say of a value where it belongs: under the module's path, at the start of the call that gives it."""
    root = frame.root
    giver = frame_of(module._record, frame) or frame
    path = (*steps_of(frame, current_path(module)), name)
    return Sown((root.started, root.id), giver.number, path, kind, json, reduce, init)


def _persist(
    module: Module,
    kind: type[Variable],
    name: str,
    json: Json,
    reduce: Callable[[Any, Any], Any] | None,
    init: Callable[[], Any] | None,
) -> None:
    """Append to a Variable on the module, made on demand; a sealed structure is sealed anew."""
    fold = reduce or appended
    first, folded = ABSENT, None
    with _MAKING:
        variable = attribute_of(module, name)
        if variable is ABSENT and not hasattr(type(module), name):
            schema = LISTS if reduce is None and init is None else ANYTHING
            variable = VariableState(kind, [] if init is None else init(), schema, {"name": name}).to_variable()
            first, folded = variable.value, frozen(fold(variable.value, json))  # what raises here leaves no Variable
            get_node_impl(module).set_key(module, name, variable)
    if type(variable) is not kind:
        found = getattr(type(module), name) if variable is ABSENT else variable
        raise GraphError(
            f"{where(module)}: sow expected {f'{current_path(module)}/{name}'.lstrip('/')!r} to be a Variable of type "
            f"{kind.__name__}, but it is a {type(found).__name__}: take another name."
        )
    variable._change(lambda old: folded if old is first else fold(old, json), is_admitted=False)

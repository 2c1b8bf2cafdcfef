"""What tells functions and other objects without a public id apart, in every process: name, code, and fixed values."""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import types
from typing import TYPE_CHECKING, Any, Final, cast

from synmod.tree import class_text, static_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIXED: Final = (str, bytes, int, float, complex, type(None), type, enum.Enum)
_REBINDS: Final = ("STORE_DEREF", "DELETE_DEREF")


def code_text(x: Any) -> str:
    """Tell an object apart from others, as far as another process could.

    A function counts by module, name and code, and by the defaults and enclosing values that cannot change: text,
    numbers, tuples, classes and functions. What it rebinds itself (a counter), and what can change in place, counts by
    its class alone, as every other object does.

    Args:
        x: Any object.
    """
    return _text(x, set())


def _text(x: Any, seen: set[int]) -> str:
    """Tell an object; `seen` are the functions that were told, by identity."""
    if isinstance(x, types.FunctionType):
        return static_text(x) or _function_text(x, seen)
    if isinstance(x, functools.partial):
        partial = cast("functools.partial[Any]", x)
        parts = [partial.func, *partial.args, *(part for pair in sorted(partial.keywords.items()) for part in pair)]
        return f"partial({', '.join(_value_text(part, seen) for part in parts)})"
    if isinstance(x, types.MethodType):
        return f"{class_text(type(x.__self__))}.{_text(x.__func__, seen)}"
    return class_text(cast("type[Any]", type(x)))


def _function_text(x: types.FunctionType, seen: set[int]) -> str:
    """Tell a function that is not registered; one that stands in several places, or in itself, is told once."""
    name = f"{x.__module__}:{x.__qualname__}"
    if id(x) in seen:
        return name
    seen.add(id(x))
    digest = hashlib.sha256()
    for part in _code_parts(x.__code__):
        digest.update(repr(part).encode())
    around = [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values(), *_enclosed(x)]
    return f"{name} {digest.hexdigest()} ({', '.join(_value_text(value, seen) for value in around)})"


def _value_text(value: Any, seen: set[int]) -> str:
    """Tell a value that a function uses."""
    if isinstance(value, (tuple, frozenset)):
        items = cast("tuple[Any, ...] | frozenset[Any]", value)
        texts = [_value_text(each, seen) for each in items]
        return f"tuple({', '.join(texts)})" if isinstance(items, tuple) else f"set({', '.join(sorted(texts))})"
    if isinstance(value, _FIXED):
        return static_text(value) or repr(value)
    return _text(value, seen)


def _code_parts(code: types.CodeType) -> Iterator[Any]:
    """List what code does, that of functions inside included, without where it stands."""
    pending = [code]
    while pending:
        each = pending.pop()
        yield each.co_code, each.co_names, each.co_varnames, each.co_freevars
        for constant in each.co_consts:
            if isinstance(constant, types.CodeType):
                pending.append(constant)
            else:
                yield _value_text(constant, set())


def _enclosed(function: types.FunctionType) -> Iterator[Any]:
    """List the values of enclosing functions, but those that the function rebinds."""
    code = function.__code__
    rebound = {each.argval for each in dis.get_instructions(code) if each.opname in _REBINDS}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if name not in rebound:
            try:
                yield cell.cell_contents
            except ValueError:  # not bound yet
                yield None

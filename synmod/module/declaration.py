"""What a class of modules declares, read once per class."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from synmod.leaves.names import snake_case
from synmod.module.interface.signatures import CallSignature, own_signature, read_call
from synmod.module.skips import publish

if TYPE_CHECKING:
    from synmod.module.skips import DeclaredSkips, Runner


class ClassDeclaration:
    """One class of modules, as its code declares it."""

    def __init__(self, cls: type) -> None:
        self.cls = cls
        self.default_name = snake_case(cls.__name__)
        self.default_description = first_paragraph(cls.__dict__.get("__doc__"))
        self.defines_build = _is_own(cls, "build")
        self.declares_spec = _is_own(cls, "compute_output_spec")
        self.ignored: frozenset[str] = frozenset().union(
            *(vars(base).get("_graph_ignored", ()) for base in cls.__mro__)
        )
        self.hidden = self.ignored | _cached_names(cls)
        """Attributes that the walk passes over: ignored ones, and what `cached_property` made."""
        self.slots = _declared_slots(cls)
        self.skips: DeclaredSkips | None = None
        """The skip connections that the class takes part in; the bases' are its own."""
        self.runner: Runner | None = None

    def declare_skips(self, skips: DeclaredSkips) -> None:
        """Take part in skip connections, beside those that are declared already."""
        self.skips = skips if self.skips is None else self.skips.joined(skips)
        self.runner = self.skips.runner
        publish(self.cls, self.skips)

    @cached_property
    def init(self) -> inspect.Signature | None:
        """The signature of the constructor without `self`; None where Python cannot tell it."""
        try:
            return own_signature(typing.cast("Callable[..., Any]", self.cls.__init__))
        except (TypeError, ValueError):
            return None

    @cached_property
    def keywords(self) -> list[str]:
        """What all constructors of the class and its bases accept by name, for messages."""
        known: dict[str, None] = {}
        for base in self.cls.__mro__:
            function = vars(base).get("__init__")
            if not inspect.isfunction(function):
                continue
            named = own_signature(function).parameters.values()
            known.update((p.name, None) for p in named if p.kind in _BY_NAME)
        return list(known)

    @cached_property
    def call(self) -> CallSignature:
        """The signature of `call`; of a class without one, that of a call that takes nothing."""
        function = getattr(self.cls, "call", None)
        owner = definer(self.cls, "call")
        return CallSignature() if function is None or owner is None else read_call(self.cls, function, owner)

    @cached_property
    def build(self) -> inspect.Signature:
        """The signature of the class's own `build`, without `self`."""
        method = typing.cast("Callable[..., Any]", inspect.getattr_static(self.cls, "build"))
        return own_signature(inspect.unwrap(method))


_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def definer(cls: type, name: str) -> type | None:
    """The class in whose body an attribute of `cls` was written; None where it has no such attribute."""
    return next((base for base in cls.__mro__ if name in vars(base)), None)


def is_base(cls: type) -> bool:
    """Tell whether a class is `Module` itself, or one of ours that stands in for it, such as `Program`."""
    return bool(vars(cls).get("_is_module_base", False))


def first_paragraph(text: str | None) -> str:
    """Join the first paragraph of a docstring to one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()) if text else ""


def _is_own(cls: type, method: str) -> bool:
    """Tell whether a class below `Module` defines the method."""
    owner = definer(cls, method)
    return owner is not None and not is_base(owner)


def _cached_names(cls: type) -> frozenset[str]:
    return frozenset(
        name for base in cls.__mro__ for name, value in vars(base).items() if isinstance(value, cached_property)
    )


def _declared_slots(cls: type) -> tuple[tuple[str, Any], ...]:
    """The slots that classes below `Module` declare, base classes first."""
    return tuple(
        (name, member)
        for base in reversed(cls.__mro__)
        if not is_base(base)
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType)
    )

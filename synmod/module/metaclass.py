"""How a class of modules is checked, and how an instance is made: nothing more is asked of a metaclass."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Mapping
from types import MethodType
from typing import TYPE_CHECKING, Any, cast

from synmod.errors import ConfigError
from synmod.module.arguments import capture
from synmod.module.build import BuildMethod
from synmod.module.declaration import ClassDeclaration, definer, is_base
from synmod.tree import KNOWN, NODE, STATIC, VARIABLE, Kinds, class_of, holds_node

_SPECS = {"input_spec": "_class_input_spec", "output_spec": "_class_output_spec"}
_METHODS = ("call", "build", "compute_output_spec")


class ModuleMeta(ABCMeta):
    """Checks a class of modules when it is made, and records the arguments of each construction.

    Source: Equinox's `Module` metaclass, PyGlove's captured arguments.
    """

    _declaration: ClassDeclaration

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> ModuleMeta:
        if not namespace.get("_is_module_base"):
            for public, kept in _SPECS.items():
                if public in namespace:  # also as a property, which is asked under the other name
                    namespace[kept] = namespace.pop(public)  # the name itself is a property of every instance
        return ABCMeta.__new__(mcls, name, bases, namespace, **kwargs)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> None:
        super().__init__(name, bases, namespace, **kwargs)
        if not is_base(cls):
            _check_methods(cls)
            _check_hidden(cls)
            _check_variables(cls)
        build = inspect.getattr_static(cls, "build")
        if not isinstance(build, BuildMethod):  # written in this class, or in a class beside `Module`
            cls.build = BuildMethod(build)
        cls._declaration = ClassDeclaration(cls)
        for base in reversed(bases):
            skips = getattr(base, "_declaration", None) and cast("ModuleMeta", base)._declaration.skips
            if skips is not None:
                cls._declaration.declare_skips(skips)

    if not TYPE_CHECKING:  # a checker shall read the constructor of the class itself

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            """Record the arguments, make the instance, and note that its construction is over."""
            arguments = capture(cls._declaration, args, kwargs)
            module = cls.__new__(cls, *args, **kwargs)
            if isinstance(module, cls):
                record = module._record
                record.arguments = arguments
                cls.__init__(module, *args, **kwargs)
                record.given = (record.name, record.description, record.trainable)
                record.constructed = True
            return module

        @property
        def __signature__(cls) -> inspect.Signature:
            """What the constructor takes, for `help`, `inspect` and notebooks: `__call__` would hide it from them."""
            return inspect.signature(MethodType(cls.__init__, cls))  # bound to anything: without `self`


def _check_methods(cls: type) -> None:
    """Refuse methods of a kind that a call or a build cannot run."""
    for method in _METHODS:
        function = inspect.getattr_static(cls, method, None)
        if isinstance(function, staticmethod | classmethod):
            kind = type(cast("object", function)).__name__
            raise ConfigError(f"class {cls.__name__}: {method} is a {kind}; write `async def {method}(self, ...)`.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(
                f"class {cls.__name__}: {method} is a generator; write `async def {method}(self, ...)` and return."
            )


def _check_hidden(cls: type) -> None:
    """Refuse a class attribute, slot or mixin that hides what `Module` answers."""
    if not is_base(cast("type", definer(cls, "__call__"))):
        raise ConfigError(f"class {cls.__name__} defines __call__, which belongs to Module: define call instead.")
    for base in filter(is_base, cls.__mro__):
        for name, answer in vars(base).items():
            if not isinstance(answer, property) or name in _SPECS:
                continue
            if not is_base(cast("type", definer(cls, name))):
                way = "rename it" if answer.fset is None else f"set it in the constructor: `self.{name} = ...`"
                raise ConfigError(
                    f"class {cls.__name__}: the class attribute {name!r} hides what Module answers by that name; {way}."
                )


def _check_variables(cls: type) -> None:
    """Refuse a Variable on the class, also in containers there: all instances would share it unseen."""
    kinds = Kinds(KNOWN)
    for base in cls.__mro__:
        namespace: Mapping[str, Any] = {} if isinstance(base, ModuleMeta) and base is not cls else vars(base)
        for name, value in namespace.items():
            kind = kinds[class_of(value)]
            if kind == VARIABLE or (kind not in (STATIC, NODE) and holds_node(value, kinds, (VARIABLE,))):
                raise ConfigError(
                    f"class {cls.__name__}: {name!r} is a Variable on the class, shared by all instances; "
                    f"make it in __init__: self.{name} = self.add_variable(...)."
                )

"""How a class of modules is checked, and how an instance is made: nothing more is asked of a metaclass."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from synmod.errors import ConfigError
from synmod.module.arguments import capture
from synmod.module.build_method import BuildMethod
from synmod.module.declaration import ClassDeclaration
from synmod.tree import Variable

READ_ONLY = frozenset(
    {
        "built",
        "counters",
        "hooks",
        "path",
        "submodules",
        "trainable_variables",
        "non_trainable_variables",
        "variables",
        "version",
        "rewards",
        "name_scope",
        "cumulated_invocations",
        "cumulated_invocation_elapsed_s",
        *(
            f"{phase}_cumulated_{what}"
            for phase in ("inference", "reward", "optimizer")
            for what in ("invocations", "invocation_elapsed_s")
        ),
    }
)
"""What `Module` answers and no class may hide."""

_SPECS = {"input_spec": "_class_input_spec", "output_spec": "_class_output_spec"}


class ModuleMeta(ABCMeta):
    """Checks a class of modules when it is made, and records the arguments of each construction.

    Source: Equinox's `Module` metaclass, PyGlove's captured arguments.
    """

    _declaration: ClassDeclaration

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> ModuleMeta:
        if not namespace.get("_is_module_base"):
            _check_namespace(name, namespace)
            for public, kept in _SPECS.items():
                if public in namespace and not isinstance(namespace[public], property):
                    namespace[kept] = namespace.pop(public)  # the name itself is a property of every instance
        build = namespace.get("build")
        if build is not None:
            namespace["build"] = BuildMethod(build)
        return ABCMeta.__new__(mcls, name, bases, namespace, **kwargs)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], /, **kwargs: Any) -> None:
        super().__init__(name, bases, namespace, **kwargs)
        cls._declaration = ClassDeclaration(cls)

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


def _check_namespace(name: str, namespace: Mapping[str, Any]) -> None:
    """Refuse what would break a promise of `Module` without anybody seeing it."""
    if "__call__" in namespace:
        raise ConfigError(f"class {name} defines __call__, which belongs to Module: define call instead.")
    for method in ("call", "build", "compute_output_spec"):
        function = namespace.get(method)
        if isinstance(function, staticmethod | classmethod):
            kind = type(cast("object", function)).__name__
            raise ConfigError(f"class {name}: {method} is a {kind}; write `async def {method}(self, ...)`.")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ConfigError(
                f"class {name}: {method} is a generator; write `async def {method}(self, ...)` and return."
            )
    for attribute, value in namespace.items():
        if attribute in READ_ONLY:
            raise ConfigError(
                f"class {name}: the class attribute {attribute!r} hides what Module answers by that name; rename it."
            )
        if isinstance(value, Variable):
            raise ConfigError(
                f"class {name}: {attribute!r} is a Variable on the class, shared by all instances; "
                f"make it in __init__: self.{attribute} = self.add_variable(...)."
            )

"""`add_variable` and `get_variable`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError
from synmod.leaves.names import did_you_mean, snake_case, unused
from synmod.module.attributes import ABSENT, attribute_of
from synmod.module.building import remember
from synmod.module.interface.where import where
from synmod.module.sealing import refuse_if_sealed
from synmod.tree import Variable

if TYPE_CHECKING:
    from synmod.module.module import Module

_NO_WORD = re.compile(r"\W+")


def add_variable(
    module: Module,
    initializer: Any,
    data_model: Any,
    schema: Any,
    trainable: bool | None,
    name: str | None,
    description: str | None,
    kind: type[Variable],
) -> Variable:
    """Make a Variable and hold it under its name, or `name_1`, ... where that is taken."""
    refuse_if_sealed(module, name or "variable", "a Variable")
    if not isinstance(kind, type) or not issubclass(kind, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentError(f"{where(module)}: type={kind!r} is not a Variable type; use sm.Param, sm.Memory, ...")
    variable = kind(
        initializer=initializer,
        data_model=data_model,
        schema=schema,
        trainable=trainable,
        name=name,
        description=description,
    )
    if variable.name is None:
        variable.name = _name_of(variable.schema.get("title"))
    attribute = unused(variable.name, _Taken(module))
    remember(module)
    object.__setattr__(module, attribute, variable)
    return variable


def _name_of(title: Any) -> str:
    """The snake case of a schema's title, as far as that makes a name."""
    words = _NO_WORD.sub("_", snake_case(title)).strip("_") if isinstance(title, str) else ""
    name = snake_case(words) if words else ""  # a keyword takes an underscore
    return name if name.isidentifier() else "variable"


class _Taken:
    """The names that an attribute cannot have: those of other attributes, and of the class."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __contains__(self, name: object) -> bool:
        module, attribute = self.module, str(name)
        if attribute_of(module, attribute) is not ABSENT:
            return True
        return hasattr(type(module), attribute) and attribute not in dict(module._record.declaration.slots)


def get_variable(module: Module, name: str | None, index: int | None) -> Variable:
    """Find one Variable by its name, or by its place in `variables`."""
    if (name is None) == (index is None):
        raise ArgumentError(f"{where(module)}: get_variable takes exactly one of name and index.")
    by_path = module.variables_by_path()
    if index is not None:
        if isinstance(index, bool) or not isinstance(index, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"{where(module)}: get_variable got index={index!r}; an index is a whole number.")
        found = tuple(by_path.values())
        if not -len(found) <= index < len(found):
            raise GraphError(f"{where(module)}: no Variable at index {index!r}; there are {len(found)}.")
        return found[index]
    named = [(path, variable) for path, variable in by_path.items() if variable.name == name]
    if len(named) == 1:
        return named[0][1]
    if named:
        paths = ", ".join(path for path, _ in named)
        raise GraphError(f"{where(module)}: {len(named)} Variables are named {name!r}: {paths}. Take one by its path.")
    names = [str(variable.name) for variable in by_path.values()]
    raise GraphError(
        f"{where(module)}: no Variable is named {name!r}.{did_you_mean(str(name), names)} "
        f"There are: {', '.join(names) or 'none'}."
    )

"""`add_variable` and `get_variable`: Variables that are never lost and never have two paths by accident."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.errors import ArgumentError, GraphError
from synmod.flow.nest import is_leaf, leaves
from synmod.leaves.naming import unused
from synmod.leaves.suggest import did_you_mean
from synmod.module.inputs import where
from synmod.module.sealing import refuse_if_sealed
from synmod.tree import Variable

if TYPE_CHECKING:
    from synmod.module.module import Module


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
    """Make a Variable and hold it under its name until it is assigned to an attribute."""
    refuse_if_sealed(module, name or "variable", "a Variable")
    if not issubclass(kind, Variable):  # pyright: ignore[reportUnnecessaryIsInstance]  # users may pass any class
        raise ArgumentError(f"{where(module)}: type={kind!r} is no Variable type; use sm.Param, sm.Memory, ...")
    variable = kind(
        initializer=initializer,
        data_model=data_model,
        schema=schema,
        trainable=trainable,
        name=name,
        description=description,
    )
    attribute = unused(variable.name or "variable", _Taken(module))
    module._record.provisional[attribute] = variable
    object.__setattr__(module, attribute, variable)
    return variable


class _Taken:
    """The names that an attribute cannot have: those of other attributes, and of the class."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __contains__(self, name: object) -> bool:
        return name in vars(self.module) or hasattr(type(self.module), str(name))


def settle(module: Module, attribute: str, value: Any) -> None:
    """Let an assignment take the place of the names under which `add_variable` held the Variables in `value`."""
    provisional = module._record.provisional
    held = [value] if is_leaf(value) else leaves(value)
    for name, variable in list(provisional.items()):
        if not any(variable is one for one in held):
            continue
        del provisional[name]
        if name == attribute or vars(module).get(name) is not variable:
            continue
        if attribute in vars(module):
            del vars(module)[name]
            continue
        items = [(attribute if key == name else key, item) for key, item in vars(module).items()]
        vars(module).clear()
        vars(module).update(items)


def get_variable(module: Module, name: str | None, index: int | None) -> Variable:
    """Find one Variable by its name, or by its place in `variables`."""
    if (name is None) == (index is None):
        raise ArgumentError(f"{where(module)}: get_variable takes exactly one of name and index.")
    by_path = module.variables_by_path()
    if index is not None:
        found = tuple(by_path.values())
        if isinstance(index, bool) or not -len(found) <= index < len(found):
            raise GraphError(f"{where(module)}: no Variable at index {index!r}; there are {len(found)}.")
        return found[index]
    named = [(path, variable) for path, variable in by_path.items() if variable.name == name]
    if len(named) == 1:
        return named[0][1]
    if named:
        paths = ", ".join(path for path, _ in named)
        raise GraphError(f"{where(module)}: {len(named)} Variables are named {name!r}: {paths}. Take one by its path.")
    names = [variable.name for variable in by_path.values()]
    raise GraphError(
        f"{where(module)}: no Variable is named {name!r}.{did_you_mean(name, names)} "
        f"There are: {', '.join(map(str, names)) or 'none'}."
    )

"""Which names may come from a file: ids of registered objects, constructor arguments, attributes; nothing else."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from synmod.errors import ArgumentError, BadNameError
from synmod.leaves.frozen import Json
from synmod.leaves.names import check_name, did_you_mean
from synmod.lm import LanguageModel
from synmod.module import Module, declaration_of
from synmod.registry import check_registrable, lookup, register_own, registered
from synmod.tree import Intermediate, Memory, OptState, Param, Stat, Variable

from .problems import Where, check_text, load_fault, shown

for _own in (Intermediate, LanguageModel, Memory, OptState, Param, Stat, Variable):
    register_own()(_own)


_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*>[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)
_INT_STEP = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_DECLARATIONS = frozenset({"input_spec", "output_spec"})
"""Names that Module answers by a descriptor and that an instance may set."""

_NEVER_ARGUMENTS: Final = frozenset({"hooks"})
_REFUSED: Final = "unknown"
"""What the constructors of synmod call the keywords that they take only to refuse them with 'Did you mean'."""


class Resolver:
    """Finds the objects that one file names: in the caller's custom objects, then in the registry, and nowhere else.

    Args:
        custom_objects: `{id or bare name: object}`; None for an id takes the schema of the file.

    Raises:
        ArgumentError: It is not a mapping with str keys.
        RegistryError: An object in it, once a file uses it, is of a kind that files may not name.
    """

    def __init__(self, custom_objects: Mapping[str, Any] | None) -> None:
        custom: Any = {} if custom_objects is None else custom_objects
        if not hasattr(custom, "items") or not all(isinstance(key, str) for key in custom):
            raise ArgumentError("custom_objects: wanted a mapping from id or bare name to a class or function.")
        self._custom: dict[str, Any] = dict(custom)
        self._found: dict[str, Any] = {}
        self._bare: dict[str, str] = {}

    def find(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id.

        Raises:
            LoadError: It is not an id, or not registered.
        """
        found = self.find_or_none(public_id, where)
        if found is None:
            package = str(public_id).partition(">")[0]
            raise load_fault(
                where,
                f"{shown(public_id)} is not registered. Import the package that registers it ({shown(package)}) before "
                f"loading; the loader never imports it. Or pass custom_objects={{{shown(public_id)}: ...}}."
                f"{did_you_mean(public_id, registered())}",
            )
        return found

    def find_or_none(self, public_id: Any, where: Where) -> Any:
        """Return the object of an id, None where it is not registered or the caller maps it to None.

        Raises:
            LoadError: It is not an id.
        """
        if type(public_id) is not str or not _ID.fullmatch(public_id):
            raise load_fault(
                where,
                f"{shown(public_id)} is not an id: ids have the form 'package>Name'; a path of code means nothing.",
            )
        if public_id not in self._found:
            self._found[public_id] = self._look_up(public_id, where)
        return self._found[public_id]

    def find_class(self, public_id: Any, where: Where, fits: Callable[[type], bool], wanted: str) -> type:
        """Return the class of an id.

        Raises:
            LoadError: It is not registered, or an object of another kind.
        """
        found = self.find(public_id, where)
        if not isinstance(found, type) or not fits(found):
            kind = f"the class {found.__qualname__}" if isinstance(found, type) else f"a {type(found).__name__}"
            raise load_fault(where, f"{shown(public_id)} is {kind}, wanted {wanted}.")
        return found

    def _look_up(self, public_id: str, where: Where) -> Any:
        """Return what the caller's objects have under an id or its bare name, else what the registry has."""
        bare = public_id.partition(">")[2]
        for key in (public_id, bare):
            if key in self._custom:
                if key == bare and self._bare.setdefault(bare, public_id) != public_id:
                    raise load_fault(
                        where,
                        f"{bare!r} in custom_objects could mean {self._bare[bare]!r} or {public_id!r}: write the id.",
                    )
                found = self._custom[key]
                if found is not None:
                    check_registrable(found, key)
                return found
        return lookup(public_id)


class AttributeNames(dict[tuple[type, str], str | None]):
    """The fault of each attribute name in each class, None for a good one; found out once per document."""

    def __missing__(self, key: tuple[type, str]) -> str | None:
        self[key] = fault = _attribute_fault(*key)
        return fault


def _attribute_fault(cls: type, name: str) -> str | None:
    """Return why instances of a class cannot have a saved attribute of this name: it could be code, or bookkeeping."""
    if _INT_STEP.fullmatch(name):
        return None  # such as a member of a Sequential: not an attribute that code could mean
    if not name.isidentifier():
        return "an attribute name that is not an identifier"
    if name.startswith("__") and name.endswith("__"):
        return "an attribute with the name of a special method"
    if name in _DECLARATIONS:
        return None
    if name.startswith("_") and any(name in vars(base) for base in Module.__mro__):
        return "an attribute with the name of the base class's own bookkeeping"
    for base in cls.__mro__:
        if name in vars(base):
            found: object = vars(base)[name]
            if isinstance(found, types.MemberDescriptorType) and base is not Module:
                return None
            if hasattr(type(found), "__get__"):
                return f"an attribute that hides {name!r} of class {base.__name__}"
    return None


def is_overridden(cls: type, method: str) -> bool:
    """Whether a class of a user's own defines the method; the bases that synmod itself offers do not count."""
    for base in cls.__mro__:
        if method in vars(base):
            return not vars(base).get("_is_module_base", False)
    return False


def check_argument(cls: type[Module], name: str, where: Where) -> None:
    """Raise unless the constructor of a class takes an argument of this name, or its own `from_config` decides.

    Raises:
        LoadError: It does not.
    """
    if is_overridden(cls, "from_config"):
        return
    signature = declaration_of(cls).init
    parameters: Mapping[str, inspect.Parameter] = {} if signature is None else signature.parameters
    rest = [each.name for each in parameters.values() if each.kind is each.VAR_KEYWORD]
    takes_any = bool(rest) and rest[0] != _REFUSED
    if name not in _NEVER_ARGUMENTS and (takes_any or (name in parameters and name != _REFUSED)):
        return
    known = [each for each in parameters if each not in (*_NEVER_ARGUMENTS, _REFUSED, name)]
    raise load_fault(
        where,
        f"{cls.__qualname__} takes no argument {shown(name)} from a file.{did_you_mean(name, known)} "
        "Where the class has changed, override from_config: it sees the old arguments.",
    )


def checked_name(name: Json, where: Where, kind: str) -> str:
    """Return the name of a module or Variable.

    Raises:
        LoadError: It is not a valid name; the cause is a BadNameError.
    """
    try:
        return check_name(check_text(name, where), kind)
    except BadNameError as error:
        raise load_fault(where, str(error)) from error

"""Show docstrings as they are meant: mkdocstrings reads `Examples:` and `__init__`, not `Example:` and `__new__`."""

import re
from typing import Any

from griffe import Class, Extension, Module, Object

_SCHEMA = re.compile(r"^( +)(\w+): ", re.MULTILINE)


class Docstrings(Extension):
    """Turns what mkdocstrings does not know into what it shows well."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object, as it is collected."""
        if obj.docstring:
            text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
            obj.docstring.value = re.sub(r"^Schemas:\n(?: .*\n?)+", _as_list, text, flags=re.MULTILINE)

    def on_module_members(self, *, mod: Module, **_: Any) -> None:
        """Leave out functions that are named like their file: until that is read, they would be found in themselves."""
        for name, member in [*mod.members.items()]:
            if member.is_alias and member.target_path == f"{mod.path}.{name}.{name}":
                del mod.members[name]

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Let a class that is made by `__new__` show its arguments."""
        if "__init__" not in cls.members and "__new__" in cls.members:
            cls.members["__init__"] = cls.members["__new__"]


def _as_list(schemas: re.Match[str]) -> str:
    return _SCHEMA.sub(r"\1- `\2`: ", schemas.group())

"""The schema of what a mask leaves: written anew where the mask passes, with definitions split where uses differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from synmod.data.subschemas import definition_of, escape, renamed_definitions, used_definitions
from synmod.leaves.frozen import FrozenDict, frozen_dict, frozen_list

from .definitions import numbered
from .mask_tree import Branch, Fate
from .places import Places, declares_object

_BROKEN: Final = frozenset(
    {
        "$defs",
        "contains",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "examples",
        "if",
        "maxContains",
        "minContains",
        "minProperties",
        "not",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Keywords that may not hold of what is left. Leaving them out is looser, never wrong."""


class MaskedSchema:
    """Writes the schema that a mask leaves of another."""

    def __init__(self, schema: FrozenDict, root: FrozenDict, places: Places, branch: Branch) -> None:
        self._definitions: Mapping[str, Any] = schema.get("$defs", {})
        self._places = places
        self._variants: dict[tuple[str, int], str] = {}
        self._bodies: dict[str, Any] = {}
        self._unwritten: list[tuple[str, str, Branch]] = []
        self._taken = set(self._definitions)
        self._first_use: dict[str, str] = {}
        texts = {key: schema[key] for key in ("title", "description") if key in schema}
        written = {**self._masked(root, branch), **texts, "type": "object"}
        while self._unwritten:
            name, reference, branch = self._unwritten.pop()
            self._bodies[name] = self._masked(places.target(reference), branch)
        self.plain = self._with_definitions(written)

    def _with_definitions(self, written: dict[str, Any]) -> dict[str, Any]:
        """Put in the definitions in use; a split one keeps its old name where nobody uses the whole one any more."""
        definitions = used_definitions([frozen_dict(written)], {**self._definitions, **self._bodies})
        names = {new: old for old, new in self._first_use.items() if old not in definitions and new in definitions}
        if names:
            written = dict(renamed_definitions(frozen_dict(written), names))
            definitions = {
                names.get(name, name): renamed_definitions(definition, names)
                for name, definition in definitions.items()
            }
        keys = {**({"$defs": frozen_dict(definitions)} if definitions else {}), **written}
        return dict(sorted(keys.items()))

    def _masked(self, schema: Any, branch: Branch) -> Any:
        """Write one schema at a place that the mask passes."""
        if not isinstance(schema, FrozenDict):
            return schema
        new = {key: value for key, value in schema.items() if key not in _BROKEN}
        for keyword in ("anyOf", "allOf", "oneOf", "prefixItems"):
            if keyword in new:
                new[keyword] = frozen_list([self._masked(arm, branch) for arm in new[keyword]])
        if "items" in new:
            new["items"] = self._masked(new["items"], branch)
        if "$ref" in new:
            new["$ref"] = self._variant(new["$ref"], branch)
        if "default" in new:
            new["default"] = branch.masked(new["default"])
        if any(isinstance(member, dict | list) for member in (*new.get("enum", ()), new.get("const"))):
            new = {key: value for key, value in new.items() if key not in {"enum", "const"}}
        self._loosen_one_of(new)
        self._mask_discriminator(new, branch)
        if "required" in new:
            new["required"] = frozen_list([name for name in new["required"] if branch.fate(name) is not Fate.DROP])
            if not new["required"]:
                del new["required"]
        if declares_object(schema):
            self._mask_fields(new, branch)
        return frozen_dict(new)

    def _mask_fields(self, new: dict[str, Any], branch: Branch) -> None:
        if "properties" in new:
            new["properties"] = frozen_dict(
                {
                    name: self._masked(field, fate) if isinstance(fate, Branch) else field
                    for name, field in new["properties"].items()
                    if (fate := branch.fate(name)) is not Fate.DROP
                }
            )
        self._mask_extra_keys(new, branch)

    def _mask_extra_keys(self, new: dict[str, Any], branch: Branch) -> None:
        """Write what extra keys may be; closed only where no other schema speaks of the same object."""
        extra = branch.extra
        if isinstance(extra, Branch):
            admitted = new.get("additionalProperties")
            if isinstance(admitted, FrozenDict):
                new["additionalProperties"] = self._also_whole(admitted, extra, branch)
            if "patternProperties" in new:
                new["patternProperties"] = frozen_dict(
                    {key: self._also_whole(field, extra, branch) for key, field in new["patternProperties"].items()}
                )
        elif extra is Fate.DROP and len(branch.place.objects) == 1:
            if branch.place.is_open and branch.may_name_extra_keys and branch.fate_of_named is Fate.KEEP:
                return
            new.pop("patternProperties", None)
            new["additionalProperties"] = False

    def _also_whole(self, field: Any, extra: Branch, branch: Branch) -> Any:
        """Write what an extra key may be, where a pattern may also name some of them whole."""
        masked = self._masked(field, extra)
        if branch.fate_of_named is Fate.KEEP and branch.may_name_extra_keys:
            return frozen_dict({"anyOf": frozen_list([masked, field])})
        return masked

    def _loosen_one_of(self, new: dict[str, Any]) -> None:
        """Turn `oneOf` into `anyOf`: alternatives may be alike in what is left of them."""
        if "oneOf" in new:
            arms = new.pop("oneOf")
            if "anyOf" in new:
                also = frozen_dict({"anyOf": arms})
                new["allOf"] = frozen_list([*new.get("allOf", ()), also])
            else:
                new["anyOf"] = arms

    def _mask_discriminator(self, new: dict[str, Any], branch: Branch) -> None:
        discriminator = new.get("discriminator")
        if not isinstance(discriminator, FrozenDict):
            return
        if branch.fate(str(discriminator.get("propertyName"))) is not Fate.KEEP:
            del new["discriminator"]
        elif isinstance(discriminator.get("mapping"), FrozenDict):
            targets = {
                value: self._variant(target, branch) if target.startswith("#") else target
                for value, target in discriminator["mapping"].items()
            }
            new["discriminator"] = frozen_dict({**discriminator, "mapping": frozen_dict(targets)})

    def _variant(self, reference: str, branch: Branch) -> str:
        """Give the reference to what a definition becomes at a place; the whole one stays for other uses."""
        key = (reference, id(branch))
        if key not in self._variants:
            old = definition_of(reference) or "Root"
            name = numbered(old, self._taken)
            self._taken.add(name)
            self._first_use.setdefault(old, name)
            self._variants[key] = name
            self._unwritten.append((name, reference, branch))
        return f"#/$defs/{escape(self._variants[key])}"

"""How a case proves the keywords that hold subschemas: by proofs about the parts of its values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from synmod.data.schemas.patterns import compiled
from synmod.leaves.frozen import frozen_dict

from .same_meaning import same_meaning

if TYPE_CHECKING:
    from collections.abc import Iterable

    from synmod.data.validation.checker import Checker

    from .cases import Case

_STRING: Final = frozen_dict({"type": "string"})


class Prover(Protocol):
    """What these rules need of the proof they are part of."""

    left: Checker
    right: Checker

    def below(self, schemas: list[Any], sup: Any) -> bool:
        """Prove that what satisfies all of `schemas` satisfies `sup`."""
        ...

    def case_below(self, case: Case, demands: Iterable[Any]) -> bool:
        """Prove that the values of a case satisfy all demands."""
        ...

    def satisfies(self, member: Any, demands: Iterable[Any]) -> bool:
        """Check one value."""
        ...

    def stands_equal(self, case: Case, demand: Mapping[str, Any], keyword: str) -> bool:
        """Find the keyword with the same meaning on the left."""
        ...


Rule: TypeAlias = Callable[[Prover, "Case", Mapping[str, Any]], bool]


def _any_of(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    """Prove one arm, or for each kind of value one arm."""
    arms = [proof.right.together(arm) for arm in demand["anyOf"]]
    if any(proof.case_below(case, arm) for arm in arms) or proof.stands_equal(case, demand, "anyOf"):
        return True
    return len(case.kinds) > 1 and all(
        any(proof.case_below(case.only(kind), arm) for arm in arms) for kind in sorted(case.kinds)
    )


def _properties(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    return all(proof.below(case.of_key(name), schema) for name, schema in demand["properties"].items())


def _additional_properties(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    """Prove the keys that only the left declares, and those that nobody does."""
    sources = demand.get("patternProperties", {})
    patterns = [compiled(source) for source in sources]
    names = sorted(case.declared() - demand.get("properties", {}).keys())
    extra = [name for name in names if not any(pattern.found_in(name) for pattern in patterns)]
    return all(
        proof.below(schemas, demand["additionalProperties"])
        for schemas in (*map(case.of_key, extra), case.of_other_keys(sources))
    )


def _property_names(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    """Prove the declared names where there are no others, else what is asked of all names."""
    if False in case.of_other_keys():
        return all(proof.satisfies(name, [demand["propertyNames"]]) for name in case.declared())
    return proof.below([*case.values("propertyNames"), _STRING], demand["propertyNames"])


def _prefix_items(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    most = case.most_items()
    return all(
        index >= most or proof.below(case.of_item(index), schema) for index, schema in enumerate(demand["prefixItems"])
    )


def _items(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    """Prove the items behind the prefix on the right: those of a longer prefix on the left, then all others."""
    start = len(demand.get("prefixItems", ()))
    last = max(start, case.longest_prefix())
    most = case.most_items()
    return all(index >= most or proof.below(case.of_item(index), demand["items"]) for index in range(start, last + 1))


def _dependent_schemas(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    """Prove what each key asks of the whole, unless the key cannot be there."""
    proven = all(
        False in case.of_key(name) or proof.case_below(case, proof.right.together(schema))
        for name, schema in demand["dependentSchemas"].items()
    )
    return proven or proof.stands_equal(case, demand, "dependentSchemas")


def _stands_whole(proof: Prover, case: Case, demand: Mapping[str, Any]) -> bool:
    """Find the whole schema on the left: what is not evaluated depends on everything beside it."""
    return any(same_meaning(proof.left, part, proof.right, demand) for part in case.parts)


PART_RULES: Final[Mapping[str, Rule]] = {
    "additionalProperties": _additional_properties,
    "anyOf": _any_of,
    "dependentSchemas": _dependent_schemas,
    "items": _items,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "propertyNames": _property_names,
    "unevaluatedItems": _stands_whole,
    "unevaluatedProperties": _stands_whole,
}
"""For each such keyword, how a case proves it."""

"""What the tree room asks of this one: graph definitions as JSON, put into its table when synmod is imported.

The room behind these two functions is loaded by the first who asks, so that `import synmod` stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from synmod.tree import CODEC

if TYPE_CHECKING:
    from synmod.leaves.frozen import Json
    from synmod.tree import GraphDef


def _encode(graphdef: GraphDef[Any]) -> dict[str, Json]:
    """Write a graph definition."""
    from synmod.saving.definitions import definition_json

    return definition_json(graphdef)


def _decode(json: Json, **options: Any) -> GraphDef[Any]:
    """Read a graph definition."""
    from synmod.saving.definitions import definition_from

    return definition_from(json, **options)


CODEC["encode"] = _encode
CODEC["decode"] = _decode

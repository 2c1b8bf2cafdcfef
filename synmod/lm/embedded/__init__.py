"""Models that live in the process: what a program can run on without a key, a network or a download.

Floor: 5, inside lm. Purpose: adapters for the models named `embedded/...`. State: bounded caches of parsed prompts,
which decide nothing. Speed: under 1 ms a call with 64 short examples. Must never know: modules, retries, budgets;
every layer above an adapter treats these like any other provider.
"""

from synmod.errors import ConfigError
from synmod.leaves.names import did_you_mean
from synmod.lm.adapter import Adapter
from synmod.lm.embedded.nearest import NearestAdapter

__all__ = ["EMBEDDED", "NearestAdapter", "adapter_for"]

EMBEDDED = ("nearest",)
"""The names of the embedded models."""


def adapter_for(name: str) -> Adapter:
    """Give the adapter of an embedded model.

    Args:
        name: What stands behind `embedded/`.

    Returns:
        A new adapter; adapters of one name answer alike.

    Raises:
        ConfigError: There is no embedded model of that name ('Did you mean').

    Example:
        >>> adapter_for("nearest").name
        'embedded'

    Source: pydantic-ai's test models.
    """
    if name not in EMBEDDED:
        raise ConfigError(
            f"embedded/{name}: there is no such model in the process; there is "
            f"{', '.join('embedded/' + known for known in EMBEDDED)}.{did_you_mean(name, EMBEDDED)}"
        )
    return NearestAdapter()

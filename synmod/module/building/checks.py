"""The check of inputs against the contract, which is made once and made anew when the module changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.module.building.contract import Contract

if TYPE_CHECKING:
    from synmod.module.module import Module


def check_inputs(module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raise SchemaError unless the inputs meet the contract of the module."""
    record = module._record
    contract = record.contract
    if contract is None:
        contract = Contract(module)
        if record.ready:  # before that, what it was built on may still be undone
            record.contract = contract
    if not contract.is_empty:
        contract.check(module, args, kwargs)

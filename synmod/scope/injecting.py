"""Values that a tool knows and its model must not choose: `sm.inject` supplies them to parameters `sm.Injected[T]`."""

from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_origin

from synmod import errors

from .frame import SameBlock, ambient

T = TypeVar("T")

_INJECTED: Final = object()

Injected: TypeAlias = Annotated[T, _INJECTED]
"""The annotation of a parameter that `inject` fills: `def orders(since: date, customer: sm.Injected[Customer])`.

It is in no schema, prompt, trace or file.

Source: FastAPI's `Depends`, pydantic-ai's `RunContext`; differs: by type, without a container.
"""


class inject(SameBlock):  # noqa: N801  # read as a word: `with sm.inject(customer):`
    """Supply values to the parameters `sm.Injected[T]` of all tools that run in a block, and in tasks that it starts.

    Args:
        *values: Any objects. A parameter gets the last value that is an instance of its type, of the innermost block
            that has one.

    Raises:
        ArgumentError: There are no values.

    Example:
        >>> import synmod as sm
        >>> class Customer(sm.DataModel):
        ...     id: int
        >>> def orders(year: int, customer: sm.Injected[Customer]) -> str:
        ...     return f"orders of customer {customer.id} in {year}"
        >>> with sm.inject(Customer(id=7)):
        ...     sm.run(sm.Tool(orders), year=2026)["result"]
        'orders of customer 7 in 2026'

    Source: pydantic-ai's `deps`, dependency injection by type.
    """

    def __init__(self, *values: Any) -> None:
        if not values:
            raise errors.ArgumentError("inject() got no value: write `with sm.inject(customer):`.")
        super().__init__(injected=values)


def injected_type(annotation: Any) -> Any:
    """Return the type in an annotation `Injected[T]`, as `isinstance` takes it; None for any other annotation.

    Raises:
        ConfigError: `isinstance` cannot check it.
    """
    if get_origin(annotation) is not Annotated or _INJECTED not in get_args(annotation)[1:]:
        return None
    kind = get_args(annotation)[0]
    for candidate in (kind, get_origin(kind)):  # `dict` of `dict[str, int]`
        try:
            isinstance(None, candidate)
        except TypeError:
            continue
        return candidate
    raise errors.ConfigError(f"Injected[{kind!r:.100}]: values are found by their type; write a class.")


def injected_value(kind: Any, default: Any = None) -> Any:
    """Return the value that the blocks around supply for a type; `default` if none does."""
    blocks: tuple[tuple[Any, ...], ...] = ambient().injected
    return next(
        (value for values in reversed(blocks) for value in reversed(values) if isinstance(value, kind)), default
    )

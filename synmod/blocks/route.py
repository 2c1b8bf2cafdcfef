"""Route: a field of a value says which of several modules gets the inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from synmod.blocks.arguments import field_name, member, one_of
from synmod.blocks.routes import alternatives, checked_routes, merged, symbols_of, take
from synmod.blocks.said import must_have
from synmod.errors import CallError
from synmod.module import Child, Execution, Module
from synmod.registry import register_own

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synmod.module import ModuleOptions


@register_own()
class Route(Module):
    """A module gives a value, one field of which selects the module that gets the inputs.

    Args:
        module: What gives the value; any module, a model is not needed.
        routes: Mapping from the field's value to module.
        key: The field.
        default: The route for values that have none.
        merge: Whether the result is the output of the route taken instead of one entry a route.
        **options: Those of `Module`.

    Schemas:
        inputs: what `module` and every route takes
        outputs: a tuple with one entry a route, None where it was not taken; with `merge` the entry that was taken, of
            schema `U` of the routes' outputs

    Raises:
        ConfigError: No routes, a member that is no module, a `default` that is no route ('Did you mean'), a `key` that
            is no name.
        SchemaError: When composed: the value has no such field ('Did you mean').
        CallError: When called: the value names no route, and there is no default.

    Example:
        >>> import synmod as sm
        >>> class Mail(sm.DataModel):
        ...     language: str
        >>> routes = {"fr": sm.Constant({"greeting": "Bonjour"}), "en": sm.Constant({"greeting": "Hello"})}
        >>> route = sm.Route(sm.Identity(), routes, key="language", default="en", merge=True)
        >>> sm.run(route, Mail(language="fr")).get_json()
        {'greeting': 'Bonjour'}

    Source: semantic routers; LangGraph's conditional edges.
    """

    def __init__(
        self,
        module: Module,
        routes: Mapping[str, Module],
        *,
        key: str = "choice",
        default: str | None = None,
        merge: bool = False,
        **options: Unpack[ModuleOptions],
    ) -> None:
        super().__init__(**options)
        self.module = member("Route", "module", module)
        self.routes = checked_routes("Route", "routes", routes)
        self.key = field_name("Route", "key", key)
        self.default = None if default is None else one_of("Route", "default", default, tuple(self.routes))
        self.merge = merge

    async def call(self, inputs: Any) -> Any:
        """Ask for the value, then run the route that it selects."""
        value = await self.module(inputs)
        outputs = await take(self.routes, () if value is None else (self._selected(value),), inputs)
        return merged(outputs) if self.merge else outputs

    def _execution(self) -> Execution:
        """The module that selects, then one route or another."""
        return Execution("in order", (Child(("module",), self.module), alternatives("routes", self.routes)))

    async def compute_output_spec(self, inputs: Any) -> Any:
        """One symbol a route, or their merge."""
        must_have("Route", "the value of its module", await self.module(inputs), self.key)
        outputs = await symbols_of(self.routes, inputs)
        return merged(outputs) if self.merge else outputs

    def _selected(self, value: Any) -> str:
        """The route that a value selects."""
        said = value.get(self.key)
        route = said if isinstance(said, str) and said in self.routes else self.default
        if route is None:
            raise CallError(
                f"Route: {self.key!r} is {said!r:.100}, which selects no route; there are {', '.join(self.routes)}. "
                "Name one of them as `default`, or add a route."
            )
        return route

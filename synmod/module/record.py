"""What a module keeps beside the user's attributes, in one slot.

The record is also what a frame knows of its module (`name`, `training_default`), so that `scope` never sees a Module.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from synmod.scope import CallCounters

if TYPE_CHECKING:
    from synmod.module.building import Build
    from synmod.module.contract import Contract
    from synmod.module.declaration import ClassDeclaration
    from synmod.module.interface.outputs import DeclaredOutputs
    from synmod.module.paths import PathTable
    from synmod.module.skips import Runner
    from synmod.scope import Hook, TraceNode


LABELS = frozenset({"name", "description", "trainable", "hooks", "isolated"})
"""Fields of the record that `Module` shows under the same names."""

NO_NAMES: frozenset[str] = frozenset()
_NONE_ISOLATED: Mapping[str, Any] = {}
_FIRST_USE = threading.RLock()


class ModuleRecord:
    """Bookkeeping of one module: labels, constructor arguments, build, contract, counters. Never shown as a child.

    Its sets of names are dicts without values: they keep their order, and an empty one is small.
    """

    __slots__ = (
        "arguments",
        "build_config",
        "building",
        "built",
        "constructed",
        "contract",
        "counters",
        "declaration",
        "declared",
        "description",
        "flow",
        "given",
        "home",
        "hooks",
        "isolated",
        "layout",
        "made_in_build",
        "name",
        "paths",
        "ready",
        "reassigned",
        "recorded",
        "removed",
        "reopened",
        "restored",
        "runner",
        "sealed",
        "statics",
        "trainable",
        "version",
    )

    counters: CallCounters

    def __init__(
        self,
        declaration: ClassDeclaration,
        name: str,
        description: str,
        trainable: bool = True,
        arguments: Mapping[str, Any] | None = None,
        given: tuple[str, str, bool] | None = None,
        build_config: Mapping[str, Any] | None = None,
        built: bool = False,
        sealed: bool = False,
        made_in_build: frozenset[str] = NO_NAMES,
        flow: Any = None,
        isolated: Mapping[str, Any] = _NONE_ISOLATED,
        constructed: bool = False,
    ) -> None:
        self.declaration = declaration
        self.arguments = arguments
        """Constructor arguments by parameter; None for a module that was not made by calling its class."""
        self.name = name
        self.description = description
        self.trainable = trainable
        self.hooks: tuple[Hook, ...] = ()
        self.runner: Runner | None = declaration.runner
        """Runs `call` where skips are declared here or below; see `skips`."""
        self.isolated = isolated
        """The Namespace of each skip name that was put into one."""
        self.given = given
        """Name, description and trainable as the constructor left them."""
        self.constructed = constructed
        self.reassigned: dict[str, None] = {}
        self.removed: dict[str, None] = {}
        self.made_in_build = made_in_build
        self.building: Build | None = None
        self.built = built
        self.ready = False
        """Built and sealed for everybody: the one test of a call."""
        self.restored = False
        """A load has put back what `build` made, so that building again only marks the module as built."""
        self.statics: dict[str, None] = {}
        """Attributes that were set to `static(x)`; they read as x."""
        self.sealed = sealed
        self.reopened = False
        """Was sealed, and is open for editing until it is handed back."""
        self.layout: list[object] | None = None
        """What the containers held when the structure was sealed."""
        self.version = 0
        self.build_config = build_config
        self.contract: Contract | None = None
        self.declared: DeclaredOutputs | None = None
        self.flow = flow
        """The graph of a functional program: a record of the flow room."""
        self.paths: PathTable | None = None
        """As an entry module: where everything below stands."""
        self.recorded: TraceNode | None = None
        """As an entry module: its last call that a trace has recorded."""
        self.home: str | None = None
        """The path below the root that built this module last; None until there was one."""

    if not TYPE_CHECKING:  # a checker shall know the slot

        def __getattr__(self, name: str) -> Any:
            """Make the counters when something is first counted, or asked for: most copies never run."""
            if name != "counters":
                raise AttributeError(name)
            with _FIRST_USE:
                made = CallCounters()  # meanwhile garbage may be collected, and a call of this module end in it
                try:
                    return object.__getattribute__(self, name)
                except AttributeError:
                    self.counters = made
                    return made

    def forget(self, name: str) -> None:
        """Say nothing more of what an attribute that is gone was."""
        self.statics.pop(name, None)

    @property
    def was_sealed(self) -> bool:
        """Whether it is sealed, or was before it was opened for editing."""
        return self.sealed or self.reopened

    @property
    def training_default(self) -> bool:
        """The default of `training` in the signature of `call`."""
        return self.declaration.call.training_default

"""Programs without a subclass: `compose` traces a function, `Sequential` runs members in order."""

import dis
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from itertools import chain, pairwise
from keyword import iskeyword
from types import CodeType, FunctionType, MethodType
from typing import Any, ClassVar, Self, Unpack, cast, overload

from pydantic import ValidationError

from synmod import blocks, leaves, module as modules, registry, scope
from synmod.data import DataModel, JsonDataModel, SymbolicDataModel, contains
from synmod.errors import ArgumentError, BuildError, CallError, ConfigError, GraphError, SchemaError, SymbolicValueError
from synmod.module import Data, Module, ModuleOf
from synmod.skip.wiring import verify_root

from .program import M, Program
from .wiring import Input

# -- compose -----------------------------------------------------------------------------------------------------------

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@overload
def compose(
    fn: Callable[..., Coroutine[Any, Any, Data[M]] | Data[M]],
    *,
    name: str | None = None,
    description: str | None = None,
) -> Program[M]: ...
@overload
def compose(fn: Callable[..., Any], *, name: str | None = None, description: str | None = None) -> Program: ...
@overload
def compose(
    fn: None = None, *, name: str | None = None, description: str | None = None
) -> Callable[[Callable[..., Any]], Program]: ...
@leaves.checks_keywords
def compose(fn: Callable[..., Any] | None = None, *, name: str | None = None, description: str | None = None) -> Any:
    """Make a functional program from a function, with or without a running event loop.

    The body runs once, on symbols. A saved file holds the graph, not the function.

    Args:
        fn: Async or plain; each parameter is annotated with a data model and becomes an Input of that name. A default
            None, or `| None`, makes it optional.
        name: Label; default is the function's name.
        description: Label; default is the first paragraph of the function's docstring.

    Returns:
        The program.

    Raises:
        ArgumentError: A parameter cannot be an Input, or `fn` is not an async or plain function.
        BuildError: The body waits for something, has a `try` or `with` around a call, or tests whether a symbol is
            None (contains 'compose').
        SymbolicValueError: The body reads a value.
        SchemaError: The outputs do not contain what the return annotation declares.
        GraphError: The wiring is faulty.
        Exception: Whatever the body raises.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> @sm.compose
        ... def mine(query: Query):
        ...     return query.prefix("my")
        >>> sm.run(mine, Query(question="Who?")).get_json()
        {'my_question': 'Who?'}

    Source: Keras functional models, JAX's tracing of functions.
    """
    if fn is None:
        return partial(compose, name=name, description=description)
    is_generator = inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn)
    if not isinstance(fn, FunctionType | MethodType) or is_generator:
        raise ArgumentError(f"compose takes an async or plain function; got {fn!r:.100}.")
    label = leaves.check_name(getattr(fn, "__name__", None) if name is None else name)
    positional, by_keyword = _inputs(fn, label)
    outputs = copy_context().run(_trace_body, fn, label, positional, by_keyword)
    _refuse_untraceable_python(fn, label, [*inspect.signature(fn).parameters])
    _check_outputs(fn, label, outputs)
    inputs = [*positional, *by_keyword.values()]
    return Program(
        inputs=inputs[0] if len(inputs) == 1 else inputs,
        outputs=outputs,
        name=label,
        description=modules.first_paragraph(fn.__doc__) if description is None else description,
    )


def _inputs(fn: Callable[..., Any], label: str) -> tuple[list[SymbolicDataModel], dict[str, SymbolicDataModel]]:
    """Return an Input for each parameter: the positional ones, and the keyword-only ones by name."""
    hints = modules.resolve_annotations(fn)
    positional: list[SymbolicDataModel] = []
    by_keyword: dict[str, SymbolicDataModel] = {}
    for parameter in inspect.signature(fn).parameters.values():
        inner, optional = modules.without_none(hints.get(parameter.name, modules.UNDECLARED))
        model = modules.model_of_annotation(inner)
        defaulted = parameter.default is not parameter.empty
        if parameter.kind not in _NAMED or model is None or (defaulted and parameter.default is not None):
            raise ArgumentError(
                f"compose: the parameter `{parameter}` of {label!r} cannot be an Input: annotate it with a data model, "
                f"`{parameter.name}: Query`, and give it no default but None."
            )
        symbol = Input(model, name=parameter.name, optional=optional or defaulted)
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            by_keyword[parameter.name] = symbol
        else:
            positional.append(symbol)
    return positional, by_keyword


def _refuse_untraceable_python(fn: Callable[..., Any], label: str, parameters: Iterable[str]) -> None:
    """Refuse Python that decides around a call: the body runs once, on symbols, and only its calls are kept.

    That is a `try` or `with` around an `await`, also in an async function that it uses, and `x is None` of a symbol. It
    reads the bytecode, since the source of `exec` and of `python -c` is unknown.
    """
    functions = _async_functions(inspect.unwrap(fn))
    blocks = (lost for function in functions for lost in _blocks_around_calls(function.__code__, label))
    tests = (lost for function in functions[:1] for lost in _tests_for_none(function.__code__, parameters))
    for line, what, remedy in chain(blocks, tests):
        raise BuildError(
            f"compose: the body of {label!r}, line {line}, has {what}. The body runs once, on symbols, and the program "
            f"keeps its calls alone. {remedy}; or write a class with `call`, which runs for each value."
        )


def _async_functions(fn: Callable[..., Any]) -> list[Any]:
    """Return a function, and the async functions of the user that it names, directly or through one another."""
    functions: list[Any] = [fn]
    for function in functions:
        scopes = inspect.getclosurevars(function)
        for value in (*scopes.nonlocals.values(), *scopes.globals.values()):
            is_new = isinstance(value, FunctionType) and value not in functions
            if is_new and inspect.iscoroutinefunction(value) and not value.__module__.startswith("synmod."):
                functions.append(value)
    return functions


def _blocks_around_calls(code: CodeType, label: str) -> Iterator[tuple[int | None, str, str]]:
    """Yield line, description and remedy of each `try` and `with` around an `await`."""
    instructions = [*dis.get_instructions(code)]
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    table: Any = dis.Bytecode(code)
    for entry in table.exception_entries:
        handler, following = instructions[places[entry.target] :][:2]
        body = instructions[places[entry.start] : places.get(entry.end)]
        calls = [_line(instruction) for instruction in body if instruction.opname == "GET_AWAITABLE"]
        if not calls or handler.opname != "PUSH_EXC_INFO":  # other handlers are Python's own, of the await itself
            continue
        if following.opname == "WITH_EXCEPT_START":
            remedy = f"Open the block where the program is called, `with ...: await {label}(...)`"
            yield calls[0], "a `with` around a call", remedy
        else:
            remedy = "Write sm.Fallback(first, second) for another module, sm.Retry(module, on=...) to try again"
            yield calls[0], "a `try` around a call", remedy


def _tests_for_none(code: CodeType, parameters: Iterable[str]) -> Iterator[tuple[int | None, str, str]]:
    """Yield line, description and remedy of each test whether a parameter, or what an `await` returned, is None."""
    instructions = [*dis.get_instructions(code)]
    symbols = {*parameters}
    for before, instruction in pairwise(instructions):
        if instruction.opname.startswith("STORE_FAST") and before.opname in ("END_SEND", "JUMP_BACKWARD_NO_INTERRUPT"):
            symbols.add(_names(instruction)[0])
    for load, following, third in zip(instructions, instructions[1:], instructions[2:], strict=False):
        is_none = following.opname == "LOAD_CONST" and following.argval is None
        is_test = following.opname.endswith("_NONE") or (is_none and third.opname in ("IS_OP", "COMPARE_OP"))
        if is_test and "LOAD_" in load.opname and (name := _names(load)[-1]) in symbols:
            remedy = "Write `a | b` for b where a is absent, `a & b` for None where either is"
            yield _line(load), f"a test whether {name} is None, but it is a symbol there and never None", remedy


def _names(instruction: dis.Instruction) -> Sequence[Any]:
    """Return the names that an instruction stores or loads, in order; Python 3.13 joins two instructions into one."""
    names: Any = instruction.argval
    return names if leaves.is_sequence(names) else (names,)


def _line(instruction: dis.Instruction) -> int | None:
    return instruction.positions.lineno if instruction.positions else None


def _trace_body(
    fn: Callable[..., Any], label: str, positional: list[SymbolicDataModel], by_keyword: dict[str, SymbolicDataModel]
) -> Any:
    """Run the body on symbols; if it fails or waits, the modules that it built are unbuilt again."""

    async def body() -> Any:
        with modules.Build():
            outputs = fn(*positional, **by_keyword)
            return await outputs if inspect.isawaitable(outputs) else outputs

    try:
        return leaves.drive(body())
    except leaves.Suspended:
        raise BuildError(
            f"compose: the body of {label!r} waits for something, which wiring a program does not need. (Branches "
            "already run at the same time: write `a = await first(x)`, `b = await second(x)`, no gather.) Where a "
            "module's build must wait, wire them in a coroutine: `x = sm.Input(Query)`, `y = await module(x)`, "
            "`sm.Program(inputs=x, outputs=y)`."
        ) from None
    except ValidationError as error:
        symbol = next(
            (fault["input"] for fault in error.errors() if isinstance(fault["input"], SymbolicDataModel)), None
        )
        if symbol is None:
            raise
        raise SymbolicValueError(
            f"compose: the body of {label!r} makes a {error.title} of {symbol!r}, which has no value yet: pass it on "
            "as it is, or make the data model in an sm.Lambda or in a class with `call`."
        ) from error


def _check_outputs(fn: Callable[..., Any], label: str, outputs: Any) -> None:
    """Check that the outputs contain what a return annotation declares."""
    declared = modules.read_outputs(modules.resolve_annotations(fn).get("return", modules.UNDECLARED))
    if declared is modules.UNDECLARED:
        return
    pairs = leaves.align_nests(declared, outputs)
    if pairs is None:
        raise SchemaError(
            f"compose: {label!r} returns a structure that differs from its annotation, {declared!r:.200}."
        )
    for path, model, output in pairs:
        if isinstance(output, SymbolicDataModel) and not contains(output, model):
            place = f", output {'/'.join(map(str, path))}," if path else ""
            raise SchemaError(
                f"compose: {label!r}{place} declares `-> {model.__name__}`, but returns {output._label!r} with the "
                f"fields ({', '.join(output.keys())}), which does not contain it."
            )


# -- Sequential: modules and functions in order ------------------------------------------------------------------------

Member = Module | Callable[..., Any] | SymbolicDataModel
Typed = ModuleOf[JsonDataModel[M]]
Row = tuple[*tuple[Member, ...], Typed[M]]
"""Members whose last one is typed: type checkers infer the output from it."""


@registry.register_own()
class Sequential(Program[M]):
    """Members in order: each gets the whole output of the one before.

    Args:
        members: Modules, or plain callables, sync or async, that take and return data: in a list, or one argument each.
            An `sm.Input` (or a data-model class) may come first: it declares the input, and the constructor builds at
            once. A mapping gives each member a name, which is its step in paths; otherwise the steps are `0`, `1` and
            so on. Type checkers infer the output from the last argument or a tuple's last member, or from a list whose
            members have one type.
        *more: Further members, if the first argument is one.
        name: Label.
        description: Label.
        trainable: Whether the members may be trained.
        hooks: Listeners.

    Raises:
        GraphError: An Input is not the first member.
        ConfigError: A member is neither a module nor a callable, a name hides an attribute of every Sequential, or a
            keyword is unknown.
        CallError: When called without an argument, with an Input first.
        BadNameError: A member's name is not an identifier.
        Exception: Whatever the build raises, with an Input first.

    Example:
        >>> import synmod as sm
        >>> class Query(sm.DataModel):
        ...     question: str
        >>> both = sm.Sequential([sm.Input(Query), sm.Identity(), lambda x: x.prefix("my")])
        >>> sm.run(both, Query(question="Who?")).get_json()
        {'my_question': 'Who?'}

    Source: Keras `Sequential`; differs: an Input builds at once, functions are members too.
    """

    _is_module_base: ClassVar[bool] = True
    graph_ignored: ClassVar[frozenset[str]] = frozenset({"_names"})

    @overload  # first: to mypy a mapping is an iterable of its keys
    def __init__(
        self: "Sequential[Any]", members: Mapping[str, Member], **options: Unpack[modules.ModuleOptions]
    ) -> None: ...
    @overload
    def __init__(self, members: Row[M], **options: Unpack[modules.ModuleOptions]) -> None: ...
    @overload
    def __init__(
        self, members: Iterable[SymbolicDataModel | Typed[M]], **options: Unpack[modules.ModuleOptions]
    ) -> None: ...
    @overload
    def __init__(
        self: "Sequential[Any]", members: Iterable[Member] = (), **options: Unpack[modules.ModuleOptions]
    ) -> None: ...
    @overload
    def __init__(self, *members: *Row[M], **options: Unpack[modules.ModuleOptions]) -> None: ...
    @overload
    def __init__(self: "Sequential[Any]", *members: Member, **options: Unpack[modules.ModuleOptions]) -> None: ...
    def __init__(
        self,
        members: Any = (),
        *more: Any,
        name: str | None = None,
        description: str | None = None,
        trainable: bool = True,
        hooks: Sequence[scope.Hook] | None = None,
    ) -> None:
        rest = more
        if len(more) == 1 and isinstance(more[0], str) and name is None:  # Keras' second parameter
            name, rest = more[0], ()
        row = members if _is_row(members) and not rest else [members, *rest]
        row = list(cast("Iterator[Any]", row)) if isinstance(row, Iterator) else row
        super().__init__(name=name, description=description, trainable=trainable, hooks=hooks)
        if more or row is not members:
            self._record_members(lambda _: row, **({} if name is None else {"name": name}))
        if isinstance(row, Mapping):
            vars(self)["_names"] = ()
        for name_of_member, member in _pairs(row):
            self._append(member, name_of_member)
        if self.input_spec is not None:
            self._build_now()

    @property
    def members(self) -> tuple[Module, ...]:
        """The members in order, a plain callable as a `Lambda`; an Input is not among them."""
        attributes: dict[Any, Any] = vars(self)
        return tuple(attributes[step] for step in self._steps())

    def _steps(self) -> Sequence[str | int]:
        """Return the attributes that hold the members: their names, else 0, 1 and so on."""
        attributes: dict[Any, Any] = vars(self)
        names: tuple[str, ...] | None = attributes.get("_names")
        return sorted(key for key in attributes if isinstance(key, int)) if names is None else names

    def _is_built_itself(self) -> bool:
        return self._record.sealed

    def _run_modules(self) -> list[Module]:
        return list(self.members)

    def add(self, member: Member, name: str | None = None) -> None:
        """Append a member, with a name if the members have names; possible until the Sequential is built.

        Raises:
            SealedError: The Sequential is built.
            GraphError: An Input is not the first member.
            ConfigError: The member is neither a module nor a callable, or its name is missing, taken, or given where
                members have none.
            BadNameError: The name is not an identifier.
        """
        modules.refuse_if_sealed(self, name or str(len(self._steps())), "cannot add a member")
        if (name is None) is ("_names" in vars(self)):
            remedy = "`add(member, 'name')`" if name is None else "`add(member)`, or Sequential({...}) from the start"
            raise ConfigError(f"{self.name!r}: its members have {'' if name is None else 'no '}names: write {remedy}.")
        self._append(member, name)
        self._record_members(lambda members: _like(members, [*_pairs(members), (name, member)]))

    def pop(self) -> Module:
        """Remove the last member and return it; possible until the Sequential is built.

        Raises:
            SealedError: The Sequential is built.
            GraphError: The Sequential is empty.
        """
        steps = self._steps()
        modules.refuse_if_sealed(self, str(steps[-1] if steps else -1), "cannot remove the last member")
        if not steps:
            raise GraphError(f"{self.name!r}: there is no member to remove.")
        self._record_members(lambda members: _like(members, _pairs(members)[:-1]))
        attributes: dict[Any, Any] = vars(self)
        if "_names" in attributes:
            attributes["_names"] = steps[:-1]
        return attributes.pop(steps[-1])

    async def call(self, /, *inputs: Any, **keywords: Any) -> JsonDataModel[M]:
        """Run the members, the first one on all arguments; without members, return the input."""
        if not inputs and not keywords and (spec := self.input_spec) is not None:
            raise CallError(f"{modules.where(self)}: got no argument; it takes {modules.shape(spec)}.")
        value: Any = inputs[0] if len(inputs) == 1 else inputs or None
        for place, member in enumerate(self.members):
            value = await (member(value) if place else member(*inputs, **keywords))
        return value

    async def compute_output_spec(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return what a trace of the members returns."""
        return await Module.compute_output_spec(self, *args, **kwargs)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Make a Sequential from what `get_config` returned, without a build."""
        all_members: Any = config.get("members", ())
        members = _pairs(all_members)
        if not members or not _is_input(members[0][1]):
            return modules.from_config(cls, config)
        sequential = modules.from_config(cls, {**config, "members": _like(all_members, members[1:])})
        sequential.input_spec = _as_input(members[0][1])
        sequential._record_members(lambda _: all_members)
        return sequential

    def get_build_config(self) -> dict[str, Any] | None:
        """Return a config without schemas if it is built, else None; the members have configs of their own."""
        return {"schemas": {}} if self._record.sealed else None

    def build_from_config(self, config: Mapping[str, Any] | None) -> None:
        """Seal a Sequential that was built; the members have configs of their own."""
        if config is not None:
            modules.seal(self)

    def _append(self, member: Any, name: str | None = None) -> None:
        """Append a member; an Input becomes the input spec instead."""
        attributes: dict[Any, Any] = vars(self)
        steps = self._steps()
        step = len(steps) if name is None else leaves.check_name(name, "member")
        if isinstance(step, str) and hasattr(type(self), step):
            raise ConfigError(
                f"{self.name!r}: the member name {step!r} is the name of an attribute of every Sequential; choose "
                f"another one, such as {f'{step}_step'!r}."
            )
        if _is_input(member):
            if steps or self.input_spec is not None:
                raise GraphError(f"{self.name!r}: member {step} is an Input; an Input may only come first.")
            self.input_spec = _as_input(member)
            return
        if not isinstance(member, Module) and (isinstance(member, type) or not callable(member)):
            if inspect.iscoroutine(member):
                member.close()  # it will not be awaited
            raise ConfigError(
                f"{self.name!r}: member {step} is {modules.kind_text(member)}; members are modules (instances) or "
                "plain callables, in one list or one argument each."
            )
        module = member if isinstance(member, Module) else blocks.Lambda(member, name=_label(member))
        if isinstance(step, int):
            attributes[step] = module
            return
        if step in attributes:
            raise ConfigError(f"{self.name!r}: the name {step!r} is taken; give the member another one.")
        setattr(self, step, module)
        attributes["_names"] = (*steps, step)

    def _record_members(self, change: Callable[[Any], Any], **labels: str) -> None:
        """Apply a change of members to the recorded constructor arguments: one list or dict, which has the Input."""
        arguments = self._record.arguments
        if arguments is not None and type(self).__init__ is Sequential.__init__:
            rest = {key: value for key, value in arguments.items() if key not in ("members", "more")}
            self._record.arguments = {"members": change(arguments.get("members", ())), **rest, **labels}

    def _build_now(self) -> None:
        """Build on the Input, if no build waits; otherwise the first call builds."""
        try:
            copy_context().run(leaves.drive, modules.build(self))
        except leaves.Suspended:
            return

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if isinstance(name, str)]  # pyright: ignore[reportUnnecessaryIsInstance]


@modules.own_inputs_of.register(Sequential)
def sequential_inputs(row: Sequential[Any]) -> tuple[Any, ...]:
    """Return what `sm.build` builds a Sequential on: its Input."""
    spec = row.input_spec
    return () if spec is None else (spec,)


@modules.passes_none.register(Sequential)
def sequential_passes_none(_: Sequential[Any]) -> bool:
    """Whether a None passes, as in any module."""
    return True


@modules.verify_first_call.register(Sequential)
def verify_first_call_of_sequential(row: Sequential[Any]) -> None:
    """Check the whole Sequential at its first entry call; one inside another program is checked with that program."""
    frame = scope.current_call()
    if frame is not None and frame.parent is None and not frame.symbolic:
        verify_root(row, is_whole=False)


@modules.execution_of.register(Sequential)
def execution_of_sequential(row: Sequential[Any]) -> modules.Execution | None:
    """Return the members in order; None for a subclass with its own `call`, which may run them in any order."""
    if type(row).call is not Sequential.call:
        return None
    return modules.Execution("in order", tuple(map(modules.ChildAt, zip(row._steps()), row.members)))


def _label(function: Callable[..., Any]) -> str | None:
    """Return the name of a function, None if it cannot be the name of a module."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) and name.isidentifier() and not iskeyword(name) else None


def _is_row(members: Any) -> bool:
    """Whether a first argument holds the members; otherwise it is a member itself."""
    return isinstance(members, Iterable) and not isinstance(members, Callable | SymbolicDataModel)


def _pairs(members: Any) -> list[tuple[Any, Any]]:
    """Return each member after its name, which is None if the members have no names."""
    if leaves.is_mapping(members):
        return list(members.items())
    return [(None, member) for member in members]


def _like(members: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Return the members of `pairs` in the form of `members`: a dict by name, or a list."""
    return dict(pairs) if isinstance(members, Mapping) else [member for _, member in pairs]


def _is_input(member: Any) -> bool:
    """Whether a member is a symbol or a data-model class, so that it declares the input."""
    return isinstance(member, SymbolicDataModel) or (inspect.isclass(member) and issubclass(member, DataModel))


def _as_input(member: Any) -> SymbolicDataModel:
    """Return an Input of a data-model class; a symbol as it is."""
    return member if isinstance(member, SymbolicDataModel) else Input(member)

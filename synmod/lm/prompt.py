"""Prompts: from declarations and inputs to chat messages.

`Layout` writes a prompt in the default layout: instructions as the system turn, examples as turns with their answers,
then the inputs. A chat model answers the last user turn as the assistant turns before it answer theirs; on a small real
model this doubles and trebles the right answers of one that writes examples and a JSON schema into one turn
(`python -m tests.benchmarks.real`). Or it arranges the six slots of a prompt (instructions, input fields, output
fields, output schema, examples, inputs), each between its own tags that no value can close: all of them, by a template,
or by a user's function.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from synmod.data import ChatMessages, SymbolicDataModel, contains, intern_schema, parse_json
from synmod.errors import ArgumentError, ConfigError, DataError
from synmod.leaves import Json, did_you_mean, is_object

from . import words
from .records import Adapter, LMRequest, Message, message, set_constant, turns, with_text
from .words import Object

LAYOUTS: Final = ("turns", "tags")
"""The names of the layouts, the default one first."""

SLOTS: Final = ("instructions", "input_fields", "output_fields", "output_schema", "examples", "inputs")
"""The names of the slots, in the order in which templates usually have them."""

REPAIR_OPENING: Final = "<repair>"
"""The beginning of a repair turn, which follows the invalid reply."""

_EXAMPLE: Final = "{'system': '{instructions}\\n{output_fields}', 'user': '{examples}\\n{inputs}'}"
_TAGS: Final = {"system": ("instructions", "input_fields", "output_schema"), "user": ("examples", "inputs")}
_SLOT: Final = re.compile(r"\{(" + "|".join(SLOTS) + r")\}")
_BRACES: Final = re.compile(r"\{\s*([A-Za-z_][A-Za-z_ ]{0,38})\s*\}")
_LESS: Final = "\\u003c"
_ENDS_INSTRUCTIONS: Final = re.compile(r"<(?=\s*/\s*instructions\b)", re.IGNORECASE)
_MESSAGES: Final = "messages"  # the field of `ChatMessages`
_MOST_CONSTANTS: Final = 256  # more than the candidates that an optimizer runs at once

# -- the default layout ------------------------------------------------------------------------------------------------

_INPUTS: Final = "The fields of the inputs:"
_REPLY: Final = "The fields of the reply:"
_SECTION: Final = re.compile(rf"(?:^|\n\n)(?:{_INPUTS}|{_REPLY})\n")
_ONE_LINE: Final = re.compile(r"[^\n]+[.!?]")
_VALUES: Final = re.compile(r"(?:^| |\n\n)The \w+ are: [^\n]+\.\Z")
_OPENING: Final = re.compile(
    r"<(?=\s*/?\s*(?:instructions|input_fields|output_fields|output_schema|examples|inputs|repair)\b"
    r"|[|｜]|/?s>|\w+_of_turn>|/?tool_)",
    re.IGNORECASE,
)  # ours, and those that chat templates give a meaning to


def system_text(
    instructions: str,
    input_schema: Object,
    output_schema: Object | None,
    without: Iterable[str] = (),
    examples: Sequence[Json] = (),
    *,
    sentences: bool = True,
) -> str:
    """Return the text of the system turn: instructions, then the fields of the inputs and of the reply in words.

    Where each field of the reply has a list of values, these may be sentences after the instructions.

    Args:
        instructions: The task.
        input_schema: Schema of the inputs; fields without a description are not listed.
        output_schema: Schema of the reply; None for plain text.
        without: Fields of the inputs to leave out.
        examples: The examples that follow as turns; values that their answers show are left out.
        sentences: Whether lists of values may be sentences.

    Example:
        >>> print(system_text("Name the mood.", {}, {"properties": {"mood": {"enum": ["good", "bad"]}}}))
        Name the mood. The moods are: good, bad.
        >>> print(system_text("Answer.", {}, {"properties": {"answer": {"type": "string"}}}))
        Answer.
        <BLANKLINE>
        The fields of the reply:
        - answer (string)

    Source: DSPy's ChatAdapter; differs: a field of the inputs is listed only if it has a description.
    """
    task, reply = instructions, ""
    if output_schema is not None and words.fields_of(words.resolve_ref(output_schema, output_schema)):
        values = guard_text(words.value_sentences(output_schema)) if sentences and not examples else ""
        if values:
            task = f"{task} {values}" if _ONE_LINE.fullmatch(task) else f"{task}\n\n{values}".lstrip()
            lines = words.describe_fields(output_schema)
        else:
            lines = words.output_fields(output_schema, [example["outputs"] for example in examples])
        reply = _section(_REPLY, lines)
    elif output_schema is not None:
        reply = words.schema_text(output_schema)
    return "\n\n".join(filter(None, (task, _section(_INPUTS, words.describe_fields(input_schema, without)), reply)))


def instructions_in(system: str) -> str:
    """Return the instructions in the text of a system turn: all of it before what describes the fields."""
    return _VALUES.sub("", _SECTION.split(system, maxsplit=1)[0])


def _section(heading: str, lines: str) -> str:
    """Return lines below their heading; "" without lines."""
    return f"{heading}\n{guard_text(lines)}" if lines else ""


def example_turns(examples: Sequence[Json], input_schema: Object, output_schema: Object | None) -> list[Message]:
    """Return each example as a user turn and the answer to it.

    Raises:
        DataError: An input is a sound given by its address, which no message can hold.
    """
    written: list[Message] = []
    for example in examples:
        answer = answer_of(example, output_schema)
        answer = words.without_media(answer, [output_schema], output_schema or {}, [], "examples/outputs")
        text = answer if output_schema is None and isinstance(answer, str) else words.json_text(answer)
        user = input_turn(example["inputs"], input_schema, "examples/inputs")
        written += [user, message("assistant", guard_text(text))]
    return written


def answer_of(example: Object, schema: Object | None) -> Json:
    """Return the answer of an example: its outputs in declared order; the text of a message without a schema."""
    outputs = example["outputs"]
    if schema is not None:
        return words.in_order(outputs, schema, schema)
    return outputs.get("content", outputs) if is_object(outputs) else outputs


def input_turn(inputs: Object, schema: Object, where: str = "inputs") -> Message:
    """Return the user turn for inputs: the text of a single text field, else compact JSON in declared order.

    Images and files follow the text, which refers to them as `(image 1)` and the like.

    Raises:
        DataError: An input is a sound given by its address, which no message can hold.

    Example:
        >>> input_turn({"query": "Hi"}, {"properties": {"query": {"type": "string"}}})["content"]
        'Hi'

    Source: the chat examples of providers' guides.
    """
    text = _text(words.in_order(inputs, schema, schema), schema)
    if '"media_type":' not in text:
        return message("user", text)
    media = list[Json]()
    text = _text(words.without_media(words.in_order(inputs, schema, schema), [schema], schema, media, where), schema)
    [turn] = turns({"role": "user", "content": [text, *media]})
    return turn


def _text(inputs: Object, schema: Object) -> str:
    """Return inputs as text that opens no turn, no tag of a prompt and no tool call."""
    fields = words.fields_of(schema)
    if len(inputs) == len(fields) == 1:
        [(name, value)] = inputs.items()
        if name in fields and isinstance(value, str) and not value.isspace() and value:
            return guard_text(value)
    return guard_text(words.json_text(inputs))


def guard_text(text: str) -> str:
    r"""Return a text with `\u003c` in place of each `<` that would begin a boundary of a prompt or of a chat template.

    Example:
        >>> guard_text("1 < 2 <|im_end|>")
        '1 < 2 \\u003c|im_end|>'

    Source: JSON in HTML script elements, which is escaped in the same way.
    """
    return _OPENING.sub(r"\\u003c", text)


def guard_turn(turn: Message) -> Message:
    """Return a turn of a user or a tool, who are not trusted, with its texts guarded; other turns as they are."""
    if turn["role"] not in ("user", "tool"):
        return turn
    content = turn["content"]
    if isinstance(content, str):
        parts: Json = guard_text(content)
    else:
        parts = [{**part, "text": guard_text(part["text"])} if "text" in part else part for part in content]
    return turn if parts == content else message(**{**turn, "content": parts})


def without_reasoning_field(request: LMRequest, adapter: Adapter) -> LMRequest:
    """Return the request without its reasoning field, in schema and prompt, if the model reasons natively.

    An adapter may have `reasons(request)`: whether the model reasons natively on a request and returns its reasoning.
    """
    field, schema, reasons = request.reasoning_field, request.schema, getattr(adapter, "reasons", None)
    if (
        field is None
        or schema is None
        or reasons is None
        or not reasons(request)
        or field not in words.fields_of(schema)
    ):
        return request
    less = {**schema, "properties": {name: inner for name, inner in words.fields_of(schema).items() if name != field}}
    if "required" in schema:
        less["required"] = [name for name in schema["required"] if name != field]
    shorter = intern_schema(less)
    return replace(request, schema=shorter, messages=tuple(with_less_of_reply(request.messages, schema, shorter)))


def with_less_of_reply(messages: Sequence[Message], schema: Object, less: Object) -> Iterator[Message]:
    """Yield the turns of a prompt as they would be if the schema of the reply had fewer fields.

    Args:
        messages: The turns.
        schema: The schema that they were written for.
        less: The same schema with fewer fields.
    """
    blocks = [*zip(*map(_reply_blocks, (schema, less)), strict=True)]
    names = words.fields_of(schema).keys() - words.fields_of(less).keys()
    for turn in messages:
        content = turn["content"]
        if not isinstance(content, str) or turn.get("tool_calls"):
            yield turn
        elif turn["role"] == "assistant":
            yield with_text(turn, _with_fewer_fields(content, names))
        else:
            for old, new in blocks:
                content = content.replace(old, new)
            if turn["role"] == "system":  # a user may write such lines
                content = _without_lines(content, names)
            yield turn if content == turn["content"] else with_text(turn, content)


def _reply_blocks(schema: Object) -> tuple[str, str]:
    """Return the schema and the fields of a reply as templates show them."""
    fields = words.output_fields(schema).replace("<", _LESS)
    return words.block("output_schema", words.value_text(schema)), words.block("output_fields", fields)


def _without_lines(system: str, names: AbstractSet[str]) -> str:
    """Return the text of a system turn without the lines of some fields of the reply."""
    start, heading, lines = system.rpartition(f"{_REPLY}\n")
    if not heading:
        return system
    openings = tuple(f"- {name}{sign}" for name in names for sign in (" (", ": ", "\n"))
    left = "".join(line for line in lines.splitlines(keepends=True) if not f"{line}\n".startswith(openings))
    return f"{start}{heading}{left}".rstrip() if left else start.rstrip()


def _with_fewer_fields(answer: str, without: AbstractSet[str]) -> str:
    """Return the text of an example's answer without some fields; any other text unchanged."""
    try:
        json = parse_json(answer)
    except DataError:
        return answer
    if not is_object(json) or json.keys().isdisjoint(without):
        return answer
    return guard_text(words.json_text({name: value for name, value in json.items() if name not in without}))


# -- slots -------------------------------------------------------------------------------------------------------------


class Slots(dict[str, str]):
    """The six slots of one prompt as texts, tags included; an empty slot is `""`.

    The argument of a prompt function: `slots["inputs"]` or `slots.inputs` is the text, `slots.json["inputs"]` the JSON
    behind it (for `input_fields` the text again), `slots.media` the parts that `(image 1)` and the like refer to.

    Args:
        texts: A text for each slot.
        json: The JSON behind each slot.
        media: Images, sounds and files of the examples and inputs, as parts of a message.

    Raises:
        KeyError: An unknown slot is read.

    Example:
        >>> slots = Slots({"instructions": "<instructions>Be brief.</instructions>"}, {"instructions": "Be brief."})
        >>> slots.instructions, slots["examples"], slots.json["instructions"]
        ('<instructions>Be brief.</instructions>', '', 'Be brief.')

    Source: DSPy adapters, which render a signature; differs: no value can close the tags of a text.
    """

    def __init__(self, texts: Mapping[str, str], json: Object, media: Sequence[Json] = ()) -> None:
        super().__init__({name: texts.get(name, "") for name in SLOTS})
        self.json: Object = {name: json.get(name) for name in SLOTS}
        self.media = list(media)

    def __getattr__(self, name: str) -> str:
        if name in SLOTS:
            return self[name]
        raise AttributeError(f"A prompt has the slots {', '.join(SLOTS)}, not {name!r}.")


PromptFunction: TypeAlias = Callable[[Slots], object]


def jinja_prompt(source: str) -> PromptFunction:
    """Return a prompt function that renders a Jinja template as one user turn, in an immutable sandbox.

    Images, sounds and files of the inputs and examples follow the text.
    The template reads the six slots by name, as texts that no value can close, and the JSON behind them as
    `json.inputs` and so on, where a field comes before a method of its name, such as `items`. A program with such a
    prompt cannot be saved: loading a file never runs a template.

    Args:
        source: The template.

    Raises:
        ConfigError: Jinja is not installed, or the template is invalid. When called: the template reads an undefined
            name, or does something that the sandbox forbids.

    Example:
        >>> import synmod as sm
        >>> prompt = sm.jinja_prompt("{% if examples %}{{ examples }}{% endif %}Be brief: {{ json.inputs.question }}")
        >>> ask = sm.Generator(prompt=prompt)
        >>> ask.render(sm.JsonDataModel({"question": "Who?"}, schema={"type": "object"}))[0].content
        'Be brief: Who?'

    Source: Jinja's sandbox; haystack's prompt builders.
    """
    try:
        from jinja2 import StrictUndefined, TemplateError, Undefined
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise ConfigError("jinja_prompt needs Jinja: pip install 'synmod-lm[jinja]'.") from None

    class Environment(ImmutableSandboxedEnvironment):
        """A sandbox in which a field of JSON comes before a method of its name, such as `items`."""

        def getattr(self, obj: Any, attribute: str) -> Any:
            """Return the field of an object; else an attribute."""
            return obj[attribute] if is_object(obj) and attribute in obj else super().getattr(obj, attribute)

        def getitem(self, obj: Any, argument: Any) -> Any:
            """Return the field of an object, never a method."""
            if is_object(obj) and argument not in obj:
                return self.undefined(obj=obj, name=argument)
            return super().getitem(obj, argument)

    def refuse_methods(value: Any) -> Any:
        if callable(value) and not isinstance(value, Undefined):
            raise ConfigError(f"jinja_prompt: {getattr(value, '__name__', value)!r} is a method, and not a field here.")
        return value

    def render(slots: Slots) -> Json:
        try:
            text = template.render(slots, json=slots.json)
        except (TemplateError, TypeError) as error:
            raise ConfigError(f"jinja_prompt: {error}") from None
        return {"role": "user", "content": [text, *slots.media] if slots.media else text}

    try:
        template = Environment(undefined=StrictUndefined, finalize=refuse_methods).from_string(source)
    except TemplateError as error:
        raise ConfigError(f"jinja_prompt: {error}") from None
    return render


class _Constant(NamedTuple):
    """The part of a prompt that depends on instructions, examples and input schema, but not on the inputs."""

    start: list[Message]
    conversation: bool
    kept_alive: tuple[object, ...]  # the cache key holds their ids
    slots: Mapping[str, str] = {}
    json: Mapping[str, Json] = {}
    media: Sequence[Json] = ()
    of_user: int = 0
    """How many characters of the user turn come before the inputs."""


class Layout:
    """Renders the prompts of one generator.

    Args:
        output_schema: Schema of the reply, None for plain text.
        template: Texts of the turns, `{"system": ..., "user": ...}`, with the slots in braces. Other braces are plain
            text. Slots inside values are not replaced.
        prompt: A function of the slots that returns the messages, instead of a template.
        system_from_inputs: Whether a conversation among the inputs may hold system turns.
        layout: "turns", which writes examples as turns and their answers, or "tags", which writes each slot between
            its own tags: a template of all slots.
        sentences: Whether the values of a reply of listed values are told in sentences, where the layout is "turns".

    Raises:
        ArgumentError: Two of `template`, `prompt` and `layout="tags"`.
        ConfigError: `layout` is unknown. `prompt` cannot be called. The template is not a mapping, has another key, a
            text that is not a str, a near miss of a slot (`{input}`), `{inputs}` in the system turn, or none in the
            user turn.

    Example:
        >>> layout = Layout(None)
        >>> layout.render("Be brief.", [], {"query": "Hi"}, {"properties": {"query": {"type": "string"}}})[1]
        {'role': 'user', 'content': 'Hi'}

    Source: DSPy's ChatAdapter; differs: boundaries that no value can close, and a cache of the constant part.
    """

    def __init__(
        self,
        output_schema: Object | None,
        template: Mapping[str, str] | None = None,
        prompt: PromptFunction | None = None,
        *,
        system_from_inputs: bool = False,
        layout: str = "turns",
        sentences: bool = True,
    ) -> None:
        if layout not in LAYOUTS:
            raise ConfigError(
                f"layout is {layout!r:.100}; it must be 'turns' or 'tags'.{did_you_mean(layout, LAYOUTS)}"
            )
        chosen = [template is not None, prompt is not None, layout == "tags"]
        if sum(chosen) > 1:
            raise ArgumentError("template, prompt and layout='tags' each lay out the prompt; pass one of them.")
        if prompt is not None and not callable(prompt):
            text = " A text for the model goes into instructions=..." if isinstance(prompt, str) else ""
            raise ConfigError(f"prompt is a {type(prompt).__name__}; it must be a function of the slots.{text}")
        self._schema = output_schema
        self._template = None if template is None else _check_template(template)
        self._has_slots = any(chosen)
        self._prompt = prompt
        self._system_from_inputs, self._sentences = system_from_inputs, sentences
        self._constants: dict[tuple[str, int, int], _Constant] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the cache: its keys hold ids of this process."""
        return {**vars(self), "_constants": {}}

    def check_examples(self, where: str = "") -> None:
        """Check that the model would see examples.

        Raises:
            ConfigError: The template lacks `{examples}`; begins with `where`.
        """
        if self._template is not None and not any("{examples}" in text for text in self._template.values()):
            unseen = "no turn has {examples}, so the model would never see them; put it into the user turn"
            raise ConfigError(f"{where and f'{where}: '}template: {unseen}, before {{inputs}}, or train no examples.")

    def render(
        self, instructions: str, examples: Sequence[Json], inputs: Object, input_schema: Object
    ) -> list[Message]:
        """Render one prompt.

        Args:
            instructions: The task of the model.
            examples: Objects `{"inputs": ..., "outputs": ...}`; frozen, as a Variable holds them.
            inputs: JSON of the inputs.
            input_schema: Schema of the inputs.

        Returns:
            Messages in the shape of chat completions, the system turn first; turns without text are left out. What
            the inputs do not change comes first, and is the same in each prompt. A conversation among the inputs comes
            last, as turns of its own. A text refers to an image as `(image 1)`; its part follows the text of the turn.

        Raises:
            ConfigError: There are examples, and the template lacks `{examples}`.
            DataError: The inputs are a conversation with a system turn, and `system_from_inputs` is False.
            DataError: The prompt function returned something other than messages.
            DataError: An input is a sound given by its address, which no message can hold.
        """
        constant = self._constant_for(instructions, examples, input_schema)
        conversation, values = (), inputs
        if constant.conversation:
            conversation = self._conversation(inputs[_MESSAGES])
            if self._prompt is None:
                values = {name: value for name, value in inputs.items() if name != _MESSAGES}
        if not self._has_slots:
            last = [] if constant.conversation and not values else [input_turn(values, input_schema)]
            return [*constant.start, *last, *conversation]
        slots, media = self._slots(constant, values, input_schema)
        if self._prompt is not None:
            try:
                return list(turns(self._prompt(Slots(slots, {**constant.json, "inputs": inputs}, media))))
            except DataError as error:
                raise DataError(f"The prompt function, which is a plain one, must return messages: {error}") from None
        user = self._turn("user", slots)
        if media:
            return [*constant.start, *turns({"role": "user", "content": [user, *media]}), *conversation]
        last = _turn_of("user", user)
        if constant.of_user:
            last = [set_constant(turn, constant.of_user) for turn in last]
        return [*constant.start, *last, *conversation]

    def turns_of(
        self, instructions: str, examples: Sequence[Json], inputs: Object, input_schema: Object
    ) -> tuple[tuple[Message, ...], bool]:
        """Return the turns of the inputs, and whether the prompt ends with them, each as a turn.

        Those of a conversation among the inputs, as they were given; else one turn of the user. The arguments are those
        of `render`.
        """
        if self._constant_for(instructions, examples, input_schema).conversation:
            messages = inputs[_MESSAGES]
            return turns(messages) if messages else (), self._prompt is None
        return (input_turn(inputs, input_schema),), False

    def _constant_for(self, instructions: str, examples: Sequence[Json], input_schema: Object) -> "_Constant":
        """Return the part of a prompt that does not depend on the inputs; rendered once."""
        key = (instructions, id(examples), id(input_schema))
        constant = self._constants.get(key)
        if constant is None:
            if len(self._constants) >= _MOST_CONSTANTS:
                self._constants = {}
            constant = self._constants[key] = self._constant(instructions, examples, input_schema)
        return constant

    def _constant(self, instructions: str, examples: Sequence[Json], input_schema: Object) -> _Constant:
        """Render what does not depend on the inputs."""
        if examples:
            self.check_examples()
        has_messages = _MESSAGES in words.resolve_ref(input_schema, input_schema).get("required", ())
        conversation = has_messages and contains(SymbolicDataModel(input_schema), ChatMessages)
        without, schema, kept_alive = (_MESSAGES,) if conversation else (), self._schema, (examples, input_schema)
        if not self._has_slots:
            system = system_text(instructions, input_schema, schema, without, examples, sentences=self._sentences)
            pairs = example_turns(examples, input_schema, schema)
            start = [*_turn_of("system", system), *pairs]
            if pairs:
                set_constant(start[-1], len(str(start[-1]["content"])))
            return _Constant(start, conversation, kept_alive)
        fields, lines, media = words.input_fields(input_schema, without), [""], list[Json]()
        for example in examples:
            inputs, outputs = words.in_order(example["inputs"], input_schema, input_schema), answer_of(example, schema)
            pair = {
                "inputs": words.without_media(inputs, [input_schema], input_schema, media, "examples/inputs"),
                "outputs": words.without_media(outputs, [schema], schema or {}, media, "examples/outputs"),
            }
            lines.append(words.value_text(pair))
        replies = "" if schema is None else words.output_fields(schema)
        slots = {
            "instructions": words.block("instructions", _ENDS_INSTRUCTIONS.sub(lambda _: _LESS, instructions)),
            "input_fields": words.block("input_fields", fields.replace("<", _LESS)),  # names and descriptions of others
            "output_fields": words.block("output_fields", replies.replace("<", _LESS)),
            "output_schema": "" if schema is None else words.schema_text(schema),
            "examples": words.block("examples", "\n".join([*lines, ""]) if examples else ""),
        }
        json = {
            "instructions": instructions,
            "input_fields": fields,
            "output_fields": replies,
            "output_schema": schema,
            "examples": examples,
        }
        start = [*_turn_of("system", self._turn("system", slots))]
        before = "" if self._prompt is not None else self._before_inputs(slots)
        return _Constant(start, conversation, kept_alive, slots, json, media, len(before))

    def _before_inputs(self, slots: Mapping[str, str]) -> str:
        """Return the text of the user turn that comes before the inputs."""
        if self._template is None:
            return f"{slots['examples']}\n" if slots["examples"] else ""
        text = _SLOT.sub(lambda match: slots[match[1]], self._template.get("user", "").partition("{inputs}")[0])
        return "" if text.isspace() else text

    def _slots(self, constant: _Constant, values: Object, schema: Object) -> tuple[Mapping[str, str], Sequence[Json]]:
        """Return the texts of the slots, and the media of examples and inputs."""
        if not values and constant.conversation:
            return {**constant.slots, "inputs": ""}, constant.media
        media = [*constant.media]
        ordered = words.in_order(values, schema, schema)
        text = words.block("inputs", words.value_text(ordered))
        if '"media_type":' in text:
            text = words.block(
                "inputs", words.value_text(words.without_media(ordered, [schema], schema, media, "inputs"))
            )
        return {**constant.slots, "inputs": text}, media

    def _turn(self, role: str, slots: Mapping[str, str]) -> str:
        """Return the text of one turn, by the template or with all slots in their tags."""
        if self._prompt is not None:
            return ""
        if self._template is None:
            return "\n".join(filter(None, [slots[name] for name in _TAGS[role]]))
        return _SLOT.sub(lambda match: slots[match[1]], self._template.get(role, ""))

    def _conversation(self, messages: Sequence[Object]) -> tuple[Message, ...]:
        """Return the turns of a conversation among the inputs; refuse system turns, unless they are allowed."""
        for index, turn in enumerate(messages):
            if not self._system_from_inputs and turn.get("role") in ("system", "developer"):
                what = f"inputs, messages[{index}]: a {turn['role']} turn among the inputs would become instructions"
                raise DataError(f"{what}; remove it, or allow it with Generator(..., system_from_inputs=True).")
        return tuple(map(guard_turn, turns(messages))) if messages else ()


def _check_template(template: Mapping[str, str]) -> Mapping[str, str]:
    """Check a template and return a copy of it."""
    if not isinstance(template, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (a file may hold anything)
        raise ConfigError(f"template is a {type(template).__name__}; it must be a mapping such as {_EXAMPLE}.")
    for role, text in template.items():
        if role not in _TAGS:
            hint = did_you_mean(role, _TAGS)
            raise ConfigError(f"template: {role!r} is not a turn of a prompt; those are 'system' and 'user'.{hint}")
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (a file may hold anything)
            raise ConfigError(f"template: the {role} turn is a {type(text).__name__}; it must be a str.")
        for match in _BRACES.finditer(text):
            near = "" if _SLOT.fullmatch(match[0]) else did_you_mean(match[1].strip(), SLOTS)
            if near:
                slots = ", ".join(f"{{{slot}}}" for slot in SLOTS)
                what = f"{match[0]} in the {role} turn is not a slot; the slots are {slots}"
                raise ConfigError(f"template: {what}.{near}")
    if "{inputs}" in template.get("system", ""):
        raise ConfigError("template: data would become instructions: put {inputs} into the user turn.")
    if "{inputs}" not in template.get("user", ""):
        raise ConfigError("template: the user turn lacks {inputs}, so the model would never see what it is asked.")
    return dict(template)


def _turn_of(role: str, text: str) -> list[Message]:
    """Return one turn; none for a blank text."""
    return [message(role, text)] if text and not text.isspace() else []


def repair_turns(
    text: str, faults: Iterable[tuple[str, str]], request: LMRequest, calls_in_text: bool
) -> list[Message]:
    """Return the turns that quote an invalid reply, list its faults, and repeat what a valid one is."""
    valid = "text" if request.schema is None else "one JSON value that satisfies the schema"
    if fields := ", ".join(words.fields_of(words.resolve_ref(request.schema, request.schema or {}))):
        valid = f"one JSON object with the fields {fields}"
    if calls_in_text:
        valid = "one call of a function, as one JSON object with the fields name, arguments"
    elif request.tools:
        valid += ", or calls of the tools by their names, with arguments that satisfy their parameters"
    lines = [
        "Your last reply is not valid:",
        *(f"- {pointer or 'the whole reply'}: {problem}" for pointer, problem in faults),
        f"Write the whole reply again without these faults. A valid reply is {valid}, and nothing else.",
    ]
    quoted = "\n".join(lines).replace("<", "\\u003c")  # faults quote names, constants and the reply
    asks = f"{REPAIR_OPENING}\n{quoted}\n</repair>"
    # Some providers refuse a turn without content, so an empty reply is not quoted.
    return [message("assistant", text), message("user", asks)] if text.strip() else [message("user", asks)]

"""The language models of a document: their records both ways, and the texts of a file that become models.

A file must not steer the keys of its reader. A text of it becomes a model only if it is the name of one, or
where the reader passes a model in place of it, however the file holds the text: in a record, as an argument
or attribute, or as a value that a constructor makes a model of.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, cast

from synmod import errors, leaves, lm, registry

from .document import Resolver, Where, check, check_class, check_record, format_error, load_error, short_text

_LISTED: Final = 100
_SETTINGS: Final = ("attempts", "timeout_s", "repairs", "structured")
_OF_EMBEDDINGS: Final = ("attempts", "timeout_s", "batch_size", "dimensions")
_SUPPLIED: Final = ("api_base", "headers", "extra_body", "adapter")
"""The arguments of a language model that a file names without their values."""

_SLOTS: Final = {"language_model": lm.LanguageModel, "embedding_model": lm.EmbeddingModel}
"""The arguments and attributes that hold a model by their very name, and its class."""

_LIMITS: Final = ("concurrency", "rpm", "tpm")

_ANY_MODEL: Final = "unbound/model"
"""The model string of a language model whose name alone is in the file."""


# -- records -----------------------------------------------------------------------------------------------------------


def lm_record(
    model: lm.SharedModel, term: Callable[[Any], leaves.Json], reference: Callable[[Any], leaves.Json]
) -> dict[str, leaves.Json]:
    """Return the record of a model: never a key, an endpoint or a header.

    A model whose class is not registered (a test double) has a record without settings; an unbound model keeps the
    record of its file.

    Args:
        model: The model.
        term: Writes an argument of a registered subclass.
        reference: Returns the term of a fallback.
    """
    unbound = isinstance(model.adapter, lm.NoConnection)
    record: dict[str, leaves.Json] = dict(model.adapter.record) if unbound else {"type": registry.id_of(type(model))}
    if record["type"] is None:
        return {"type": None}
    has_config = type(model) is not lm.LanguageModel and hasattr(type(model), "get_config")
    if has_config and not unbound:
        record["config"] = cast("Any", model).get_config()
    if "config" in record:
        record["config"] = {key: term(argument) for key, argument in record["config"].items()}
    if not unbound:
        settings = model.settings
        record |= {
            "model": settings.model,
            **{name: getattr(settings, name) for name in _SETTINGS},
            "defaults": {name: settings.defaults[name] for name in lm.SAMPLING if name in settings.defaults},
            "supply": list(settings.supply),
            **({"limit": settings.limit.numbers()} if settings.limit is not None else {}),
        }
    fallback = [reference(argument)["language_model"] for argument in model.fallback]
    return record | ({"fallback": fallback} if fallback else {})


def check_lm(
    name: str, record: leaves.Json, resolver: Resolver, read: Callable[[leaves.Json, Where], Any], *, is_supplied: bool
) -> None:
    """Check the record of a language model.

    Args:
        name: The saved name.
        record: The record.
        is_supplied: Whether the caller's model takes its place, so that its text does not become one.
        resolver: Finds its class.
        read: Reads a term.

    Raises:
        FormatError: A field is missing or unknown, or has a value that must not come from a file, such as a model
            string that is not the name of a model.
        LoadError: Its type is not a class of language models.
    """
    where = ("language_models", name)
    if not name:
        raise format_error(where, "a language model needs a name.")
    kind = check(record, where, dict).get("type", "")
    if kind is None:
        check_record(record, where, ("type",))
        return
    check_record(record, where, ("type", "model", *_SETTINGS, "defaults", "supply"), ("config", "limit", "fallback"))
    for field, expected in lm_faults(record):
        raise format_error((*where, field), f"{short_text(record[field])} is not allowed here, wanted {expected}.")
    cls = resolver.find_or_none(kind, (*where, "type"))
    if cls is not None:
        check_class(cls, (*where, "type"), lambda cls: issubclass(cls, lm.SharedModel), "a class of language models")
        is_named = not (is_supplied or record["supply"] or "config" in record)
        fault = model_fault(record["model"], name) if is_named else None
        if fault is not None:
            raise format_error((*where, "model"), fault)
    if cls is lm.LanguageModel and "config" in record:
        raise format_error((*where, "config"), "only a subclass has a config.")
    for argument, term in check(record.get("config", {}), (*where, "config"), dict).items():
        read(term, (*where, "config", argument))


def check_fallbacks(records: Mapping[str, dict[str, leaves.Json]]) -> None:
    """Check that fallbacks are models of the file, and form no cycle.

    Raises:
        FormatError: A fallback is not in the file, or there is a cycle.
    """
    names: dict[str, list[str]] = {name: record.get("fallback", []) for name, record in records.items()}
    for name, fallback in names.items():
        for place, target in enumerate(fallback):
            if target not in records or lm.EmbeddingModel in (_kind(records[name]), _kind(records[target])):
                where = ("language_models", name, "fallback", place)
                raise format_error(where, f"{short_text(target)} is not among the language_models of this file.")
    if cycle := leaves.find_cycle(names):
        where = ("language_models", cycle[0], "fallback")
        raise format_error(where, f"the fallbacks form a cycle: {' -> '.join(cycle[:_LISTED])}.")


def lm_faults(record: dict[str, leaves.Json]) -> list[tuple[str, str]]:
    """Return the fields of a record that have a bad value, and what is wanted; the class checks the rest."""
    model, defaults, supply = record["model"], record["defaults"], record["supply"]
    limit, fallback = record.get("limit", {"rpm": 1}), record.get("fallback", [""])
    is_limit = leaves.is_object(limit) and bool(limit) and {*limit} <= {*_LIMITS}
    is_limit = is_limit and all(type(number) is int and number > 0 for number in limit.values())
    is_named = leaves.is_array(fallback) and bool(fallback) and all(type(target) is str for target in fallback)
    is_plain = isinstance(model, str) and lm.MODEL_STRING.fullmatch(model)
    is_sampling = leaves.is_object(defaults) and {*defaults} <= {*lm.SAMPLING}
    is_ordered = isinstance(supply, list) and [name for name in _SUPPLIED if name in supply] == supply
    numbers = [(name, type(record[name]) in (int, float, type(None)), "a number or null") for name in _SETTINGS[:3]]
    rules = [
        ("model", is_plain, "'provider/name'"),
        *numbers,
        ("structured", type(record["structured"]) in (str, type(None)), "a string or null"),
        ("defaults", is_sampling, f"some of {', '.join(lm.SAMPLING)} as an object"),
        ("supply", is_ordered, f"a list of names among {', '.join(_SUPPLIED)}, in this order"),
        ("limit", is_limit, f"whole numbers above 0 under {', '.join(_LIMITS)}"),
        ("fallback", is_named, "a list of saved names"),
    ]
    return [(field, expected) for field, holds, expected in rules if not holds]


# -- texts of a file that become models --------------------------------------------------------------------------------

# litellm takes more than a model from such a text: a host, a region, a project, an endpoint, another provider. A file
# that could name one of these would send its reader's key there. So each provider has a pattern here that holds none of
# them, and a name that no pattern fits loads only where the reader passes a model for it.

_NAME: Final = r"[A-Za-z0-9][\w-]*(\.\w[\w-]*)*"
_OWNER: Final = (
    r"(?!(agents?|arn|azure(_ai)?|bedrock|custom|deployments?|endpoints?|models|preset|projects|responses|sagemaker"
    r"(_chat)?|tunedModels|vertex_ai(_beta)?|[a-z]{2}(-[a-z]+)+-?\d+)/)[A-Za-z0-9][\w-]*/"
)
_TAG: Final = r"(:(?!\d+$)\w[\w.-]*)?"  # not a port
_FLAT: Final = _NAME
_OWNED: Final = f"({_OWNER})?{_NAME}"
_TUNED: Final = rf"ft:{_NAME}(:[\w-]*){{1,4}}"
_SERVED: Final = rf"(({_OWNER})?{_NAME}{_TAG}|@(cf|hf)/{_OWNER}{_NAME}|{_TUNED})"
"""The names of an OpenAI-compatible server: of OpenAI, or of one that the reader's environment names."""

_PATTERNS: Final = {
    _FLAT: (
        "ai21 anthropic azure azure_ai cerebras codestral cohere cohere_chat dashscope databricks deepseek embedded "
        "gemini gradient_ai inception jina_ai lambda_ai litellm_proxy meta_llama minimax moonshot ovhcloud sambanova "
        "snowflake v0 volcengine voyage xai zai"
    ),
    _OWNED: (
        "deepinfra featherless_ai friendliai github groq hyperbolic nebius novita nscale nvidia_nim perplexity "
        "scaleway together_ai vercel_ai_gateway wandb"
    ),
    _OWNER + _NAME: "baseten",  # a name without an owner becomes part of the host
    _SERVED: "hosted_vllm llamafile lm_studio openai vllm",
    f"({_OWNER})?{_NAME}{_TAG}": "openrouter",
    rf"((hf|huggingface)\.co/)?({_OWNER})?{_NAME}{_TAG}": "ollama ollama_chat",
    (
        r"((us|eu|apac|global|jp|au|ca|sa|us-gov)\.)?(ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|"
        r"mistral|moonshot|moonshotai|nvidia|openai|qwen|stability|twelvelabs|writer|xai|zai)\."
        rf"{_NAME}(:\d{{1,2}}(:\d{{1,4}}k)?)?"
    ): "bedrock bedrock_converse",
    rf"@(cf|hf)/{_OWNER}{_NAME}": "cloudflare",
    rf"(accounts/[\w-]+/models/|{_OWNER})?{_NAME}": "fireworks_ai",
    rf"({_OWNER})?{_OWNER}{_NAME}{_TAG}": "huggingface",
    rf"({_NAME}|{_TUNED})": "mistral",
    rf"(cohere|google|meta|openai|xai)\.{_NAME}": "oci",
    rf"{_OWNER}{_NAME}(:[0-9a-f]{{64}})?": "replicate",
    rf"({_OWNER}(?=.*-maas$)|xai/)?[a-z]{_NAME}(@[\w-]+)?": "vertex_ai",  # digits alone are an endpoint
    rf"(google|ibm|ibm-mistralai|meta-llama|mistralai|openai|sdaia)/{_NAME}": "watsonx",
}
_BY_PROVIDER: Final = {provider: pattern for pattern, providers in _PATTERNS.items() for provider in providers.split()}


def is_model_name(text: str) -> bool:
    """Whether a text is `provider/name` of a known provider, with a name as the provider spells those of its models.

    Example:
        >>> is_model_name("openrouter/meta-llama/llama-3.3-70b-instruct:free")
        True
        >>> is_model_name("huggingface/https://example.org/v1")
        False
    """
    provider, _, name = text.partition("/")
    pattern = _BY_PROVIDER.get(provider)
    return pattern is not None and re.fullmatch(pattern, name, re.ASCII) is not None


def model_fault(text: str, name: str) -> str | None:
    """Return why a text of a file may not become a model; None if it may."""
    if is_model_name(text):
        return None
    key, model = short_text(name), short_text(text)
    return (
        f"{model} is not the name of a model as its provider spells them, or not of a provider that is known here. It "
        "may lead to another host, region or endpoint, and a file must not choose where keys are sent. If you trust "
        f"it, write load(..., language_models={{{key}: sm.LanguageModel({model})}})."
    )


def _parts(value: leaves.Json) -> Iterable[leaves.Json]:
    """Return the values inside an object or array."""
    return value.values() if leaves.is_object(value) else value if leaves.is_array(value) else ()


class SuppliedModels:
    """The caller's models for the names and texts of one file: the `lm.TextRules` of its load.

    Args:
        given: A mapping from saved name, or text of the file, to a live model or model string; or one language model or
            string for all of them (embedding models go by name only).
        records: The records of the file by saved name.
        nodes: The records of the nodes, which hold the texts.

    Attributes:
        by_name: The models by saved name.

    Raises:
        LoadError: A name is not in the file ('Did you mean').
        ArgumentError: `given` is none of these.
        ConfigError: A value is neither a model of the kind that was saved nor a model string.
    """

    def __init__(self, models: Any, records: Mapping[str, leaves.Json], nodes: leaves.Json) -> None:
        self._records, self._nodes = records, nodes
        self._for_all: lm.LanguageModel | None = None
        self._caller_models: Mapping[str, Any] = {} if models is None else models
        if isinstance(models, str | lm.LanguageModel):
            self._caller_models, self._for_all = {}, lm.model_of_kind(lm.LanguageModel, models, "language_models")
        elif not hasattr(self._caller_models, "items"):
            expected = "a mapping from saved name to a LanguageModel or a model string, or one of these for all"
            raise errors.ArgumentError(leaves.must_be("language_models", expected, models))
        self.by_name = self._by_name()

    def _by_name(self) -> dict[str, lm.SharedModel]:
        """Return the models by saved name; `m` serves `m#2` too."""
        if self._for_all is not None:
            records = self._records.items()
            return {name: self._for_all for name, record in records if _kind(record) is lm.LanguageModel}
        bases = {name: name.partition("#")[0] for name in self._records}
        for name in self._caller_models:
            if name not in bases and name not in bases.values() and name not in self._texts:
                saved_names = list(bases)[:_LISTED]
                text = f"no language model of this file is named {name!r}.{leaves.did_you_mean(name, saved_names)}"
                names = ", ".join(map(short_text, saved_names)) or "none"
                raise load_error(("language_models",), f"{text} The file has {names}.")
        keys = {name: name if name in self._caller_models else base for name, base in bases.items()}
        return {
            name: self._model_for(_kind(self._records[name]), key)
            for name, key in keys.items()
            if key in self._caller_models
        }

    def _model_for(self, kind: type[Any], key: str) -> lm.SharedModel:
        """Return the caller's model of this kind."""
        with lm.text_rules(None):  # the caller's own strings may name anything
            return lm.model_of_kind(kind, self._caller_models[key], f"language_models[{key!r}]")

    @cached_property
    def _texts(self) -> set[str]:
        """The strings of the file that code may make a model of: arguments and attributes."""
        texts: set[str] = set()
        terms: list[Any] = [self._nodes, self._records]
        values: list[Any] = []
        while terms:
            part = terms.pop()
            if leaves.is_object(part):
                values += [part[kind] for kind in ("json", "set", "frozenset") if kind in part]
            terms += _parts(part)
        while values:
            part = values.pop()
            texts |= {part} if isinstance(part, str) else set()
            values += _parts(part)
        return texts

    def stand_in(self, kind: type[Any], text: str) -> lm.SharedModel | None:
        """Return the caller's model for a text of the file that is to become one; else None."""
        if text not in self._caller_models and not isinstance(self._for_all, kind):
            return None
        return (self._for_all or self._model_for(kind, text)) if text in self._texts else None

    def check(self, text: str) -> None:
        """Check a text that is about to become a model.

        Raises:
            ConfigError: The file holds the text or the end of it, and the caller passes no model for it.
        """
        fault = None if text in self._caller_models or self._for_all else model_fault(text, text)
        steps = text.split("/") if fault else ()
        if fault and any("/".join(steps[place:]) in self._texts for place in range(len(steps))):
            raise errors.ConfigError(fault)

    def settle(self, config: dict[str, leaves.Json], where: Where) -> dict[str, lm.SharedModel]:
        """Check the plain texts among arguments or attributes that name a model by their own name.

        A block may make a model of such a text long after the load. Where the caller passes a model, the term comes to
        name it.

        Args:
            config: The terms by name; changed in place.
            where: Their place.

        Returns:
            The caller's models that these terms now name, by name.

        Raises:
            FormatError: A text may not become a model.
        """
        settled: dict[str, lm.SharedModel] = {}
        for argument, kind in _SLOTS.items():
            text = config.get(argument, {}).get("json")
            if not isinstance(text, str) or not lm.MODEL_STRING.fullmatch(text):
                continue
            if (model := self.stand_in(kind, text)) is not None:
                config[argument], settled[text] = {"language_model": text}, model
            elif (fault := model_fault(text, text)) is not None:
                raise format_error((*where, argument, "json"), fault)
        return settled


def _kind(record: leaves.Json) -> type[Any]:
    """Return the kind of model that a record describes."""
    public_id = record.get("type") if leaves.is_object(record) else None
    cls = registry.lookup(public_id) if isinstance(public_id, str) else None
    return lm.EmbeddingModel if isinstance(cls, type) and issubclass(cls, lm.EmbeddingModel) else lm.LanguageModel


def make_lm(
    name: str, record: dict[str, leaves.Json], cls: type | None, read: Callable[[leaves.Json], Any]
) -> lm.SharedModel:
    """Return a model made from its record; an unbound one if the file does not hold all that it needs.

    Args:
        name: The saved name.
        record: The checked record.
        cls: The class of its id, None where it is not known here.
        read: Reads a term.

    Raises:
        LoadError: The class does not take what the record holds.
    """
    if record["type"] is None:
        needs = ["a model of a class that is not registered"]
        return lm.unbound_model(lm.LanguageModel, name, {**record, "model": _ANY_MODEL}, needs)
    arguments = {key: read(term) for key, term in record.get("config", {}).items()}
    settings = {key: record[key] for key in _SETTINGS} | record["defaults"]
    limit = {"limit": lm.Limit(**record["limit"])} if "limit" in record else {}
    if cls is None or record["supply"]:
        needs = [*record["supply"], *([f"the class {record['type']!r}"] if cls is None else [])]
        rest, cls = {**record, "config": arguments} if "config" in record else record, _kind(record)
        if cls is lm.EmbeddingModel:
            settings = {key: arguments[key] for key in _OF_EMBEDDINGS if key in arguments}
        arguments = {"kind": cls, "name": name, "record": rest, "needs": needs, **settings}
        make: Callable[..., lm.SharedModel] = lm.unbound_model
    else:
        if "config" not in record:
            arguments = {"model": record["model"], **settings} | ({} if name == record["model"] else {"name": name})
        make = cls
    try:
        return make(**arguments, **limit)
    except (errors.SynmodError, TypeError) as error:
        raise load_error(("language_models", name), f"{cls.__qualname__} cannot be made: {error}") from error

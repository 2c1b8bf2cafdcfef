"""synmod: an async module system for LLM programs.

The front door. Rooms, from the floor up: `errors`, `registry`, `leaves`, `cache` and `data`, `scope`, `tree`, `flow`,
`lm`, `embedded`, `journal` and `module`, `blocks`, `skip` and `retrieval`, `saving` and `view`, `train`, `optimizers`,
`program`, `distribute`, `serving`; `testing` is beside them. Importing it loads no provider, no validator and no event
library.
"""

# `All`, `Any`, `Not`, `Path` and `Schema` are exported by their aliases: a star import would hide common words

from typing import NoReturn as _NoReturn

from pydantic import Field

from synmod import (
    blocks, cache, data, distribute, embedded, errors, flow, journal, lm, module, optimizers, program, retrieval,
    saving, scope, serving, skip, train, tree, view,
)
from synmod.blocks import (
    Agent, And, BestOf, Branch, Cached, ChainOfThought, Choose, Code, CodeAct, Compact, Concat, Constant, Decision,
    Factorize, Fallback, Generator, Guard, Identity, InMask, Lambda, Majority, Map, Or, OutMask, Parallel, Prefix,
    Refine, Repeat, Retry, Route, SelfCritique, Suffix, Thinking, Tool, Xor, ask_model, mcp_tools,
)
from synmod.cache import Cache
from synmod.data import (
    Audio, AudioPart, ChatMessage, ChatMessages, DataModel, File, FilePart, Image, ImagePart, JsonDataModel, Rating,
    Score, SymbolicDataModel, TextPart, ToolCall, is_subschema, is_symbolic, normalize_score, ops,
)
from synmod.distribute import DaskExecutor
from synmod.errors import (
    AgentLimitError, ArgumentError, AuthError, BadNameError, BadReplyError, BudgetExceeded, BuildError, CallError,
    CassetteError, CodeError, ConfigError, ContextWindowError, DataError, DeadlineExceeded, EvaluationError, FieldError,
    FormatError, GraphError, GuardError, JournalError, LifecycleError, LoadError, ModelError, ModelTimeout, NoCallError,
    NotBuiltError, Paused, RateLimitError, RegistryError, RequestError, RunError, SaveError, SchemaError,
    SchemaTooComplex, SealedError, SkipError, SkipNameError, SkipVerifyError, StateError, StateSchemaError,
    SymbolicValueError, SynmodError, SynmodWarning, ToolError, TrainerError, UnavailableError, UnboundModelError,
)
from synmod.flow import Failed, Progress, in_thread, map_concurrently, run
from synmod.journal import Run, durable
from synmod.leaves import KeyPath, __version__ as __version__, rng
from synmod.lm import (
    Attempt, BatchJobs, Citation, EmbeddingModel, EmbeddingReply, EmbeddingRequest, LMChunk, LMReply, LMRequest,
    LMStream, LanguageModel, Limit, TokenLogprob, default_language_model, jinja_prompt, native_tool,
    set_default_language_model, stream, use_language_models,
)
from synmod.module import Module, build
from synmod.program import Input, Program, Sequential, compose
from synmod.registry import register, registered
from synmod.retrieval import (
    FoundPassage, HybridIndex, Index, KeywordIndex, Nearest, Passage, Passages, QueryPassage, Retrieve, Table,
    VectorIndex, passages,
)
from synmod.saving import FileLimits, LoadReport, dumps, load, load_variables, loads, save, save_variables
from synmod.scope import (
    CallFrame, Emitted, Feedback, Hook, Injected, Question, Usage, answers, ask, budget, current_call, current_phase,
    current_scope, deadline, emit, hooks, hooks_lib, inject, last, phase, time_left, trace, track_rewards, track_usage,
)
from synmod.serving import mcp_server, serve
from synmod.train import (
    Batch, Batches, BatchEndParam, Budget, CallRecord, Candidate, Comparison, Context, Evaluation, Example,
    ExampleResult, FeedbackItem, History, Monitor, MonitorRecord, Rollout, Trainer, Worth, callbacks, evaluate,
    latest_checkpoint, list_checkpoints, load_examples, metrics, rewards,
)
from synmod.tree import (
    All as All, Any as Any, Choice, Everything, GraphDef, Intermediate, Memory, Not as Not, Nothing, OfType, OptState,
    Param, Path as Path, PathContains, PathIn, Schema as Schema, Stat, State, Trainable, Variable, VariableState,
    WithTag, call, capture, clone, current_update_context, filters, find_duplicates, graphdef, initializers, iter_graph,
    merge, merge_context, paths_of, pop, register_graph_node_type, set_attributes, set_metadata, split, split_context,
    state, static, update, update_context, using, variables,
)
from synmod.view import format_variables

__all__ = [
    "Agent", "AgentLimitError", "And", "ArgumentError", "Attempt", "Audio", "AudioPart", "AuthError", "BadNameError",
    "BadReplyError", "Batch", "BatchEndParam", "BatchJobs", "Batches", "BestOf", "Branch", "Budget", "BudgetExceeded",
    "BuildError", "Cache", "Cached", "CallError", "CallFrame", "CallRecord", "Candidate", "CassetteError",
    "ChainOfThought", "ChatMessage", "ChatMessages", "Choice", "Choose", "Citation", "Code", "CodeAct", "CodeError",
    "Compact", "Comparison", "Concat", "ConfigError", "Constant", "Context", "ContextWindowError", "DaskExecutor",
    "DataError", "DataModel", "DeadlineExceeded", "Decision", "EmbeddingModel", "EmbeddingReply", "EmbeddingRequest",
    "Emitted", "Evaluation", "EvaluationError", "Everything", "Example", "ExampleResult", "Factorize", "Failed",
    "Fallback", "Feedback", "FeedbackItem", "Field", "FieldError", "File", "FileLimits", "FilePart", "FormatError",
    "FoundPassage", "Generator", "GraphDef", "GraphError", "Guard", "GuardError", "History", "Hook", "HybridIndex",
    "Identity", "Image", "ImagePart", "InMask", "Index", "Injected", "Input", "Intermediate", "JournalError",
    "JsonDataModel", "KeyPath", "KeywordIndex", "LMChunk", "LMReply", "LMRequest", "LMStream", "Lambda",
    "LanguageModel", "LifecycleError", "Limit", "LoadError", "LoadReport", "Majority", "Map", "Memory", "ModelError",
    "ModelTimeout", "Module", "Monitor", "MonitorRecord", "Nearest", "NoCallError", "NotBuiltError", "Nothing",
    "OfType", "OptState", "Or", "OutMask", "Parallel", "Param", "Passage", "Passages", "PathContains", "PathIn",
    "Paused", "Prefix", "Program", "Progress", "QueryPassage", "Question", "RateLimitError", "Rating", "Refine",
    "RegistryError", "Repeat", "RequestError", "Retrieve", "Retry", "Rollout", "Route", "Run", "RunError", "SaveError",
    "SchemaError", "SchemaTooComplex", "Score", "SealedError", "SelfCritique", "Sequential", "SkipError",
    "SkipNameError", "SkipVerifyError", "Stat", "State", "StateError", "StateSchemaError", "Suffix",
    "SymbolicDataModel", "SymbolicValueError", "SynmodError", "SynmodWarning", "Table", "TextPart", "Thinking",
    "TokenLogprob", "Tool", "ToolCall", "ToolError", "Trainable", "Trainer", "TrainerError", "UnavailableError",
    "UnboundModelError", "Usage", "Variable", "VariableState", "VectorIndex", "WithTag", "Worth", "Xor", "answers",
    "ask", "ask_model", "blocks", "budget", "build", "cache", "call", "callbacks", "capture", "clone", "compose",
    "current_call", "current_phase", "current_scope", "current_update_context", "data", "deadline",
    "default_language_model", "distribute", "dumps", "durable", "embedded", "emit", "errors", "evaluate", "filters",
    "find_duplicates", "flow", "format_variables", "graphdef", "hooks", "hooks_lib", "in_thread", "initializers",
    "inject", "is_subschema", "is_symbolic", "iter_graph", "jinja_prompt", "journal", "last", "latest_checkpoint",
    "list_checkpoints", "lm", "load", "load_examples", "load_variables", "loads", "map_concurrently", "mcp_server",
    "mcp_tools", "merge", "merge_context", "metrics", "module", "native_tool", "normalize_score", "ops", "optimizers",
    "passages", "paths_of", "phase", "pop", "program", "register", "register_graph_node_type", "registered",
    "retrieval", "rewards", "rng", "run", "save", "save_variables", "saving", "scope", "serve", "serving",
    "set_attributes", "set_default_language_model", "set_metadata", "skip", "split", "split_context", "state", "static",
    "stream", "time_left", "trace", "track_rewards", "track_usage", "train", "tree", "update", "update_context",
    "use_language_models", "using", "variables", "view",
]

# The upward calls of the house: functions that lower rooms call and higher rooms define. They are set here alone.
data.SymbolTracing.instance = data.SymbolTracing(
    record_operation=flow.record_operation, current_path=scope.frame.place_name,
)
scope.TraceViews.instance = scope.TraceViews(page=view.trace_page)
lm.EmbeddedModels.instance = lm.EmbeddedModels(
    chat={"nearest": embedded.NearestAdapter, "rules": embedded.RulesAdapter}, embedding={"hash": embedded.HashAdapter},
)
tree.GraphCodec.instance = tree.GraphCodec(encode=saving.encode_graphdef, decode=saving.decode_graphdef)
module.RoomsAbove.instance = module.RoomsAbove(
    verify_wiring=skip.wiring.verify_root, attempt=skip.lane.attempt, summary=view.summary, plot=view.plot,
)


def __getattr__(name: str) -> _NoReturn:
    """Raise for a name that is not there, with the one that was perhaps meant."""
    from synmod.leaves import did_you_mean

    of_others = {"LM": "LanguageModel", "LLM": "LanguageModel", "ChatModel": "LanguageModel", "OpenAI": "LanguageModel",
                 "ChatOpenAI": "LanguageModel", "Predict": "Generator", "Dense": "Generator", "Linear": "Generator",
                 "LLMChain": "Generator", "Signature": "DataModel", "BaseModel": "DataModel", "InputField": "Field",
                 "OutputField": "Field", "Layer": "Module", "Model": "Program", "StateGraph": "Program",
                 "Chain": "Sequential", "ReAct": "Agent", "create_agent": "Agent", "tool": "Tool",
                 "Evaluate": "evaluate", "load_model": "load", "configure": "set_default_language_model",
                 "PromptTemplate": "jinja_prompt", "settings": "set_default_language_model",
                 "version": "__version__"}
    rooms = ("optimizers", "rewards", "metrics", "callbacks", "hooks_lib", "initializers", "skip")
    inside = next((f"{room}.{name}" for room in rooms if name in vars(globals()[room])), None)
    if inside is None and not name.startswith("_") and hasattr(Program, name):
        inside = f"Program.{name}"
    meant = of_others.get(name, inside)
    hint = did_you_mean(name, __all__) if meant is None else f" Did you mean {meant!r}?"
    if name == "testing":
        hint = " It is loaded by `from synmod import testing`."
    raise AttributeError(f"module 'synmod' has no attribute {name!r}.{hint}")

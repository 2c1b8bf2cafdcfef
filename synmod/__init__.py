"""synmod: an async module system for LLM programs.

The front door. Rooms, from the floor up: `errors`, `registry`, `leaves`, `cache` and `data`, `scope`, `tree`, `flow`,
`lm`, `module`, `blocks` and `skip`, `saving` and `view`, `train`, `optimizers`, `program`; `testing` stands
beside them. Importing it loads no provider, no validator and no event library.
"""

# each public name stands here once, and is exported by its alias

from typing import NoReturn as _NoReturn

from pydantic import Field as Field

from synmod import (
    blocks as blocks, cache as cache, data as data, errors as errors, flow as flow, lm as lm, module as module,
    optimizers as optimizers, program as program, saving as saving, scope as scope, skip as skip, train as train,
    tree as tree, view as view,
)
from synmod.blocks import (
    And as And, BestOf as BestOf, Branch as Branch, Cached as Cached, ChainOfThought as ChainOfThought,
    Concat as Concat, Constant as Constant, Decision as Decision, Factorize as Factorize, Fallback as Fallback,
    Generator as Generator, Guard as Guard, Identity as Identity, InMask as InMask, Lambda as Lambda,
    Majority as Majority, Map as Map, Or as Or, OutMask as OutMask, Parallel as Parallel, Prefix as Prefix,
    Refine as Refine, Repeat as Repeat, Retry as Retry, Route as Route, SelfCritique as SelfCritique, Suffix as Suffix,
    Thinking as Thinking, Xor as Xor,
)
from synmod.cache import Cache as Cache
from synmod.data import (
    Audio as Audio, AudioPart as AudioPart, ChatMessage as ChatMessage, ChatMessages as ChatMessages,
    DataModel as DataModel, File as File, FilePart as FilePart, Image as Image, ImagePart as ImagePart,
    JsonDataModel as JsonDataModel, Rating as Rating, Score as Score, SymbolicDataModel as SymbolicDataModel,
    TextPart as TextPart, ToolCall as ToolCall, is_subschema as is_subschema, is_symbolic as is_symbolic,
    normalize_score as normalize_score, ops as ops,
)
from synmod.errors import (
    ArgumentError as ArgumentError, AuthError as AuthError, BadNameError as BadNameError,
    BadReplyError as BadReplyError, BudgetExceeded as BudgetExceeded, BuildError as BuildError, CallError as CallError,
    ConfigError as ConfigError, ContextWindowError as ContextWindowError, DataError as DataError,
    DeadlineExceeded as DeadlineExceeded, EvaluationError as EvaluationError, FieldError as FieldError,
    FormatError as FormatError, GraphError as GraphError, GuardError as GuardError, LoadError as LoadError,
    ModelError as ModelError, ModelTimeout as ModelTimeout, NoCallError as NoCallError, NotBuiltError as NotBuiltError,
    RateLimitError as RateLimitError, RegistryError as RegistryError, RequestError as RequestError,
    RunError as RunError, SaveError as SaveError, SchemaError as SchemaError, SchemaTooComplex as SchemaTooComplex,
    SealedError as SealedError, SkipError as SkipError, SkipNameError as SkipNameError,
    SkipVerifyError as SkipVerifyError, StateError as StateError, StateSchemaError as StateSchemaError,
    SymbolicValueError as SymbolicValueError, SynmodError as SynmodError, SynmodWarning as SynmodWarning,
    LifecycleError as LifecycleError, TrainerError as TrainerError, UnavailableError as UnavailableError,
    UnboundModelError as UnboundModelError,
)
from synmod.flow import (
    Failed as Failed, Progress as Progress, in_thread as in_thread, map_concurrently as map_concurrently, run as run,
)
from synmod.leaves import KeyPath as KeyPath, rng as rng
from synmod.lm import (
    Attempt as Attempt, LanguageModel as LanguageModel, LMReply as LMReply, LMRequest as LMRequest,
    default_language_model as default_language_model, set_default_language_model as set_default_language_model,
    use_language_models as use_language_models,
)
from synmod.module import Module as Module, build as build
from synmod.program import Input as Input, Program as Program, Sequential as Sequential, compose as compose
from synmod.registry import register as register, registered as registered
from synmod.saving import (
    FileLimits as FileLimits, LoadReport as LoadReport, dumps as dumps, load as load, load_variables as load_variables,
    loads as loads, save as save, save_variables as save_variables,
)
from synmod.scope import (
    CallFrame as CallFrame, Feedback as Feedback, Hook as Hook, Usage as Usage, budget as budget,
    current_call as current_call, current_phase as current_phase, current_scope as current_scope, deadline as deadline,
    hooks as hooks, hooks_lib as hooks_lib, phase as phase, time_left as time_left, trace as trace,
    track_rewards as track_rewards, track_usage as track_usage,
)
from synmod.train import (
    Batch as Batch, Batches as Batches, BatchEndParam as BatchEndParam, Budget as Budget, CallRecord as CallRecord,
    Candidate as Candidate, Comparison as Comparison, Context as Context, Evaluation as Evaluation, Example as Example,
    ExampleResult as ExampleResult, FeedbackItem as FeedbackItem, History as History, Monitor as Monitor,
    MonitorRecord as MonitorRecord, Rollout as Rollout, Run as Run, Trainer as Trainer, callbacks as callbacks,
    evaluate as evaluate, latest_checkpoint as latest_checkpoint, list_checkpoints as list_checkpoints,
    load_examples as load_examples, metrics as metrics, rewards as rewards,
)
from synmod.tree import (
    All as All, Any as Any, Everything as Everything, GraphDef as GraphDef, Intermediate as Intermediate,
    Memory as Memory, Not as Not, Nothing as Nothing, OfType as OfType, OptState as OptState, Param as Param,
    Path as Path, PathContains as PathContains, PathIn as PathIn, Schema as Schema, Stat as Stat, State as State,
    Trainable as Trainable, Variable as Variable, VariableState as VariableState, WithTag as WithTag, call as call,
    capture as capture, clone as clone, current_update_context as current_update_context, filters as filters,
    find_duplicates as find_duplicates, graphdef as graphdef, initializers as initializers, iter_graph as iter_graph,
    merge as merge, merge_context as merge_context, paths_of as paths_of, pop as pop,
    register_graph_node_type as register_graph_node_type, set_attributes as set_attributes,
    set_metadata as set_metadata, split as split, split_context as split_context, state as state, static as static,
    update as update, update_context as update_context, using as using, variables as variables,
)
from synmod.view import format_variables as format_variables

_LEFT_OUT = {"All", "Any", "Not", "Path", "Schema", "leaves", "registry"}
"""What a star import leaves out: filters that would hide common words, and rooms without public names of their own."""

_PUBLIC = sorted(name for name in globals() if not name.startswith("_") and name not in _LEFT_OUT)
globals()["__all__"] = _PUBLIC  # type checkers read the aliases above


def __getattr__(name: str) -> _NoReturn:
    """Raise for a name that is not there, with the one that was perhaps meant."""
    from synmod.leaves import did_you_mean

    raise AttributeError(f"module 'synmod' has no attribute {name!r}.{did_you_mean(name, _PUBLIC)}")

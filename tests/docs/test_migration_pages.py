"""The pages for those who come from DSPy and Synalinks: every public name of theirs has a row, and ours exist."""

import re
from contextlib import suppress
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path

import pytest

import synmod as sm

RECIPES = Path(__file__).parents[2] / "docs" / "pages" / "recipes"

# The public names of DSPy 3.4.1; those below `evaluate`, `streaming`, `datasets` and `experimental` with their room.
DSPY = """
majority BestOfN ChainOfThought CodeAct KNN MultiChainComparison Predict ProgramOfThought ReAct ReActV2 Refine RLM
Tool Parallel Flex BaseModule CodeExecutionError CodeInterpreter Completions Example FinalOutput CodeInterpreterError
LocalInterpreter Module Prediction PythonInterpreter SandboxSerializable resolve_interpreter_factory Embeddings
EmbeddingsWithScores Retrieve ColBERTv2 InputField OutputField OldField OldInputField OldOutputField SignatureMeta
Signature infer_prefix ensure_signature make_signature AvatarOptimizer BetterTogether BootstrapFewShot
BootstrapFinetune COPRO Ensemble GEPA KNNFewShot MIPROv2 BootstrapFewShotWithRandomSearch BootstrapFewShotWithOptuna
BootstrapRS LabeledFewShot InferRules SIMBA bootstrap_trace_data BaseLM LM Provider TrainingJob inspect_history
Embedder enable_litellm_logging disable_litellm_logging configure_cache cache Adapter ChatAdapter JSONAdapter
XMLAdapter TwoStepAdapter Image Audio File History Type ToolCalls ToolCallResults Code Reasoning lm15 Evaluate
AdapterParseError ContextWindowExceededError DSPyError LMAuthError LMBillingError LMCollectionLimitError
LMConfigurationError LMError LMInvalidRequestError LMLockTimeoutError LMNotConfiguredError LMProviderError
LMRateLimitError LMServerError LMStreamAssemblyError LMTimeoutError LMTransportError LMUnexpectedError
LMUnsupportedFeatureError LMUnsupportedModelError is_retryable_lm_error configure_dspy_loggers disable_logging
enable_logging asyncify syncify load streamify track_usage settings configure load_settings context evaluate.EM
evaluate.normalize_text evaluate.answer_exact_match evaluate.answer_passage_match evaluate.SemanticF1
evaluate.CompleteAndGrounded evaluate.EvaluationResult streaming.StatusMessage streaming.StatusMessageProvider
streaming.StreamListener streaming.StreamResponse streaming.streaming_response streaming.apply_sync_streaming
datasets.Colors datasets.DataLoader datasets.Dataset datasets.HotPotQA datasets.MATH experimental.Citations
experimental.Document experimental.Choice experimental.Noul experimental.Score experimental.TypeSafe
experimental.ReAnchor
"""

# Those of Synalinks 0.10.14; those of its rooms without `get`, `serialize` and `deserialize`.
SYNALINKS = """
Action AgentAsJudge AgentLoopDetection And AnswerRelevancy ArgumentCorrectness Audio AudioInput BatchMetric
BatchReward Bias Branch CSVDataset ChainOfThought ChatCompletionChoice ChatCompletionCompletionTokensDetails
ChatCompletionFunctionCall ChatCompletionJsonSchema ChatCompletionMessage ChatCompletionPromptTokensDetails
ChatCompletionRequest ChatCompletionResponse ChatCompletionResponseFormat ChatCompletionTool ChatCompletionToolCall
ChatCompletionToolFunction ChatCompletionUsage ChatMessage ChatMessages ChatRole CitationFaithfulness
CommandExitException CommandResult ComposableReward Concat Concatenate ContextualPrecision ContextualRecall
ContextualRelevancy ConversationCompleteness CosineSimilarity CypherAgent DataModel Dataset Decision DecisionModel
DeepAgent DeepAgentAsJudge EmbedKnowledge EmbeddedEntity EmbeddingModel EmbeddingModelOperationalMetric
EmbeddingModelOptimizersOperationalMetric EmbeddingModelRewardsOperationalMetric EmbeddingRequest Embeddings Entities
Entity EntityFullTextSearch EntityHybridFTSSearch EntityHybridRegexSearch EntityRegexSearch EntitySimilaritySearch
EntryInfo ExactMatch Execution ExecutionError ExecutionResult Faithfulness FileType FineScore FullTextSearch Function
FunctionCallingAgent GapK Generator GenericIO GenericInputs GenericOutputs GenericResult GlobalGraphMapReduce
GlobalGraphSearch GoalAccuracy Hallucination HuggingFaceDataset HybridFTSSearch HybridRegexSearch Identity Image
ImageFolderDataset ImageInput InMask Initializer Input Instructions JSONDataset JSONLDataset JsonDataModel
KnowledgeBase KnowledgeGraph KnowledgeGraphs KnowledgeRetention LMAsJudge LMOperationalMetric
LMOptimizersOperationalMetric LMRewardsOperationalMetric Lambda LanguageModel LocalGraphSearch Logs MLflowDataset
MarkdownDataset MarkdownDocument MarkdownSection Metric MirageSandbox Misuse Module MultiDecision MultiServerMCPClient
NonAdvice Not NotFoundException OAuthLanguageModel OMEGA Operation Or OutMask PIILeakage ParquetDataset PassAtK
PassHatK PathFullTextSearch PathHybridFTSSearch PathHybridRegexSearch PathRegexSearch PathSimilaritySearch
PlanAdherence PlanQuality Prediction Program ProgramAsJudge ProgramOperationalMetric PromptAlignment PythonSynthesis
RLM RLMAsJudge RRFReranker Rating Rating10 Rating20 RecursiveLanguageModelAgent RegexSearch Relation
RelationFullTextSearch RelationHybridFTSSearch RelationHybridRegexSearch RelationRegexSearch RelationSimilaritySearch
Relations Result RetrieveKnowledge Reward RoleAdherence RoleViolation RubricsAsJudge SQLAgent Sandbox SandboxException
Score SelfCritique Sequential SimilaritySearch Stamp StampKnowledge StatelessScope StepEfficiency Summarization
SymbolicDataModel SymbolicScope TaskCompletion Text2Cypher Text2SQL TextDataset TextDocument TimeoutException Tool
ToolCall ToolCallFunction ToolCalling ToolCorrectness ToolPermission ToolUse TopicAdherence Toxicity Trainable
TurnFaithfulness TurnRelevancy UpdateKnowledge VectorRAGAgent WriteInfo Xor api_base backend callbacks clear_session
config datasets decision_models default_agent_prompt_template default_decision_model default_embedding_model
default_knowledge_base default_language_model default_prompt_template disable_keras_backend embedding_models
enable_logging enable_observability from_chat_completion_message from_chat_completion_messages get_seed hooks
initializers is_chat_message is_chat_messages is_embedded is_embedded_entity is_embedding is_embeddings is_entities
is_entity is_instructions is_knowledge_graph is_knowledge_graphs is_observability_enabled is_prediction is_relation
is_relations is_stamped is_strictly_chat_message is_strictly_chat_messages is_tool_call is_trace_recording_enabled
is_trainable knowledge_bases language_models metrics modules name_scope ops optimizers parse_markdown_sections
programs record_traces register_synalinks_serializable rewards sandboxes saving set_api_base
set_default_decision_model set_default_embedding_model set_default_knowledge_base set_default_language_model set_seed
synalinks_home to_chat_completion_message to_chat_completion_messages to_chat_completion_request trace_context tree
tuners utils version callbacks.BackupAndRestore callbacks.BudgetStopping callbacks.CSVLogger callbacks.Callback
callbacks.CallbackList callbacks.EarlyStopping callbacks.History callbacks.Monitor callbacks.ProgbarLogger
callbacks.ProgramCheckpoint callbacks.SynalinksProgramModel callbacks.monitor datasets.arc_challenge datasets.arcagi
datasets.bbh datasets.bbq datasets.boolq datasets.drop datasets.gsm8k datasets.hellaswag datasets.hotpotqa
datasets.humaneval datasets.ifeval datasets.lambada datasets.load_split datasets.logiqa datasets.mmlu
datasets.split_train_test datasets.squad datasets.truthfulqa datasets.winogrande hooks.Hook hooks.HookList
hooks.Logger hooks.Monitor hooks.Recorder metrics.Accuracy metrics.AvgCacheCreationTokensPerCall
metrics.AvgCachedTokensPerCall metrics.AvgCostPerCall metrics.AvgEmbeddingCachedTokensPerCall
metrics.AvgEmbeddingCostPerCall metrics.AvgEmbeddingLatency metrics.AvgEmbeddingTokensPerCall
metrics.AvgEmbeddingVectorsPerCall metrics.AvgInputTokensPerCall metrics.AvgLatency
metrics.AvgOptimizerCacheCreationTokensPerCall metrics.AvgOptimizerCachedTokensPerCall metrics.AvgOptimizerCostPerCall
metrics.AvgOptimizerEmbeddingCachedTokensPerCall metrics.AvgOptimizerEmbeddingCostPerCall
metrics.AvgOptimizerEmbeddingLatency metrics.AvgOptimizerEmbeddingTokensPerCall
metrics.AvgOptimizerEmbeddingVectorsPerCall metrics.AvgOptimizerInputTokensPerCall metrics.AvgOptimizerLatency
metrics.AvgOptimizerOutputTokensPerCall metrics.AvgOptimizerReasoningTokensPerCall
metrics.AvgOptimizerTotalTokensPerCall metrics.AvgOutputTokensPerCall metrics.AvgReasoningTokensPerCall
metrics.AvgRewardCacheCreationTokensPerCall metrics.AvgRewardCachedTokensPerCall metrics.AvgRewardCostPerCall
metrics.AvgRewardEmbeddingCachedTokensPerCall metrics.AvgRewardEmbeddingCostPerCall metrics.AvgRewardEmbeddingLatency
metrics.AvgRewardEmbeddingTokensPerCall metrics.AvgRewardEmbeddingVectorsPerCall metrics.AvgRewardInputTokensPerCall
metrics.AvgRewardLatency metrics.AvgRewardOutputTokensPerCall metrics.AvgRewardReasoningTokensPerCall
metrics.AvgRewardTotalTokensPerCall metrics.AvgTimeToFirstToken metrics.AvgTimeToLastToken
metrics.AvgTotalTokensPerCall metrics.AvgTrajectoryTimeToFirstToken metrics.BinaryAccuracy metrics.BinaryF1Score
metrics.BinaryFBetaScore metrics.BinaryPrecision metrics.BinaryRecall metrics.CacheCreationTokens metrics.CacheHitRate
metrics.CachedTokens metrics.CategoricalAccuracy metrics.CategoricalF1Score metrics.CategoricalFBetaScore
metrics.CategoricalPrecision metrics.CategoricalRecall metrics.Cost metrics.EmbeddingCacheHitRate
metrics.EmbeddingCachedTokens metrics.EmbeddingCost metrics.EmbeddingErrorRate metrics.EmbeddingFailedCalls
metrics.EmbeddingFallbackActivations metrics.EmbeddingThroughput metrics.EmbeddingTokens
metrics.EmbeddingTokensPerSecond metrics.EmbeddingVectors metrics.EmbeddingVectorsPerSecond metrics.ErrorRate
metrics.F1Score metrics.FBetaScore metrics.FailedCalls metrics.FallbackActivations metrics.InputTokens
metrics.ListF1Score metrics.ListFBetaScore metrics.Mean metrics.MeanMetricWrapper metrics.OptimizerCacheCreationTokens
metrics.OptimizerCacheHitRate metrics.OptimizerCachedTokens metrics.OptimizerCost
metrics.OptimizerEmbeddingCacheHitRate metrics.OptimizerEmbeddingCachedTokens metrics.OptimizerEmbeddingCost
metrics.OptimizerEmbeddingErrorRate metrics.OptimizerEmbeddingFailedCalls
metrics.OptimizerEmbeddingFallbackActivations metrics.OptimizerEmbeddingThroughput metrics.OptimizerEmbeddingTokens
metrics.OptimizerEmbeddingTokensPerSecond metrics.OptimizerEmbeddingVectors metrics.OptimizerEmbeddingVectorsPerSecond
metrics.OptimizerErrorRate metrics.OptimizerFailedCalls metrics.OptimizerFallbackActivations
metrics.OptimizerInputTokens metrics.OptimizerOutputTokens metrics.OptimizerReasoningTokenShare
metrics.OptimizerReasoningTokens metrics.OptimizerThroughput metrics.OptimizerTokensPerSecond
metrics.OptimizerTotalTokens metrics.OutputTokens metrics.Precision metrics.ProgramAvgCostPerInvocation
metrics.ProgramCalls metrics.ProgramCallsPerSecond metrics.ProgramCost metrics.ProgramElapsedTime
metrics.ReasoningTokenShare metrics.ReasoningTokens metrics.Recall metrics.RewardCacheCreationTokens
metrics.RewardCacheHitRate metrics.RewardCachedTokens metrics.RewardCost metrics.RewardEmbeddingCacheHitRate
metrics.RewardEmbeddingCachedTokens metrics.RewardEmbeddingCost metrics.RewardEmbeddingErrorRate
metrics.RewardEmbeddingFailedCalls metrics.RewardEmbeddingFallbackActivations metrics.RewardEmbeddingThroughput
metrics.RewardEmbeddingTokens metrics.RewardEmbeddingTokensPerSecond metrics.RewardEmbeddingVectors
metrics.RewardEmbeddingVectorsPerSecond metrics.RewardErrorRate metrics.RewardFailedCalls
metrics.RewardFallbackActivations metrics.RewardInputTokens metrics.RewardOutputTokens
metrics.RewardReasoningTokenShare metrics.RewardReasoningTokens metrics.RewardThroughput metrics.RewardTokensPerSecond
metrics.RewardTotalTokens metrics.Sum metrics.Throughput metrics.TokensPerSecond metrics.TotalTokens ops.concat
ops.concatenate ops.convert_to_json_data_model ops.convert_to_symbolic_data_model ops.factorize ops.in_mask ops.json
ops.logical_and ops.logical_not ops.logical_or ops.logical_xor ops.out_mask ops.prefix ops.suffix
optimizers.EvolutionaryOptimizer optimizers.GreedyOptimizer optimizers.RandomFewShot
rewards.BatchRewardFunctionWrapper rewards.RewardFunctionWrapper rewards.cosine_similarity rewards.exact_match
rewards.get_rubric rewards.list_rubrics saving.CustomObjectScope saving.custom_object_scope
saving.deserialize_synalinks_object saving.get_custom_objects saving.get_registered_name saving.get_registered_object
saving.serialize_synalinks_object tree.MAP_TO_NONE tree.assert_same_paths tree.assert_same_structure tree.flatten
tree.is_nested tree.lists_to_tuples tree.map_structure tree.pack_sequence_as tree.traverse tuners.BayesianOptimization
tuners.GridSearch tuners.Hyperband tuners.Objective tuners.RandomSearch utils.CustomObjectScope utils.Progbar
utils.custom_object_scope utils.deserialize_synalinks_object utils.disable_interactive_logging
utils.enable_interactive_logging utils.get_custom_objects utils.get_file utils.get_registered_name
utils.get_registered_object utils.is_interactive_logging_enabled utils.is_json_data_model utils.is_meta_class
utils.is_symbolic_data_model utils.pack_x_y utils.plot_history utils.plot_history_comparison
utils.plot_history_comparison_with_mean_and_std utils.plot_history_with_mean_and_std utils.plot_metrics
utils.plot_metrics_comparison utils.plot_metrics_comparison_with_mean_and_std utils.plot_metrics_with_mean_and_std
utils.plot_program utils.program_to_dot utils.serialize_synalinks_object utils.unpack_x_y
"""


PAGES = [("from-dspy.md", DSPY), ("from-synalinks.md", SYNALINKS)]


def rows(page):
    """The code spans of both sides of every row."""
    text = (RECIPES / page).read_text(encoding="utf-8").partition("## Every public name")[2]
    for line in text.splitlines():
        if line.startswith("| `"):
            left, right = line.split(" | ")
            yield re.findall(r"`([^`]+)`", left), re.findall(r"`([^`]+)`", right)


def exists(name):
    """Whether a name is in `synmod`, or in one of its rooms."""
    with suppress(AttributeError):
        attrgetter(name)(sm)
        return True
    return False


@pytest.mark.parametrize(("page", "names"), PAGES)
def test_every_public_name_of_theirs_has_a_row(page, names):
    """Alone, or by a pattern."""
    patterns = [span for left, _ in rows(page) for span in left]
    assert [name for name in names.split() if not any(fnmatchcase(name, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize(("page", "names"), PAGES)
def test_every_name_on_our_side_exists(page, names):
    """Texts and arguments, as in `seed=`, are not names."""
    spans = [span for _, right in rows(page) for span in right]
    ours = {span for span in spans if re.fullmatch(r"[\w.]+", span)}
    assert len(ours) > 50
    assert [name for name in sorted(ours) if not exists(name)] == []

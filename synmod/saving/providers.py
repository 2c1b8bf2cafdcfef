"""What a file may name as a language model: for each provider, how the names of its own models are spelled.

litellm takes more than a model from such a text: a host, a region, a project, an endpoint, another provider. A file
that could name one of these would send its reader's key there. So each provider has a pattern here that holds none of
them, and a name that no pattern fits loads only where the reader passes a model for it.
"""

import re
from typing import Final

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

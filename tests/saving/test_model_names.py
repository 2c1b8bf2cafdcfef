"""Which texts of a file may become language models, and that none of them chooses where a key is sent."""

import json
import socket
import threading

import pytest

import synmod as sm
from synmod.lm import model_from
from synmod.saving import dumps, loads
from synmod.saving.language_models import is_model_name
from synmod.testing import ScriptedLM
from tests.saving.hostile import edited
from tests.saving.programs import Answer, Keep

ARN = "arn:aws:bedrock-agentcore:evil.example/x:123456789012:runtime/y"

NAMES = """
ai21/jamba-large-1.7 anthropic/claude-3-5-sonnet-20241022 azure/gpt-4o azure_ai/Llama-3.3-70B-Instruct
baseten/openai/gpt-oss-120b bedrock/amazon.nova-lite-v1:0 bedrock/anthropic.claude-v2:1:18k
bedrock/us.anthropic.claude-3-7-sonnet-20250219-v1:0 cerebras/llama3.1-8b cloudflare/@cf/meta/llama-3.1-8b-instruct
cohere/command-r-plus-08-2024 databricks/databricks-meta-llama-3-3-70b-instruct deepseek/deepseek-chat
embedded/nearest fireworks_ai/accounts/fireworks/models/llama-v3p1-8b-instruct fireworks_ai/llama-v3p1-8b-instruct
gemini/gemini-2.5-flash groq/meta-llama/llama-4-scout-17b-16e-instruct hosted_vllm/Qwen/Qwen2.5-7B-Instruct
huggingface/meta-llama/Llama-3.3-70B-Instruct huggingface/together/deepseek-ai/DeepSeek-R1
mistral/ft:open-mistral-7b:daf5e488:20240805:c7b0af9d ollama/hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M
ollama/llama3:8b openai/ft:gpt-4o-mini-2024-07-18:org::id openai/gpt-4o-2024-08-06 openai/o3
openai/meta-llama/Llama-3.3-70B-Instruct openai/@cf/meta/llama-3.1-8b-instruct openrouter/auto openrouter/x:free
openrouter/meta-llama/llama-3.3-70b-instruct:free together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo
vertex_ai/claude-3-5-sonnet@20240620 vertex_ai/meta/llama-3.3-70b-instruct-maas vertex_ai/gemini-2.5-pro
watsonx/ibm/granite-3-8b-instruct xai/grok-4
""".split()
"""Names as their providers spell them."""

PREFIXES = """
a2a anthropic azure azure_ai azure_text baseten bedrock bedrock/agent bedrock/agentcore bedrock/converse bedrock/invoke
clarifai cloudflare custom custom_openai databricks deepinfra fireworks_ai gemini github gradient_ai groq hosted_vllm
huggingface huggingface/together langgraph litellm_proxy litellm_proxy/openai ollama oobabooga openai openai/azure
openai_like openrouter petals predibase ragflow/agent replicate replicate/deployments sagemaker sagemaker_chat snowflake
triton vertex_ai vertex_ai/gemini vertex_ai/openai watsonx watsonx/deployment
""".split()
"""Providers, routes, and providers within providers."""


def refused_names(port):
    """Texts that lead, or may lead, to a server that the author of a file chose, at least 200 of them."""
    parts = [
        ARN, f"http://127.0.0.1:{port}/v1", f"127.0.0.1:{port}", f"localhost:{port}/v1", "evil.example:443",
        f"x#@127.0.0.1:{port}/", f"x?api_base=http://127.0.0.1:{port}", "../../evil.example/v1", f"x@http://127.0.0.1:{port}",
        "us-evil-1/anthropic.claude-v2", "projects/evil/locations/us-evil1/endpoints/1234567890",
    ]  # fmt: skip
    return [f"{prefix}/{part}" for prefix in PREFIXES for part in parts]


@pytest.mark.parametrize("text", NAMES)
def test_the_name_of_a_model_is_one(text):
    """As its provider spells it."""
    assert is_model_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "baseten/abcd1234",
        "bedrock/us-east-1/anthropic.claude-v2",
        "sagemaker/my-endpoint",
        "vertex_ai/1234567890",
        "openai/azure/gpt-4o",
        "openai/localhost:8000",
        "azure/eu/gpt-4o",
        "Azure/gpt-4o",
        "openai/a..b",
        "openai/gpt-4o\n",
        "nobody/gpt-4o",
        "openai",
        *refused_names(8000),
    ],
)
def test_what_leads_elsewhere_is_no_name(text):
    """Neither is a host, a port, a region, a project, an endpoint, an ARN, a URL, or another provider inside a name."""
    assert not is_model_name(text)


WRITTEN = sm.Generator(Answer, language_model="openai/gpt-4o-mini")


def as_record(text):
    """A file that holds a model string in a record."""
    return edited(dumps(WRITTEN), lambda s: s["language_models"]["openai/gpt-4o-mini"].update(model=text, attempts=1))


def as_argument(text):
    """A file that holds a model string as a plain argument."""

    def edit(sections):
        sections["graph"]["nodes"][0]["config"]["language_model"] = {"json": text}
        sections["language_models"] = {}

    return edited(dumps(WRITTEN), edit)


def as_attribute(text):
    """A file that holds a model string as a plain attribute."""

    def edit(sections):
        del sections["graph"]["nodes"][0]["config"]["language_model"]
        sections["graph"]["nodes"][0]["attributes"]["language_model"] = {"json": text}
        sections["language_models"] = {}

    return edited(dumps(WRITTEN), edit)


WAYS = (as_record, as_argument, as_attribute)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_of_the_reader_stands_in_for_any_text(way):
    """Without one, a text that is no name is refused with its place and the remedy; a name needs none."""
    text = f"bedrock/agentcore/{ARN}"
    with pytest.raises(sm.LoadError, match=r"write load\(\.\.\., language_models=\{") as caught:
        loads(way(text))
    assert caught.value.where in (
        "/language_models/openai~1gpt-4o-mini/model",
        "/graph/nodes/0/config/language_model/json",
        "/graph/nodes/0/attributes/language_model/json",
    )
    live = ScriptedLM([])
    name = "openai/gpt-4o-mini" if way is as_record else text
    for supplied in (live, {name: live}):
        program = loads(way(text), language_models=supplied)
        assert program.language_model is live
        assert text not in dumps(program)
    with pytest.raises(sm.LoadError, match="no language model of this file is named"):
        loads(way(text), language_models={"openai/other": live})
    assert "x:free" in dumps(loads(way("openrouter/x:free")))


@sm.register("tests_saving_names")
class Judge(sm.Module):
    """Makes a model of a text under a name of its own, directly or in a block."""

    def __init__(self, judge="openai/a", models=None):
        super().__init__()
        self.writer = sm.Generator(Answer, language_model=judge)
        self.direct = sm.static([sm.LanguageModel(model) for model in models or ()])
        self.judge = judge

    async def call(self, inputs):
        return inputs


@pytest.mark.parametrize("config", [{"judge": f"bedrock/{ARN}"}, {"models": ["openai/b", f"bedrock/{ARN}"]}])
def test_a_text_that_a_constructor_makes_a_model_of(config):
    """It is refused at the node whose constructor did, unless the reader has a model for it."""

    def edit(sections):
        record = sections["graph"]["nodes"][0]
        record["config"] |= {name: {"json": value} for name, value in config.items()}

    text = edited(dumps(Judge()), edit)
    with pytest.raises(sm.LoadError, match="is not the name of a model") as caught:
        loads(text)
    assert caught.value.where == "/graph/nodes/0"
    assert loads(text, language_models={f"bedrock/{ARN}": "embedded/nearest"}).writer.language_model.model == "openai/a"
    assert loads(text, language_models=ScriptedLM([], name="s")).writer.language_model.name == "s"


def test_a_text_that_code_holds_is_its_own():
    """A constructor may make any model of a text that does not come from the file."""

    @sm.register("tests_saving_names")
    class Own(sm.Module):
        def __init__(self):
            super().__init__()
            self.judge = sm.static(sm.LanguageModel("sagemaker/my-endpoint"))

    assert loads(dumps(Own())).judge.model == "sagemaker/my-endpoint"


@pytest.mark.parametrize(
    "model", [sm.LanguageModel("Azure/x"), sm.LanguageModel("openai/x?y"), sm.EmbeddingModel("sagemaker/a")], ids=repr
)
def test_any_model_can_be_saved(model):
    """One with a name that is not known loads where the reader passes a model for it, or its connection is missing."""
    text = dumps(Keep(model))
    with pytest.raises(sm.LoadError, match="is not the name of a model"):
        loads(text)
    live = type(model)("embedded/hash" if isinstance(model, sm.EmbeddingModel) else "embedded/nearest")
    assert loads(text, language_models={model.name: live}).thing is live
    house = sm.LanguageModel("my-proxy//data/models/Qwen@7", api_base="http://localhost:8000/v1", name="house")
    assert loads(dumps(Keep(house))).thing.model == house.model  # unbound: it calls nothing


def test_embedding_models_and_fallbacks_are_models_too():
    """A text in the arguments of an embedding model, and one of a fallback."""
    embedding = dumps(Keep(sm.EmbeddingModel("openai/e")))
    text = "huggingface/https://evil.example/e"

    def edit(sections):
        sections["language_models"]["openai/e"]["config"]["model"] = {"json": text}

    with pytest.raises(sm.LoadError, match=r"^/language_models/openai~1e"):
        loads(edited(embedding, edit))
    chain = dumps(Keep(sm.LanguageModel("openai/a", fallback=sm.LanguageModel("custom/evil"))))
    with pytest.raises(sm.LoadError, match=r"^/language_models/custom~1evil/model: "):
        loads(chain)
    live = ScriptedLM([])
    assert loads(chain, language_models={"custom/evil": live}).thing.fallback == (live,)


@pytest.fixture
def strangers(monkeypatch):
    """A listening port, and the list of all hosts that are looked up or connected to beside the reader's own."""
    reached = []
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(0.2)

    def listen():
        while True:
            try:
                server.accept()[0].close()
                reached.append("the listening port")
            except TimeoutError:
                continue
            except OSError:
                return

    def look_up(host, *_args, **_kwargs):
        reached.append(str(host))
        raise socket.gaierror(socket.EAI_NONAME, "no network")

    thread = threading.Thread(target=listen)
    thread.start()
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    for name in ("OPENAI_API_KEY", "GROQ_API_KEY", "OPENROUTER_API_KEY", "HF_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.setenv(name, "sk-of-the-reader-0123456789")
    yield server.getsockname()[1], reached
    server.close()
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
async def test_no_byte_leaves_for_a_host_that_the_author_of_a_file_chose(way, strangers):
    """Whatever loads is called with the keys of the reader at hand; it looks up the hosts of its provider alone."""
    port, reached = strangers
    called = 0
    for text in [*refused_names(port), "openai/evil.example", "groq/x-y/evil.example", "openrouter/evil.example:y"]:
        try:
            program = loads(way(text))
        except sm.LoadError:
            continue
        called += 1
        with pytest.raises(sm.ModelError):
            await model_from(program.language_model)("hello", timeout_s=5)  # as a call of the program does
    assert called
    assert not [host for host in reached if "evil" in host or "listening" in host], json.dumps(reached)
    assert "api.openai.com" in reached

"""Addresses: where a request goes, and what stands in the way: certificates, names, ports, settings."""

import asyncio
import ssl
import threading
from pathlib import Path

import pytest

import synmod as sm
from synmod.errors import AuthError, ConfigError, RequestError, UnavailableError
from synmod.leaves.aio import use_clock
from synmod.lm import EmbeddingModel, LanguageModel
from synmod.lm.call import request_key
from synmod.lm.records import LMRequest
from synmod.lm.sessions import load_roots, proxy_for
from tests.clock import ManualClock
from tests.lm.loopback import Answer, Loopback, ask, completion, failure

CERTIFICATES = Path(__file__).with_name("certificates")
VARIABLES = (
    "OPENAI_BASE_URL", "OPENAI_API_BASE", "OLLAMA_API_BASE", "OLLAMA_HOST", "VLLM_API_BASE", "HOSTED_VLLM_API_BASE",
    "LM_STUDIO_API_BASE", "LLAMAFILE_API_BASE",
)  # fmt: skip


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No address of the machine reaches a test."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


# -- of the environment ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
async def test_openai_goes_where_the_environment_says(variable, monkeypatch):
    """A gateway gets the request with the key of the same environment; texts and embeddings alike."""
    vectors = Answer(200, {"data": [{"index": 0, "embedding": [1.0]}]})
    async with Loopback(completion("x"), vectors) as server:
        lm, em = LanguageModel("openai/m", max_tokens=5), EmbeddingModel("openai/e")
        monkeypatch.setenv(variable, server.base)
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-gateway")
        assert (await lm("?")).text == "x"
        await em(["?"])
        await lm.aclose()
        await em.aclose()
    assert [one.headers["authorization"] for one in server.arrived] == ["Bearer key-of-the-gateway"] * 2
    assert server.arrived[0].body["max_tokens"] == 5
    away = LanguageModel("openai/m", api_base="http://127.0.0.1:1/v1")
    assert away.settings.base == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("model", "variable", "value", "base"),
    [
        ("ollama/m", "OLLAMA_HOST", "gpu7:11000", "http://gpu7:11000/v1"),
        ("ollama/m", "OLLAMA_HOST", "0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("ollama/m", "OLLAMA_HOST", ":11435", "http://127.0.0.1:11435/v1"),
        ("ollama/m", "OLLAMA_HOST", "https://ollama.example.com", "https://ollama.example.com:443/v1"),
        ("ollama/m", "OLLAMA_API_BASE", "http://localhost:11434/", "http://localhost:11434/v1"),
        ("ollama/m", "OLLAMA_API_BASE", "http://localhost:11434/v1", "http://localhost:11434/v1"),
        ("hosted_vllm/m", "HOSTED_VLLM_API_BASE", "http://gpu7:8000/v1", "http://gpu7:8000/v1"),
        ("vllm/m", "VLLM_API_BASE", "http://gpu7:8000/v1", "http://gpu7:8000/v1"),
        ("lm_studio/m", "LM_STUDIO_API_BASE", "http://gpu7:1234/v1", "http://gpu7:1234/v1"),
        ("openai/m", "OLLAMA_HOST", "gpu7", None),
        ("openai/m", "OPENAI_BASE_URL", " ", None),
        ("ollama/m", "OPENAI_BASE_URL", "http://gpu7/v1", "http://localhost:11434/v1"),
    ],
)
def test_each_provider_has_its_variables(model, variable, value, base, monkeypatch):
    """As the servers themselves and other clients read them; no other provider's address is taken."""
    monkeypatch.setenv(variable, value)
    assert LanguageModel(model).settings.base == base


async def test_an_address_that_is_none_names_its_variable(monkeypatch):
    """A ConfigError at the call, before anything is sent."""
    monkeypatch.setenv("OPENAI_BASE_URL", "gateway.example.com")
    with pytest.raises(ConfigError, match=r"OPENAI_BASE_URL must be an http\(s\) address"):
        await LanguageModel("openai/m", api_key="x")("?")


def test_the_address_is_part_of_the_cache_key(monkeypatch):
    """Replies of one server are not those of another."""
    lm = LanguageModel("openai/m")
    before = request_key(lm, LMRequest(lm.model, ()))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gpu7/v1")
    assert request_key(lm, LMRequest(lm.model, ())) != before


# -- hints -------------------------------------------------------------------------------------------------------------


async def test_a_key_that_is_withheld_from_an_api_base_is_named(monkeypatch):
    """The error tells that none was sent, and how to pass one; with a key given it does not."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    for status in (401, 403):
        error, (arrived,) = await ask(failure(status, "no key"), api_key=None)
        assert isinstance(error, AuthError)
        assert "authorization" not in arrived.headers
        assert "never sent to an api_base" in str(error)
        assert "api_key=os.environ['OPENAI_API_KEY']" in str(error)
    for given in ({}, {"api_key": None, "headers": {"Authorization": "Bearer my-own-token"}}):
        error, _ = await ask(failure(401, "wrong key"), **given)
        assert "never sent" not in str(error)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/v1/chat/completions", "ends with /chat/completions, which is added to it: pass 'http://127.0.0.1"),
        ("/v1/completions/", "ends with /completions/"),
        ("/v1/embeddings", "ends with /embeddings"),
        ("", "lacks /v1"),
        ("/v1", None),
    ],
)
async def test_an_address_with_too_much_or_too_little(path, hint):
    """A 404 names what the api_base lacks, or what it has too much."""
    error, _ = await ask(failure(404, "not found"), path=path)
    assert [words in str(error) for words in ("lacks /v1", "ends with")] == [hint == "lacks /v1", "ends" in str(hint)]
    assert (hint or "not found") in str(error)


@pytest.mark.parametrize(
    ("refusal", "call", "hint"),
    [
        ("Use 'max_completion_tokens' instead.", {"max_tokens": 50}, "extra_body={'max_completion_tokens': 50}"),
        ("Unsupported value: 'temperature' does not support 0", {"temperature": 0}, "temperature, leave it out"),
        ("Unrecognized request argument supplied: seed", {"seed": 1}, "seed, leave it out"),
        ("top_k: Extra inputs are not permitted", {"top_k": 1}, "top_k, leave it out"),
        ("Jinja Exception: System role not supported", {}, "Generator(..., template={'user': '{instructions}"),
        ("'messages[0].role' does not support 'system' with this model", {}, "takes no system turn"),
        ("Conversation roles must alternate user/assistant/user/assistant/...", {}, "takes no system turn"),
        ("stream_options is unknown", {}, "extra_body={'stream_options': None}"),
    ],
)
async def test_a_refused_parameter_has_its_way_out(refusal, call, hint):
    """Each refusal names what to leave out or to write instead."""
    error, _ = await ask(failure(400, refusal), call=call)
    assert isinstance(error, RequestError)
    assert hint in str(error)


def test_a_keyword_of_openai_has_its_way_out():
    """`max_completion_tokens` is not a sampling parameter here; both ways are named."""
    with pytest.raises(ConfigError, match=r"Write max_tokens=.*extra_body=\{'max_completion_tokens': \.\.\.\}"):
        LanguageModel("openai/m", max_completion_tokens=5)


@pytest.mark.parametrize(
    "name",
    [
        "openai/@cf/meta/llama-3.1-8b-instruct", "my-proxy/llama", "Azure/gpt", "vllm//data/models/Qwen",
        "llamafile/C:\\models\\x.gguf", "openrouter/x/y:free", "ollama/llama3:8b", "openai/ft:gpt-4o:org::id",
        "bedrock/anthropic.claude-v2:0", "openai/accounts/fireworks/models/x#y",
    ],
)  # fmt: skip
async def test_a_name_is_sent_as_it_is_written(name):
    """Every spelling of providers."""
    _, (arrived,) = await ask(model=name)
    assert arrived.body["model"] == name.partition("/")[2]


# -- TLS, names, ports -------------------------------------------------------------------------------------------------


class Secure:
    """A server with a certificate."""

    def __init__(self, certificate):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(CERTIFICATES / certificate)

    async def __aenter__(self):
        self.server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=self.context)
        return self.server.sockets[0].getsockname()[1]

    async def __aexit__(self, *_):
        self.server.close()
        await self.server.wait_closed()


@pytest.fixture
def trusting(monkeypatch):
    """Trust one certificate, or another file."""

    def trust(name):
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / name))
        load_roots.cache_clear()

    yield trust
    load_roots.cache_clear()


def test_no_thread_that_used_openssl_outlives_the_call(trusting, monkeypatch):
    """It would hold a lock of OpenSSL while it ends, and a child that is forked at that moment could never end."""
    threads = []
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: threads.append(threading.current_thread()))
    trusting("localhost.pem")
    load_roots()
    assert [thread.is_alive() for thread in threads] == [False]


@pytest.mark.parametrize("adapter", ["direct", pytest.param("litellm", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("certificate", "trusted", "host", "words"),
    [
        ("localhost.pem", None, "localhost", "self-signed certificate; if you trust it, let SSL_CERT_FILE"),
        ("localhost.pem", "localhost.pem", "127.0.0.1", "write the host name that the certificate is for"),
        ("expired.pem", "expired.pem", "localhost", "certificate has expired; renew the certificate"),
    ],
)
async def test_a_certificate_that_cannot_be_verified(certificate, trusted, host, words, adapter, trusting):
    """It is permanent, nothing is sent, and the error has the remedy."""
    if trusted:
        trusting(trusted)
    async with Secure(certificate) as port:
        lm = LanguageModel("openai/m", api_key="x", api_base=f"https://{host}:{port}/v1", adapter=adapter)
        with pytest.raises(UnavailableError) as caught:
            await lm("?")
        await lm.aclose()
    assert (caught.value.transient, caught.value.attempts) == (False, 0)
    if adapter == "direct" or not trusted:  # litellm keeps the roots of its first client
        assert words in str(caught.value)


def _raw(reply):
    """A server on a free port that reads something, writes this and closes."""

    async def answer(reader, writer):
        await reader.read(1)
        writer.write(reply)
        writer.close()

    return asyncio.start_server(answer, "127.0.0.1", 0)


@pytest.mark.parametrize("adapter", ["direct", pytest.param("litellm", marks=pytest.mark.slow)])
async def test_tls_to_a_port_without_it(adapter):
    """Permanent, with the address to write."""
    async with await _raw(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        base = f"127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        lm = LanguageModel("openai/m", api_base=f"https://{base}", adapter=adapter)
        with pytest.raises(UnavailableError, match=f"does not speak TLS; write http://{base}") as caught:
            await lm("?")
        await lm.aclose()
    assert (caught.value.transient, caught.value.attempts) == (False, 0)


@pytest.mark.parametrize("adapter", ["direct", pytest.param("litellm", marks=pytest.mark.slow)])
async def test_plain_http_to_a_port_with_tls(adapter):
    """Such a server often hangs up without a word; the error has the address to write."""
    async with Secure("localhost.pem") as port:
        lm = LanguageModel("openai/m", api_base=f"http://127.0.0.1:{port}/v1", adapter=adapter, attempts=1)
        with pytest.raises(UnavailableError, match=f"hung up .* if it speaks TLS, write https://127.0.0.1:{port}/v1"):
            await lm("?")
        await lm.aclose()


@pytest.mark.parametrize(
    ("scheme", "reply", "words"),
    [
        ("http", b"", "if it speaks TLS, write https://{base}"),
        ("http", b"\x15\x03\x01\x00\x02\x02\x46", "if it speaks TLS, write https://{base}"),
        ("http", b"Client sent an HTTP request to an HTTPS server.", "The server speaks TLS: write https://{base}."),
        ("http", b"<h1>The plain HTTP request was sent to HTTPS port</h1>", "speaks TLS: write https://{base}."),
        ("http", b"You're speaking plain HTTP to an SSL-enabled server port.", "speaks TLS: write https://{base}."),
        ("http", b"This combination of host and port requires TLS.", "speaks TLS: write https://{base}."),
        ("https", b"", "if it does not speak TLS, write http://{base}"),
        ("https", b"SSH-2.0-OpenSSH_9.6\r\n", "does not speak TLS; write http://{base}"),
    ],
)
async def test_each_sign_of_the_other_scheme(scheme, reply, words):
    """Closed at once, an alert of TLS, and the texts of Go, nginx, Apache and Tomcat."""
    is_text = (scheme == "http" and reply[:1].isalpha()) or reply.startswith(b"<")
    async with await _raw(b"HTTP/1.0 400 Bad Request\r\n\r\n" + reply if is_text else reply) as server:
        base = f"127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        lm = LanguageModel("openai/m", api_base=f"{scheme}://{base}", attempts=1)
        with pytest.raises(sm.ModelError) as caught:
            await lm("?")
        await lm.aclose()
    assert words.format(base=base) in str(caught.value)


async def test_a_redirect_shows_where_it_leads():
    """As a host answers over http that serves https alone; the key does not follow it."""
    target = "https://llm.invalid/v1/chat/completions"
    error, arrived = await ask(Answer(301, {}, {"location": target}))
    assert f"a redirect to {target}, which is not followed; the api_base may be 'https://llm.invalid/v1'" in str(error)
    assert len(arrived) == 1


@pytest.mark.parametrize("name", ["no-such-file.pem", "../loopback.py"])
async def test_a_bad_file_of_roots(name, trusting):
    """A ModelError that names the variable, not a raw OSError."""
    trusting(name)
    with pytest.raises(UnavailableError, match="SSL_CERT_FILE='.*unset it") as caught:
        await LanguageModel("openai/m", api_base="https://127.0.0.1:9/v1")("?")
    assert (caught.value.transient, caught.value.attempts) == (False, 0)


async def test_a_host_that_is_not_known():
    """Its name is in the error; it is transient, since a resolver may be down."""
    lm = LanguageModel("openai/m", api_base="http://nosuch.invalid/v1", attempts=1)
    with pytest.raises(UnavailableError, match=r"host name nosuch\.invalid cannot be resolved") as caught:
        await lm("?")
    assert caught.value.transient


async def test_a_proxy_that_is_gone(monkeypatch):
    """It is named, with the variables, and not waited for."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    proxy_for.cache_clear()
    lm = LanguageModel("openai/m", api_base="http://llm.invalid/v1", attempts=1)
    with pytest.raises(UnavailableError, match=r"the proxy at 127\.0\.0\.1:9 refuses .*http_proxy") as caught:
        await lm("?")
    proxy_for.cache_clear()
    assert not caught.value.starting


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("azure/gpt-4o", "AZURE_API_BASE"),
        ("azure_ai/x", "api_base is required"),
        ("cloudflare/@cf/meta/x", "CLOUDFLARE_ACCOUNT_ID"),
        ("snowflake/x", "Missing snowflake account_id"),
        ("heroku/x", "api_base"),
        ("custom/x", "api_base not set"),
    ],
)
async def test_a_setting_that_litellm_misses(model, words, monkeypatch):
    """A RequestError at once, where litellm invents a status 500; no traceback in its text."""
    for name in ("AZURE_API_KEY", "AZURE_AI_API_KEY", "CLOUDFLARE_API_KEY", "HEROKU_API_KEY", "SNOWFLAKE_JWT"):
        monkeypatch.setenv(name, "some-key-0123456789")
    with pytest.raises(RequestError, match=words) as caught:
        await LanguageModel(model)("?")
    assert (caught.value.transient, caught.value.attempts) == (False, 0)
    assert "Traceback" not in str(caught.value)


# -- servers that start ------------------------------------------------------------------------------------------------


@pytest.fixture
def clock():
    """The clock of the test."""
    with use_clock(fake := ManualClock()):
        yield fake


LOADING = [
    failure(503, "Loading model"),
    Answer(503, {"error": "Model x is currently loading", "estimated_time": 20.0}),
    Answer(503, {"detail": "The server is starting up"}),
]


def waiting(base, **given):
    """A model of a server."""
    return LanguageModel("openai/m", api_base=base, api_key="some-key-1", **given)


@pytest.mark.parametrize("answer", LOADING, ids=str)
async def test_a_server_that_loads_its_model_is_waited_for(answer, clock, caplog):
    """More often than `attempts` is: until it answers."""
    async with Loopback(*[answer] * 12, completion("x")) as server:
        lm = waiting(server.base)
        reply = await lm("?")
        await lm.aclose()
    assert (reply.text, len(reply.attempts), len(clock.waits)) == ("x", 13, 12)
    (line,) = caplog.messages
    assert "Waiting for it, for up to 120 s" in line


async def test_a_server_that_is_not_there_yet_is_waited_for(clock, caplog):
    """A refused connection, until `timeout_s` is over: the error names the wait."""
    lm = waiting("http://127.0.0.1:9/v1", timeout_s=50)
    with pytest.raises(UnavailableError, match=r"nothing listens at 127.*\n  the server was waited") as caught:
        await lm("?")
    assert 40 < clock.now() <= 50
    assert caught.value.attempts > 10
    assert len(caplog.messages) == 1
    with pytest.raises(UnavailableError), sm.deadline(10):
        await lm("?")
    assert clock.now() <= 60


async def test_one_that_never_comes_is_not_waited_for_without_an_end(clock):
    """With no limit at all for ten minutes."""
    with pytest.raises(UnavailableError):
        await waiting("http://127.0.0.1:9/v1", timeout_s=None)("?")
    assert 500 < clock.now() <= 600


@pytest.mark.parametrize("base", ["http://127.0.0.1:9/v1", None])
async def test_a_fallback_answers_at_once(base, clock):
    """A dead or starting server with a fallback is not waited for; the last of the models is."""
    async with Loopback(LOADING[0]) as starting, Loopback(completion("x")) as server:
        second = LanguageModel("openai/second", api_base=server.base)
        lm = waiting(base or starting.base, fallback=second)
        assert (await lm("?")).model == "openai/second"
        await lm.aclose()
    assert clock.waits == []
    assert len(starting.arrived) <= 1


async def test_one_attempt_is_one(clock):
    """`attempts=1` does not wait."""
    with pytest.raises(UnavailableError) as caught:
        await waiting("http://127.0.0.1:9/v1", attempts=1)("?")
    assert (clock.waits, caught.value.attempts) == ([], 1)


async def test_another_503_uses_the_attempts(clock):
    """Only a server that starts is waited for."""
    async with Loopback(failure(503, "overloaded")) as server:
        lm = waiting(server.base)
        with pytest.raises(UnavailableError) as caught:
            await lm("?")
        await lm.aclose()
    assert caught.value.attempts == 3

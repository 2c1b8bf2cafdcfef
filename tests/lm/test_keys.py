"""Keys: where they come from, when they are missing, and that they do not show."""

import pytest

from synmod.errors import AuthError
from synmod.lm import ENVIRONMENT, LanguageModel, checked_settings, find_key, known_secrets, missing_key, scrubbed
from tests.lm.in_module import inside


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No key of the machine reaches a test."""
    for names in ENVIRONMENT.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)


def settings(model="openai/x", **given):
    return LanguageModel(model, **given).settings


@pytest.mark.parametrize("provider", sorted(ENVIRONMENT))
async def test_a_missing_key_is_known_at_once(provider):
    """AuthError at once, without wait or request; names the variables and the argument."""
    lm = LanguageModel(f"{provider}/some-model")
    with pytest.raises(AuthError) as caught:
        await lm("?")
    assert caught.value.attempts == lm.cumulated_requests == 0
    assert lm.cumulated_failed_calls == 1
    for name in (*ENVIRONMENT[provider], "api_key="):
        assert name in str(caught.value)


async def test_the_text_is_that_of_the_contract():
    """The exact words, with module and requests sent."""
    with inside("pipeline/writer"), pytest.raises(AuthError) as caught:
        await LanguageModel("openai/gpt-4o-mini")("?")
    assert str(caught.value) == (
        "openai/gpt-4o-mini: no API key. Set OPENAI_API_KEY, or pass LanguageModel(..., api_key=...).\n"
        "  module: pipeline/writer   requests sent: 0"
    )


async def test_the_argument_wins_over_the_environment(monkeypatch):
    """A key given is used; else the usual variable, read at call time."""
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    assert await find_key(settings(api_key="given")) == "given"
    plain = settings()
    assert await find_key(plain) == "from-environment"
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    assert await find_key(plain) == "another"
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    assert await find_key(plain) is None
    assert missing_key(plain) is not None


async def test_a_callable_is_asked_for_each_request():
    """Rotating tokens, plain or async."""
    tokens = iter(["one", "two"])

    async def later():
        return "async"

    rotating = settings(api_key=lambda: next(tokens))
    assert [await find_key(rotating), await find_key(rotating)] == ["one", "two"]
    assert await find_key(settings(api_key=later)) == "async"
    assert missing_key(rotating) is None


async def test_no_key_of_the_environment_for_an_api_base(monkeypatch):
    """With an `api_base` only the given key counts, and none is needed."""
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    away = settings(api_base="http://localhost:1/v1")
    assert await find_key(away) is None
    assert missing_key(away) is None


def test_second_names_count(monkeypatch):
    """Gemini's key may stand under Google's name."""
    monkeypatch.setenv("GOOGLE_API_KEY", "from-environment")
    assert missing_key(settings("gemini/x")) is None


def test_other_providers_look_after_themselves():
    """Azure, Bedrock and Vertex have credentials of other kinds."""
    for model in ("azure/x", "bedrock/x", "vertex_ai/x"):
        assert missing_key(settings(model)) is None


def test_scrubbing_takes_the_longest_first(monkeypatch):
    """One secret may hold another; short ones stay, since they would hit ordinary words."""
    monkeypatch.setenv("GROQ_API_KEY", "gsk-environment")
    secrets = known_secrets(settings(api_key="secret-key", headers={"A": "Bearer secret-key-longer", "B": "short"}))
    assert {"secret-key", "secret-key-longer", "gsk-environment"} <= secrets
    assert "short" not in secrets
    assert scrubbed("secret-key-longer secret-key gsk-environment", secrets) == "*** *** ***"


def test_settings_check_is_plain():
    """The checks need no loop and no provider."""
    assert checked_settings.__module__ == "synmod.lm.settings"

"""Prices: given, listed, free or unknown; litellm is not imported for them."""

import subprocess
import sys

import pytest

from synmod.lm import LanguageModel
from synmod.lm.litellm_adapter import Price, list_price
from synmod.testing import FunctionLM


async def price_of(model, **given):
    return await LanguageModel(model, **given).price()


async def test_a_given_price_is_per_million():
    """`price=(in, out)` in USD per million tokens."""
    price = await price_of("openai/whatever", price=(1, 4))
    assert price.cost_usd(1_000_000, 500_000) == 3
    assert price.cost_usd(1_000_000, 0, cached_tokens=1_000_000) == 1


async def test_the_list_is_known_by_full_and_by_short_name():
    """Key `provider/name`, else `name` whose provider is that one."""
    mini = await price_of("openai/gpt-4o-mini")
    assert mini.prompt == pytest.approx(0.15e-6)
    assert mini.completion == pytest.approx(0.6e-6)
    assert mini.cached == pytest.approx(0.075e-6)
    assert list_price("gemini/gemini-2.5-pro").prompt > 0
    assert list_price("groq/gpt-4o-mini") is None


def test_long_prompts_cost_more_where_the_list_says_so():
    """Rates above a context length hold for longer prompts."""
    price = list_price("gemini/gemini-2.5-pro")
    ((length, above),) = price.above
    assert length == 200_000
    assert price.cost_usd(200_000, 0) == pytest.approx(200_000 * price.prompt)
    assert price.cost_usd(200_001, 1) == pytest.approx(200_001 * above.prompt + above.completion)


async def test_a_price_that_is_not_listed_is_unknown():
    """An unknown model, a double, and any server of the user's own have no price."""
    assert await price_of("openai/no-such-model") is None
    assert await price_of("openai/gpt-4o-mini", api_base="http://localhost:1/v1") is None
    assert await FunctionLM(lambda request: "x").price() is None
    assert await price_of("openai/gpt-4o-mini", api_base="http://localhost:1/v1", price=(1, 1)) is not None


async def test_a_double_under_a_real_name_has_the_real_price():
    """`model=` of a double takes the price of that model."""
    lm = FunctionLM(lambda request: "x" * 30, model="openai/gpt-4o-mini")
    reply = await lm("y" * 300)
    assert reply.usage.cost_usd == pytest.approx(100 * 0.15e-6 + 10 * 0.6e-6)
    assert lm.cumulated_unpriced_calls == 0


def test_cached_tokens_are_part_of_the_prompt():
    """Cached tokens cost their own rate; there cannot be more of them than of the prompt."""
    price = Price(2.0, 3.0, 1.0)
    assert price.cost_usd(10, 1, cached_tokens=4) == 6 * 2 + 4 * 1 + 3
    assert price.cost_usd(10, 0, cached_tokens=99) == 10


def test_the_list_is_read_without_importing_litellm():
    """Reading a price imports nothing of litellm."""
    code = (
        "import sys; from synmod.lm.litellm_adapter import list_price\n"
        "assert list_price('openai/gpt-4o-mini') is not None\n"
        "print([name for name in sys.modules if name.startswith('litellm')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_odd_entry_is_not_a_price():
    """The sample of the list, and entries without rates, price nothing."""
    assert list_price("openai/sample_spec") is None

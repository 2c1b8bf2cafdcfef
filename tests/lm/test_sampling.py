"""Sampling parameters: known names only, and what was probably meant."""

import pytest

from synmod.errors import ConfigError, DataError
from synmod.lm import SAMPLING, check_sampling


def test_known_parameters_are_kept():
    """Every documented parameter is accepted, and frozen."""
    given = dict.fromkeys(SAMPLING, 1)
    assert dict(check_sampling(given, "x")) == given


def test_none_counts_as_not_given():
    """A parameter of None is left out, so that a caller may pass his own optional through."""
    assert check_sampling({"temperature": None, "seed": 0}, "x") == {"seed": 0}


@pytest.mark.parametrize(
    ("name", "meant"),
    [("retries", "attempts"), ("temprature", "temperature"), ("timeout", "timeout_s"), ("base_url", "api_base")],
)
def test_unknown_names_are_refused(name, meant):
    """A misspelt parameter is a ConfigError that names it and what was meant."""
    with pytest.raises(ConfigError, match=f"{name}.*Did you mean '{meant}'"):
        check_sampling({name: 1}, "LanguageModel", ("attempts", "timeout_s", "api_base"))


def test_a_hint_says_where_the_word_belongs():
    """A call does not take `attempts`, the model does."""
    with pytest.raises(ConfigError, match="Did you mean 'attempts' of the LanguageModel"):
        check_sampling({"retries": 1}, "call")


def test_an_unknown_name_is_refused_even_as_none():
    """None does not make a misspelt name right."""
    with pytest.raises(ConfigError):
        check_sampling({"temprature": None}, "x")


def test_values_must_be_json():
    """A value that is no JSON is a DataError that names the place."""
    with pytest.raises(DataError, match="sampling parameter"):
        check_sampling({"stop": {1, 2}}, "x")

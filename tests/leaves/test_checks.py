"""Checks of arguments: one form of message."""

from math import inf, nan

import pytest

from synmod.errors import ArgumentError, ConfigError
from synmod.leaves import check_choice, check_int, check_number, check_seconds


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        (check_int, (0,), "size must be a whole number of at least 1, got 0."),
        (check_int, (True,), "size must be a whole number of at least 1, got True."),
        (check_int, (1.0, None), "size must be a whole number, got 1.0."),
        (check_number, ("1",), "size must be a number, got '1'."),
        (check_number, (nan, 0), "size must be a number of at least 0, got nan."),
        (check_number, (2, 0, 1), "size must be a number from 0 to 1, got 2."),
        (check_seconds, (inf,), "size must be a positive number of seconds, got inf."),
        (check_choice, ("sun", ("sum", "mean")), "size must be 'sum' or 'mean', got 'sun'. Did you mean 'sum'?"),
        (check_choice, (3, (1, 2, 4, 5)), "size must be one of 1, 2, 4, 5, got 3."),
        (check_int, ("x" * 1_000,), f"size must be a whole number of at least 1, got '{'x' * 99}."),
    ],
)
def test_what_an_argument_must_be_and_what_it_is(check, arguments, message):
    """The error names the argument, what it must be, and what was got, in the class that the caller chose."""
    with pytest.raises(ArgumentError) as error:
        check("size", *arguments)
    assert str(error.value) == message
    with pytest.raises(ConfigError):
        check("size", *arguments, error=ConfigError)


@pytest.mark.parametrize(
    ("check", "arguments"),
    [(check_int, (-3, None)), (check_number, (0.5, 0, 1)), (check_seconds, (2,)), (check_choice, ("a", ("a", "b")))],
)
def test_a_good_argument_is_returned(check, arguments):
    """As it is."""
    assert check("size", *arguments) is arguments[0]

"""What a page sets for its process is taken back, so that no other test sees it."""

import pytest

import synmod as sm


@pytest.fixture(autouse=True)
def no_default_model_stays():
    """Pages set the default model of the process, as scripts do."""
    yield
    sm.set_default_language_model(None)

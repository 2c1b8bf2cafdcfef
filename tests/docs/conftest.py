"""Settings that a page makes for its process are reset, so that no other test sees them."""

import pytest

import synmod as sm


@pytest.fixture(autouse=True)
def no_default_model_stays():
    """Pages set the default model of the process, as scripts do."""
    yield
    sm.set_default_language_model(None)

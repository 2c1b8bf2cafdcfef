"""Fixtures for pytest: `pytest_plugins = ["synmod.testing.fixtures"]` in the `conftest.py` at the root of your tests.

They are not registered by an entry point, which would import synmod in every pytest run of the environment, before
coverage is measured.
"""

from typing import Any, NamedTuple, NoReturn

import pytest

from synmod import lm, scope

from .models import Double


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse calls of all models but doubles and `embedded/*` during a test, in all its tasks and threads.

    Raises:
        AssertionError: Raised by a call of any other model, before anything is sent; names the model and the module.

    Example:
        `def test_the_desk(no_network): ...`, or `pytestmark = pytest.mark.usefixtures("no_network")` for a file.

    Source: pytest-socket; differs: it names the module that called a model.
    """
    slot: Any = vars(lm.SharedModel)["adapter"]

    def adapter_of(model: lm.SharedModel) -> Any:
        inside = isinstance(model, Double) or model.settings.provider == "embedded"
        return slot.__get__(model) if inside else _Refusing(model.model)

    monkeypatch.setattr(lm.SharedModel, "adapter", property(adapter_of, slot.__set__))


class _Refusing(NamedTuple):
    """The adapter of a model that is refused."""

    model: str
    name: str = "refusing"
    version: int = 1

    def check(self, request: object) -> NoReturn:  # noqa: ARG002  # every request is refused
        """Raise AssertionError for every request."""
        frame = scope.current_call()
        place = "outside a module" if frame is None else f"in {frame.path or frame.name!r}"
        remedy = "Answer by a double: `with sm.use_language_models(ScriptedLM([...])):`, or record a cassette"
        raise AssertionError(f"no_network: {self.model} was called {place}. {remedy}.")

    send = check

"""Failures as HTTP answers: RFC 9457 problems, and OpenAI's errors; neither quotes a provider or a traceback."""

from __future__ import annotations

import logging
import os
import re
import traceback
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, Final

from synmod import errors
from synmod.leaves import scrub

_LOG: Final = logging.getLogger("synmod.serving")
CLIENT_LEFT: Final = 499
"""The status in the metrics of a call whose client has gone; nobody receives it."""


class Refusal(Exception):
    """A request that gets an error as its answer.

    Args:
        status: The HTTP status.
        detail: Why, in a sentence for the client.
        headers: Further headers.
        **members: Further members of the problem.
    """

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers, self.members = status, detail, dict(headers or {}), members

    def problem(self, request_id: str) -> dict[str, Any]:
        """Return the body of the answer as a problem of RFC 9457."""
        title = HTTPStatus(self.status).phrase
        body = {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail}
        return {**body, "request_id": request_id, **self.members}

    def openai_error(self) -> dict[str, Any]:
        """Return the body of the answer in the shape of OpenAI's errors."""
        kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        faults = "".join(f" {fault['pointer']}: wanted {fault['wanted']}." for fault in self.members.get("errors", ()))
        return {"error": {"message": self.detail + faults, "type": kind, "param": None, "code": self.status}}


class ClientLeft(Exception):
    """The client has closed its connection."""


class GoingDown(Refusal):
    """The server is going down."""

    def __init__(self) -> None:
        super().__init__(503, "The server is going down.", {"retry-after": "5"})


class QueueFull(Refusal):
    """As many calls or runs wait as may."""

    def __init__(self) -> None:
        super().__init__(429, "Too many calls at once; try again later.", {"retry-after": "1"})


def refuse_inputs(error: errors.SchemaError) -> Refusal:
    """Return the answer to inputs that their schema refuses."""
    faults = [{"pointer": fault.pointer, "wanted": fault.wanted, "got": fault.got} for fault in error.errors]
    text = "The inputs do not satisfy their schema."
    return Refusal(422, text if faults else scrub(str(error)), errors=faults)


def refusal_of(error: Exception, request_id: str, budgets: Collection[Any] = ()) -> Refusal:
    """Return the answer to a failure of a call; what is the program's own fault goes to the log.

    Args:
        error: The error of the program.
        request_id: The id of the request, for the log.
        budgets: The accounts of the budgets around the program, which the caller set.
    """
    if isinstance(error, Refusal):
        return error
    if isinstance(error, errors.GuardError):
        return Refusal(422, scrub(str(error)))
    if isinstance(error, errors.Paused):
        questions = [question.to_json() for question in error.questions]
        return Refusal(409, "The program asks a person; start it as a run: POST /runs.", questions=questions)
    if isinstance(error, errors.BudgetExceeded) and error.account in budgets:
        return Refusal(422, "The budget of the request is spent.")
    if isinstance(error, errors.DeadlineExceeded):
        return Refusal(504, "The program did not end in time.")
    if isinstance(error, errors.ModelError):
        _LOG.warning("request %s: %s", request_id, scrub(str(error)))
        return Refusal(502, f"A model of the program failed: {type(error).__name__}.")
    if _LOG.isEnabledFor(logging.DEBUG):  # before the traceback is shortened
        _LOG.debug("request %s failed\n%s", request_id, scrub("".join(traceback.format_exception(error))))
    _LOG.error("request %s failed: %s", request_id, describe_failure(error))
    return Refusal(500, "The program failed; the log of the server has the reason under the request id.")


def describe_failure(error: Exception) -> str:
    """Return a failure as one line, with the line of the user's module that raised it."""
    text = re.sub(r"(?<![:.])\n", "; ", str(error)) if isinstance(error, errors.SchemaError) else str(error)
    text = " ".join(text.split())
    line = errors.show_own_line(error)
    is_users = line and "site-packages" not in line and not line.startswith(("<", os.path.dirname(os.__file__)))
    name = "" if isinstance(error, errors.SynmodError) else f"{type(error).__name__}: "
    return scrub(f"{name}{text or type(error).__name__}" + (f" ({line})" if is_users else ""))

"""Failures of a call: what an error must tell before it leaves the room, and nothing secret in it."""

from __future__ import annotations

from typing import Final, TypeVar

from synmod.errors import BadReplyError, ModelError
from synmod.lm.layers.call import ModelCall

__all__ = ["complete", "ending", "may_pass", "say_more", "shortened", "unsent", "was_sent"]

E = TypeVar("E", bound=ModelError)

MOST_BYTES: Final = 2_000
LEAST_BYTES: Final = 500


def complete(error: ModelError, call: ModelCall) -> None:
    """Fill in where, when and after how many requests a call failed; the error stays the same object.

    An adapter knows only what went wrong. What it said is kept aside, so that an error raised twice reads well twice.
    """
    said, more = vars(error).setdefault("_said", str(error)), vars(error).pop("_more", "")
    error.model = call.model.model
    error.attempts = call.requests
    error.elapsed_s = call.elapsed_s
    error.path = call.path
    error.phase = call.phase
    scrub = call.model.scrub
    error.provider_message = shortened(scrub(error.provider_message))
    error.request_id = error.request_id and scrub(error.request_id)
    if isinstance(error, BadReplyError):
        error.text = scrub(error.text)
        error.errors = tuple((pointer, scrub(fault)) for pointer, fault in error.errors)
    module = "" if call.frame is None else f"module: {call.path or call.frame.name}   "
    before, after = f"{error.model}: ", f"{more}\n  {module}requests sent: {call.requests}"
    room = MOST_BYTES - len(f"{before}{after}".encode(errors="replace"))
    error.args = (f"{before}{shortened(scrub(said), max(room, LEAST_BYTES))}{after}",)


def say_more(error: ModelError, text: str) -> None:
    """Add a line to what an error tells when it leaves."""
    vars(error)["_more"] = f"\n  {text}"


def unsent(error: E) -> E:
    """Mark an error of an adapter as known before anything left: it counts as no request, and is not retried."""
    vars(error)["_unsent"] = True
    return error


def was_sent(error: BaseException) -> bool:
    """Tell whether a request had left when an error came."""
    return "_unsent" not in vars(error)


def ending(error: E) -> E:
    """Mark an error as the end of its call, whatever attempts are left."""
    vars(error)["_ends"] = True
    return error


def may_pass(error: ModelError) -> bool:
    """Tell whether the same request may succeed, if it is sent again within this call."""
    return error.transient and was_sent(error) and "_ends" not in vars(error)


def shortened(text: str, most: int = MOST_BYTES) -> str:
    """Cut a text to what may stand in an error; scrub it first, or half a secret may stay at the end."""
    raw = text.encode(errors="replace")
    return text if len(raw) <= most else raw[:most].decode(errors="ignore")

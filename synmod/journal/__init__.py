"""Journals: calls that were paid for are recorded in a folder, so that killed code goes on where it was.

Floor: 6. Purpose: the records of a run, of a durable block and of people's answers; `sm.Run`, `sm.durable`. State: the
lock files that this process holds. Speed: a recorded call costs 150 µs and its commit; nothing without a block.
Must never know: modules, programs, what a row or a tool is.
"""

from .calls import CallRecording, Part
from .folder import RecordedCall, Run, durable, run_from
from .journal import Journal, as_json

__all__ = ["CallRecording", "Journal", "Part", "RecordedCall", "Run", "as_json", "durable", "run_from"]

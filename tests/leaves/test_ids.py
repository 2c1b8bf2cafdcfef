"""Names of runs are short and met nowhere twice."""

import multiprocessing
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from synmod.leaves import new_run_id


def test_ids_are_short_texts_of_digits_and_letters():
    """An id can be read aloud and needs no escaping."""
    assert re.fullmatch(r"[0-9a-z]{8,14}", new_run_id())


def test_threads_never_get_the_same_id():
    """Eight threads draw ten thousand ids without meeting."""
    with ThreadPoolExecutor(8) as pool:
        drawn = [one for ids in pool.map(lambda _: [new_run_id() for _ in range(1250)], range(8)) for one in ids]
    assert len(set(drawn)) == 10_000


def test_another_process_has_other_ids():
    """Two interpreters share no id, however early they draw."""
    line = [sys.executable, "-c", "from synmod.leaves import new_run_id; print(new_run_id())"]
    first, second = (subprocess.run(line, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert first != second


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_other_ids():
    """A fork copies the state of its parent, but not its ids."""
    fork = multiprocessing.get_context("fork")
    received, sent = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: sent.send([new_run_id() for _ in range(100)]))
    child.start()
    theirs = received.recv()
    child.join()
    assert not set(theirs) & {new_run_id() for _ in range(100)}

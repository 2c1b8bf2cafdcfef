"""Atomic files under faults, kills, races and odd targets."""

import errno
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from synmod.errors import SaveError
from synmod.leaves.files import write_atomic

OPERATIONS = ("open", "fsync", "replace", "close", "stat", "lstat", "listdir", "unlink", "mkdir", "chmod")


def run_with_fault(monkeypatch, k, error, path, data):
    """Write once, while the k-th operation fails; returns how many there were, the one that failed, and the error."""
    count, failed = 0, None

    def faulty(name, real):
        def operation(*args, **kwargs):
            nonlocal count, failed
            count += 1
            if count == k:
                failed = name
                raise OSError(error, os.strerror(error))
            return real(*args, **kwargs)

        return operation

    caught = None
    with monkeypatch.context() as patch:
        for name in OPERATIONS:
            patch.setattr(os, name, faulty(name, getattr(os, name)))
        try:
            write_atomic(path, data)
        except SaveError as raised:
            caught = raised
    return count, failed, caught


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_whatever_operation_fails_old_or_new_stands(tmp_path, monkeypatch, error):
    """F5: for every k, failing the k-th operation leaves the old file, or the new one with a text that says so."""
    folder = tmp_path / "made" / "here"
    path = folder / "a.json"
    for k in range(1, 100):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
        count, failed, caught = run_with_fault(monkeypatch, k, error, path, "new")
        if caught is not None:
            assert isinstance(caught.__cause__, OSError)
            assert str(path) in str(caught)
            assert path.read_text() == ("new" if "new file is complete" in str(caught) else "old"), failed
        elif count < k:
            assert path.read_text() == "new"
        assert os.listdir(folder) == ["a.json"]
        if count < k:
            break
    else:
        pytest.fail("the loop never ran out of operations")


def test_a_failing_step_in_a_new_place_leaves_no_file(tmp_path, monkeypatch):
    """F5 where there was no file: still none, and making folders is a named step."""
    for k in range(1, 60):
        path = tmp_path / f"run{k}" / "deep" / "a.json"
        count, _, caught = run_with_fault(monkeypatch, k, errno.ENOSPC, path, "new")
        if count < k:
            assert caught is None
            break
        if caught is not None and "new file is complete" not in str(caught):
            assert not path.exists()


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path):
    """F5: the file system takes a part of the content and no more."""
    path = write_atomic(tmp_path / "a", "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(SaveError, match="writing the temporary file failed"):
            write_atomic(path, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


KILLED = """
import os, sys, time, signal
from synmod.leaves.files import write_atomic
path, times = sys.argv[1], [float(t) for t in sys.argv[2:]]
contents = [letter * 300_000 for letter in (b"a", b"b", b"c")]
for wait in times:
    child = os.fork()
    if child == 0:
        number = 0
        while True:
            write_atomic(path, contents[number % 3])
            number += 1
    time.sleep(wait)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    content = open(path, "rb").read() if os.path.exists(path) else b"a" * 300_000
    assert content in contents, (len(content), set(content))
left = set(os.listdir(os.path.dirname(path))) - {"a.bin"}
assert all(name.startswith(".a.bin.") for name in left), left
"""


@pytest.mark.slow
def test_sixty_kills_leave_whole_files(tmp_path):
    """F1, F2: killed at any moment the target is whole; only temporary files, which begin with a dot, are left."""
    chance = random.Random(7)
    times = [f"{chance.uniform(0.0, 0.03):.4f}" for _ in range(60)]
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "a.bin"), *times], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_two_live_writers_do_not_harm_each_other(tmp_path):
    """F1: many writers of one target all succeed; what stands is one of their contents, whole."""
    path = tmp_path / "a.bin"
    faults = []

    def write(letter):
        try:
            for _ in range(40):
                write_atomic(path, letter * 50_000)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    content = path.read_bytes()
    assert len(content) == 50_000
    assert len(set(content)) == 1
    assert os.listdir(tmp_path) == ["a.bin"]


def test_a_missing_folder_is_made_and_logged(tmp_path, caplog):
    """A mistyped path is noticed: each folder that is made is a warning in the log, a folder that is there is not."""
    for _ in range(2):
        write_atomic(tmp_path / "x" / "y" / "a", "1")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert caplog.messages[-1] == f"{tmp_path / 'x' / 'y' / 'a'}: made the folder {tmp_path / 'x' / 'y'}"


def test_permissions(tmp_path):
    """F4: new files 0600, new folders 0700, replaced files keep their bits."""
    old = os.umask(0o022)
    try:
        path = write_atomic(tmp_path / "x" / "y" / "a", "1")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
        for bits in (0o644, 0o664, 0o400, 0o755):
            path.chmod(bits)
            write_atomic(path, "2")
            assert stat.S_IMODE(path.stat().st_mode) == bits
    finally:
        os.umask(old)


def test_the_final_symlink_is_followed(tmp_path):
    """F3: the link stays, the file it leads to is replaced; also when that file is not there yet."""
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real" / "a.json")
    for text in ("1", "2"):
        assert write_atomic(link, text) == link
        assert link.is_symlink()
        assert (tmp_path / "real" / "a.json").read_text() == text
    assert os.listdir(tmp_path / "real") == ["a.json"]


def test_what_is_no_regular_file_is_never_replaced(tmp_path):
    """A folder, a pipe, a device, a circle of links, an empty path and a NUL are a SaveError; nothing changes."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for bad in (tmp_path, tmp_path / "pipe", tmp_path / "loop", "/dev/null", "", f"{tmp_path}/new/", "a\0b"):
        with pytest.raises(SaveError) as caught:
            write_atomic(bad, "x")
        assert caught.value.problems
    assert sorted(os.listdir(tmp_path)) == ["loop", "pipe"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(SaveError):
        write_atomic(tmp_path / "file" / "below.json", "x")


def test_long_and_odd_names(tmp_path):
    """A name of 255 bytes, one with spaces and newlines, and one that looks like a pattern can all be saved."""
    for name in ("n" * 255, "é" * 127, "a b\nc", "[a]*.json", ".hidden"):
        write_atomic(tmp_path / name, "x")
        write_atomic(tmp_path / name, "y")
        assert (tmp_path / name).read_text() == "y"
    assert len(os.listdir(tmp_path)) == 5


def test_an_interrupt_removes_the_temporary_file(tmp_path, monkeypatch):
    """Ctrl-C in the middle of a write passes, and leaves the old file alone in its folder."""
    path = write_atomic(tmp_path / "a", "old")

    def interrupt(descriptor):
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]

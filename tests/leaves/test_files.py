"""Atomic files under faults, kills, races and odd targets."""

import errno
import fcntl
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import types

import pytest

from synmod.errors import SaveError
from synmod.leaves import files
from synmod.leaves.files import path_below, write_atomic

OPERATIONS = (
    "open", "write", "fsync", "replace", "close", "stat", "fstat", "listdir", "unlink", "mkdir", "chmod", "flock",
)  # fmt: skip


class FaultyOs:
    """Stands in for `os`: the k-th file operation raises, all others are real."""

    def __init__(self, k, error, real=os):
        self.k, self.error, self.real, self.count, self.failed = k, error, real, 0, None

    def __getattr__(self, name):
        found = getattr(self.real, name)
        if name not in OPERATIONS:
            return found

        def operation(*args, **kwargs):
            self.count += 1
            if self.count == self.k:
                self.failed = name
                raise OSError(self.error, os.strerror(self.error))
            return found(*args, **kwargs)

        return operation


def run_with_fault(monkeypatch, k, error, path, data):
    """One write whose k-th operation fails; gives the fake and the error, if any."""
    fake = FaultyOs(k, error)

    def flock(*args):
        fake.count += 1
        if fake.count == fake.k:
            fake.failed = "flock"
            raise OSError(error, os.strerror(error))
        return fcntl.flock(*args)

    locks = types.SimpleNamespace(flock=flock, LOCK_EX=fcntl.LOCK_EX, LOCK_NB=fcntl.LOCK_NB)
    with monkeypatch.context() as patch:
        patch.setattr(files, "os", fake)
        patch.setattr(files, "fcntl", locks)
        try:
            write_atomic(path, data)
        except SaveError as caught:
            return fake, caught
    return fake, None


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EACCES])
@pytest.mark.parametrize("abandoned", [False, True])
def test_whatever_operation_fails_old_or_new_stands(tmp_path, monkeypatch, error, abandoned):
    """F5: for every k, failing the k-th operation leaves the old file, or the new one with a text that says so."""
    folder = tmp_path / "made" / "here"
    path = folder / "a.json"
    for k in range(1, 100):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text("old")
        if abandoned:
            (folder / ".a.json.0123456789abcdef.tmp").write_text("half")
        fake, caught = run_with_fault(monkeypatch, k, error, path, "new")
        if caught is not None:
            assert isinstance(caught.__cause__, OSError)
            assert str(path) in str(caught)
            assert path.read_text() == ("new" if "new file stands" in str(caught) else "old"), fake.failed
        else:
            assert path.read_text() == "new"
        if fake.failed not in {"unlink", None}:
            left = [name for name in os.listdir(folder) if name not in {"a.json", ".a.json.0123456789abcdef.tmp"}]
            assert left == []
        if fake.count < k:
            break
    else:
        pytest.fail("the loop never ran out of operations")
    write_atomic(path, "last")
    assert os.listdir(folder) == ["a.json"]


def test_a_failing_step_in_a_new_place_leaves_no_file(tmp_path, monkeypatch):
    """F5 where there was no file: still none, and making folders is a named step."""
    for k in range(1, 60):
        path = tmp_path / f"run{k}" / "deep" / "a.json"
        fake, caught = run_with_fault(monkeypatch, k, errno.ENOSPC, path, "new")
        if fake.count < k:
            assert caught is None
            break
        if caught is not None and "new file stands" not in str(caught):
            assert not path.exists()


def test_short_writes_are_continued(tmp_path, monkeypatch):
    """F1: `os.write` may take a part only."""

    class Slow(FaultyOs):
        def __getattr__(self, name):
            if name == "write":
                return lambda descriptor, content: os.write(descriptor, content[:7])
            return super().__getattr__(name)

    monkeypatch.setattr(files, "os", Slow(0, 0))
    path = write_atomic(tmp_path / "a", bytes(range(256)))
    assert path.read_bytes() == bytes(range(256))


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
write_atomic(path, b"end")
left = os.listdir(os.path.dirname(path))
assert left == ["a.bin"], left
"""


@pytest.mark.slow
def test_sixty_kills_leave_whole_files_and_nothing_else(tmp_path):
    """F1, F2: killed at any moment the target is whole, and the next save removes what was abandoned."""
    chance = random.Random(7)
    times = [f"{chance.uniform(0.0, 0.03):.4f}" for _ in range(60)]
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "a.bin"), *times], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_two_live_writers_do_not_harm_each_other(tmp_path):
    """F2: many writers of one target all succeed; what stands is one of their contents, whole."""
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


def test_a_held_temporary_file_is_left_alone(tmp_path):
    """F2: only files that nobody holds are removed, and only this target's."""
    held = tmp_path / ".a.json.00000000000000aa.tmp"
    other = tmp_path / ".b.json.00000000000000aa.tmp"
    free = tmp_path / ".a.json.00000000000000bb.tmp"
    for each in (held, other, free):
        each.write_text("half")
    with held.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_atomic(tmp_path / "a.json", "new")
    assert sorted(os.listdir(tmp_path)) == [held.name, other.name, "a.json"]
    write_atomic(tmp_path / "a.json", "new")
    assert sorted(os.listdir(tmp_path)) == [other.name, "a.json"]


def test_a_writer_whose_file_was_taken_away_begins_anew(tmp_path, monkeypatch):
    """F2: after taking the lock the writer checks that the name still leads to its file."""
    real, taken = fcntl.flock, []

    def flock(descriptor, how):
        if not taken:
            taken.append(descriptor)
            for name in os.listdir(tmp_path):
                os.unlink(tmp_path / name)
        return real(descriptor, how)

    monkeypatch.setattr(files.fcntl, "flock", flock)
    write_atomic(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert len(taken) == 1


def test_the_lock_is_held_while_writing(tmp_path, monkeypatch):
    """F2: another process that tries the lock of a file being written does not get it."""
    seen = []
    real = os.fsync

    def fsync(descriptor):
        for name in os.listdir(tmp_path):
            with open(tmp_path / name, "r+") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    seen.append((name, "free"))
                except BlockingIOError:
                    seen.append((name, "held"))
        return real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "a", "new")
    assert [state for name, state in seen if name != "a"] == ["held"]


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


def test_names_from_data_stay_below_their_root(tmp_path):
    """F3: such names are slugged; NUL, `..`, absolute paths and symlinks are refused."""
    assert path_below(tmp_path, "agent/epoch 1:ü") == tmp_path / "agent" / "epoch-1--"
    (tmp_path / "link").symlink_to("/")
    for bad in ("..", "a/../b", "/etc/passwd", "a\0", "", "a//b", "link/etc", "./a"):
        with pytest.raises(SaveError):
            path_below(tmp_path, bad)


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


def test_locks_that_do_not_exist_hinder_nothing(tmp_path, monkeypatch):
    """A file system without locks is written too; nothing there is taken for abandoned."""

    def flock(descriptor, how):
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    (tmp_path / ".a.0123456789abcdef.tmp").write_text("perhaps alive")
    write_atomic(tmp_path / "a", "new")
    assert len(os.listdir(tmp_path)) == 2

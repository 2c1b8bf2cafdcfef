"""Output: atomic files, texts without secrets, and HTML for notebooks.

After a crash at any moment a file has its old content or the new content, never a mix. A reply may quote a key: what is
written goes through `scrub`, where no model is at hand any more.
"""

import errno
import json
import logging
import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from synmod.errors import ArgumentError, SaveError, SaveProblem

from .names import must_be, pointer

_LOG: Final = logging.getLogger("synmod.files")
_UNTOUCHED: Final = "What was there before is untouched."


def path_text(path: str | bytes | os.PathLike[Any]) -> str:
    """Return a path as text.

    Raises:
        ArgumentError: It is not a path, or contains what no path may: NUL or half a character.

    Example:
        >>> path_text(Path("runs/faq-01"))
        'runs/faq-01'
    """
    try:
        text = os.fsdecode(path)
        if b"\0" not in os.fsencode(text):
            return text
    except (TypeError, ValueError):
        pass
    raise ArgumentError(must_be("a path", "one that a file can have", path))


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> Path:
    """Write a file whole or not at all, and return its path.

    Writes and syncs a temporary file in the same folder, renames it to the target and syncs the folder. Missing folders
    are made (0700), with a warning in the log; a new file is 0600, a replaced one keeps its permission bits. A crash
    may leave the temporary file behind; its name begins with a dot, and it may be deleted.

    Args:
        path: The target; a symlink at its end is followed.
        data: The content; a str is written as UTF-8.

    Returns:
        The path as given.

    Raises:
        SaveError: An operation failed; the message names the path and the step, the cause is the OSError. Until the
            rename the old file is intact; if only the last sync of the folder failed, the new file is complete, and
            the message includes that.

    Example:
        >>> import tempfile
        >>> path = write_atomic(tempfile.mkdtemp() + "/notes/a.json", "{}")
        >>> path.read_text()
        '{}'

    Source: SQLite's atomic commit, `write-file-atomic`.
    """
    with stage_file(path, data) as put:
        put()
    return Path(path)


def make_folder(path: str | os.PathLike[str]) -> list[Path]:
    """Make a folder and those above it that are missing, for their owner alone (0700); return those that were made.

    Raises:
        OSError: One cannot be made.
    """
    folder = Path(path)
    missing = [place for place in (*reversed(folder.parents), folder) if not place.is_dir()]
    for place in missing:
        place.mkdir(mode=0o700, exist_ok=True)
    return missing


def make_file(path: str | os.PathLike[str]) -> None:
    """Make an empty file for its owner alone (0600), in folders likewise, unless there is one, which stays as it is.

    For what is written piece by piece, such as databases and logs, since it may hold prompts and data.

    Raises:
        OSError: It cannot be made, or cannot be written.

    Example:
        >>> import tempfile
        >>> make_file(path := tempfile.mkdtemp() + "/logs/calls.jsonl")
        >>> oct(os.stat(path).st_mode & 0o777)
        '0o600'
    """
    make_folder(Path(path).parent)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


@contextmanager
def stage_file(path: str | os.PathLike[str], data: bytes | str) -> Generator[Callable[[], None]]:
    """Write a file aside, and yield what puts it in its place; the end of the block syncs that. See `write_atomic`.

    So several files are put in place only once all of them are written.
    """
    content = data.encode() if isinstance(data, str) else data
    with _step(path, "finding the file"):
        target = Path(os.path.realpath(path))
        mode = _mode_of(target, os.fsdecode(path))
    with _step(path, "making the folder"):
        for folder in make_folder(target.parent):
            _LOG.warning("%s: made the folder %s", os.fsdecode(path), folder)
    temporary = target.with_name(f".{target.name[:50]}.{os.urandom(8).hex()}.tmp")  # at most 222 bytes

    def put() -> None:
        with _step(path, "replacing the file"):
            os.replace(temporary, target)

    try:
        with _step(path, "writing the temporary file"):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
            with open(os.open(temporary, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(mode)
        yield put
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    with _step(path, "the last sync of the folder", "The new file is complete; a power cut could still undo it."):
        _sync_folder(target.parent)


@contextmanager
def _step(path: str | os.PathLike[str], doing: str, outcome: str = _UNTOUCHED) -> Generator[None]:
    """Turn an OSError, or Python's ValueError for a NUL in a path, into a SaveError with the path and the step."""
    try:
        yield
    except (OSError, ValueError) as error:
        name = os.fsdecode(path)
        why = getattr(error, "strerror", None) or str(error)
        problem = SaveProblem(name, f"{doing}: {why}", outcome)
        raise SaveError(f"{name}: {doing} failed: {why}. {outcome}", (problem,)) from error


def _mode_of(target: Path, path: str) -> int:
    """Return the permission bits of the new file: those of the file it replaces (OSError where it is not a file)."""
    if not path or path.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, and a file name is needed", path)
    if target.is_symlink():
        raise OSError(errno.ELOOP, "the symlinks form a loop", path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return 0o600
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is a folder, pipe, socket or device, and only a file can be replaced", path)
    return stat.S_IMODE(mode)


def _sync_folder(folder: Path) -> None:
    """Sync the new name to the disk; a file system that cannot sync folders raises EINVAL."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


# -- secrets -----------------------------------------------------------------------------------------------------------

SHORTEST_SECRET: Final = 8
"""Shorter texts are no secrets: they stand in any prose."""

_MOST: Final = 256  # keys that rotate must not fill the memory
_IN_USE: Final[dict[str, None]] = {}
"""The secrets of the models of this process, the latest last."""


def remember_secrets(secrets: Iterable[str]) -> None:
    """Keep texts out of the files of this process from now on."""
    _IN_USE.update(dict.fromkeys(secrets))
    for oldest in list(_IN_USE)[: max(len(_IN_USE) - _MOST, 0)]:
        _IN_USE.pop(oldest, None)


def scrub(text: str) -> str:
    """Return a text that is to be written, with `***` for every secret in use.

    Example:
        >>> remember_secrets(["sk-of-the-docs-1"])
        >>> scrub('{"reply": "your key sk-of-the-docs-1 is wrong"}')
        '{"reply": "your key *** is wrong"}'
    """
    return without_secrets(text, list(_IN_USE)) if _IN_USE else text


def scrub_json(value: Any) -> Any:
    """Return plain JSON that is to be written, with `***` for every secret in use."""
    if not _IN_USE:
        return value
    text = json.dumps(value, ensure_ascii=False)
    clean = scrub(text)
    return value if clean == text else json.loads(clean)


_AS_IT_IS: Final = re.compile(r"[\w .:=+-]*")  # has the same form everywhere


def _forms(secret: str) -> set[str]:
    """Return the forms of a secret: plain, in JSON, in JSON within JSON, in a pointer; and the `repr` of each."""
    if _AS_IT_IS.fullmatch(secret):
        return {secret}
    in_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    written = {secret, in_json, json.dumps(in_json, ensure_ascii=False)[1:-1], pointer([secret])[1:]}
    return written | {repr(text)[1:-1] for text in written}


def without_secrets(text: str, secrets: Iterable[str], *, cut: bool = False) -> str:
    """Return a text with `***` for every form of every secret; the longest first, since one may contain another.

    Args:
        text: Plain text or JSON.
        secrets: Texts that no file and no error may show.
        cut: Whether parts of the text may have been cut: then the beginning of a secret, of at least eight characters,
            is replaced too if no letter or digit follows it.

    Example:
        >>> without_secrets("got 'key-12345", ["key-123456789"], cut=True)
        "got '***"
    """
    forms = sorted({form for secret in secrets for form in _forms(secret)}, key=len, reverse=True)
    for written in forms:
        text = text.replace(written, "***")
    for written in forms if cut else ():
        parts, done, at = list[str](), 0, text.find(written[:SHORTEST_SECRET])
        while at >= 0:
            end = at + len(os.path.commonprefix([written, text[at : at + len(written)]]))  # noqa: RUF071  (of characters, not paths)
            is_cut = not text[end : end + 1].isalnum()
            if is_cut:
                parts += [text[done:at], "***"]
                done = end
            at = text.find(written[:SHORTEST_SECRET], end if is_cut else at + 1)
        text = "".join([*parts, text[done:]])
    return text


# -- HTML for notebooks ------------------------------------------------------------------------------------------------

_SHOWN: Final = 200  # characters of a cell
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def escape_html(text: str) -> str:
    """Return a text escaped for HTML, also inside double quotes; `html` would import its large table of entities."""
    return text.translate(_ENTITIES)


def html_table(headings: Sequence[str], rows: Iterable[Iterable[str]], *, above: str = "", below: str = "") -> str:
    """Return a table of texts as HTML, with a line above and below it; everything is escaped, long cells are cut.

    Example:
        >>> html_table(["field"], [["<b>"]])
        '<table><thead><tr><th>field</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'

    Source: pandas' `to_html`.
    """

    def cell(text: str) -> str:
        return f"<td>{escape_html(text if len(text) <= _SHOWN else f'{text[:_SHOWN]}...')}</td>"

    head = "".join(f"<th>{escape_html(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    title, note = above and f"<p><b>{escape_html(above)}</b></p>", below and f"<p>{escape_html(below)}</p>"
    return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def html_frame(page: str) -> str:
    """Return a page in a frame, so that its style does not affect the notebook around it.

    Source: folium's pages in notebooks.
    """
    return f'<iframe srcdoc="{escape_html(page)}" sandbox="" style="width: 100%; height: 30rem; border: 0"></iframe>'

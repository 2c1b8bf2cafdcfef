"""Print how large the house is: `python -m tests.house`.

A row per room with its files, lines of code (without docstrings, comments and blanks), its longest function and its
largest import cycle; below them the totals, private attributes that cross files, and how many files one call, one
build, one save and one load touch.
"""

import ast
import asyncio
import statistics
import sys
import tempfile
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import synmod

HOUSE = Path(synmod.__file__).parent

KNOWN_PRIVATE = {
    "_record": "users own the attribute names of a module; its bookkeeping is one slot",
    "_schema": "users own the attribute names of data: fields are read as attributes",
    "_json": "as `_schema`",
    "_model": "as `_schema`",
    "_origin": "as `_schema`, of symbols",
    "_label": "as `_schema`: what messages call a value",
    "_at_fork_reinit": "how the standard library frees its own locks in a forked child",
    "_acquired": "aiohttp has no public way to close connections whose loop was closed before",
    "_conns": "as `_acquired`",
    "_closed": "as `_acquired`",
    "_transport": "as `_acquired`, of connections by TLS",
}

PYTHONS_OWN = {"_exit", "_replace", "_get_running_loop", "_fields", "_make"}
"""Documented names of Python's own that begin with an underscore."""


@dataclass(frozen=True)
class Chapter:
    """One file: its room, its lines of code, how many of them import, its longest function, what it imports."""

    name: str
    room: str
    lines: int
    imports: int
    longest: int
    needs: frozenset[str]
    private: tuple[tuple[str, int], ...]


def _code_lines(text, nodes):
    """Return the numbers of the lines that hold code."""
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    docs = set()
    for node in nodes:
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            docs.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(map(str.strip, text.splitlines()), start=1)
    return {number for number, line in lines if line and not line.startswith("#")} - docs


def _needed(node, package, paths):
    """Return the files that an import statement in `package` loads: `from room import file` needs the file alone."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in paths]
    base = node.module or ""
    if node.level:
        parent = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
        base = f"{parent}.{base}" if base else parent
    names = (f"{base}.{alias.name}" if f"{base}.{alias.name}" in paths else base for alias in node.names)
    return [name for name in names if name in paths]


def _is_for_types(node):
    """Whether a statement is `if TYPE_CHECKING:`, whose imports do not happen."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _reaches(nodes):
    """Return the private attributes, with their lines, that this file reads or sets but does not define."""
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    reads = [node for node in nodes if isinstance(node, ast.Attribute)]
    on_self = [node for node in reads if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")]
    own |= {node.attr for node in on_self if isinstance(node.ctx, ast.Store)}
    return tuple(
        (node.attr, node.lineno)
        for node in reads
        if node.attr.startswith("_")
        and not node.attr.endswith("__")
        and node.attr not in own
        and node.attr not in PYTHONS_OWN
        and node not in on_self
    )


def chapters():
    """Return every file of the house."""
    paths = {}
    for path in sorted(HOUSE.rglob("*.py")):
        parts = ("synmod", *path.relative_to(HOUSE).with_suffix("").parts)
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = []
    for name, path in paths.items():
        text = path.read_text(encoding="utf-8")
        nodes = [*ast.walk(ast.parse(text))]
        code = _code_lines(text, nodes)
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        imports = [node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom))]
        import_lines = {line for node in imports for line in range(node.lineno, node.end_lineno + 1)}
        for_types = {inner for node in nodes if _is_for_types(node) for part in node.body for inner in ast.walk(part)}
        needs = {path for node in imports if node not in for_types for path in _needed(node, package, paths)} - {name}
        functions = [node for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        longest = max((len(code & set(range(f.lineno, f.end_lineno + 1))) for f in functions), default=0)
        room = name.split(".")[1] if name.count(".") > 1 or (path.name == "__init__.py" and "." in name) else "synmod"
        found.append(
            Chapter(name, room, len(code), len(import_lines & code), longest, frozenset(needs), _reaches(nodes))
        )
    return found


def cycles(files):
    """Return the groups of files that import each other in a circle, largest first."""
    needs = {file.name: set(file.needs) for file in files}
    circles = []
    while True:
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            circle = set(error.args[1])
            group = _component(needs, next(iter(circle)))
            circles.append(sorted(group))
            needs = {name: below - group for name, below in needs.items() if name not in group}
        else:
            return sorted(circles, key=len, reverse=True)


def _component(needs, start):
    """Return the strongly connected component of `start`."""
    above = {}
    for name, below in needs.items():
        for one in below:
            above.setdefault(one, set()).add(name)
    return _reachable(needs, start) & _reachable(above, start)


def _reachable(edges, start):
    """Return what can be reached from `start`, itself included."""
    seen, pending = {start}, [start]
    while pending:
        for one in edges.get(pending.pop(), ()):
            if one not in seen:
                seen.add(one)
                pending.append(one)
    return seen


class _Touched:
    """A block that notes which files of the house are entered while it is open."""

    def __enter__(self):
        self.files = set()
        sys.setprofile(self._note)
        return self

    def _note(self, frame, event, argument):
        if event == "call" and frame.f_code.co_filename.startswith(str(HOUSE)):
            self.files.add(frame.f_code.co_filename)

    def __exit__(self, *failure):
        sys.setprofile(None)


def hops():
    """Return how many files one operation of each kind touches."""
    import synmod as sm
    from synmod.testing import ScriptedLM

    class Query(sm.DataModel):
        query: str

    class Answer(sm.DataModel):
        answer: str

    class Plain(sm.Module):
        async def call(self, inputs):
            return inputs

    class Built(sm.Module):
        async def build(self, inputs):
            self.notes = self.add_variable({}, name="notes")

        async def call(self, inputs):
            return inputs

    async def calls():
        counts = {}
        query = sm.JsonDataModel({"query": "why"}, data_model=Query)
        generator = sm.Generator(Answer, language_model=ScriptedLM([{"answer": "so"}] * 9))
        for name, module, warm in (
            ("a call", Plain(), 3),
            ("a Generator call", generator, 3),
            ("a first call with build", Built(), 0),
        ):
            if not warm:
                await Built()(query)
            for _ in range(warm):
                await module(query)
            with _Touched() as touched:
                await module(query)
            counts[name] = len(touched.files)
        return counts

    counts = asyncio.run(calls())
    model = "embedded/nearest"
    program = sm.Sequential([sm.Generator(Answer, language_model=model), sm.Generator(Answer, language_model=model)])
    asyncio.run(sm.build(program, Query))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.json"
        for _ in range(2):
            with _Touched() as saving:
                sm.save(program, path)
            with _Touched() as loading:
                sm.load(path)
    return {**counts, "a save": len(saving.files), "a load": len(loading.files)}


def table():
    """Return the whole table as text."""
    from tests import words

    files = chapters()
    circles = cycles(files)
    rows = [f"{'room':<10}{'files':>7}{'lines':>8}{'longest function':>18}{'largest cycle':>15}"]
    for room in sorted({file.room for file in files}):
        inside = [file for file in files if file.room == room]
        largest = max((len(group) for group in circles if {file.name for file in inside} & set(group)), default=0)
        total, longest = sum(file.lines for file in inside), max(file.longest for file in inside)
        rows.append(f"{room:<10}{len(inside):>7}{total:>8,}{longest:>18}{largest:>15}")
    lines = sum(file.lines for file in files)
    rows.append(f"{'all':<10}{len(files):>7}{lines:>8,}")
    median = statistics.median(file.lines for file in files)
    rows.append(
        f"median file {median:.0f} lines; imports {sum(file.imports for file in files) / lines:.1%} of the lines"
    )
    private = [(name, file.name, line) for file in files for name, line in file.private]
    unknown = sorted({reach for reach in private if reach[0] not in KNOWN_PRIVATE})
    rows.append(f"private attributes across files: {len(private) - len(unknown)} known, {len(unknown)} others")
    rows += [f"  {name}: {reason}" for name, reason in KNOWN_PRIVATE.items()]
    rows += [f"  ! {file}:{line} {name}" for name, file, line in unknown]
    rows += [f"files touched by {name}: {count}" for name, count in hops().items()]
    rows += [f"{name}: {count:.3g}" for name, count in words.measure().items()]
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())

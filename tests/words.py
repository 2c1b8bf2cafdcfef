"""Count what makes names and docstrings hard to read, as shares or numbers; `python -m tests.house` prints them.

A function is a verb and a value a noun: `find_route`, not `found`; a docstring says what a reader does not know yet.
"""

import ast
import re
from collections import Counter, defaultdict

from tests.house import HOUSE

PARTICIPLES = {
    "begun", "built", "chosen", "drawn", "found", "given", "grown", "held", "kept", "known", "left", "made", "met",
    "sent", "shown", "sown", "spoilt", "taken", "told", "written",
}  # fmt: skip
VERBS = {"bring", "embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "string"}
NO_PARTICIPLES = {"during", "everything", "missing", "nothing", "pending", "remaining", "sibling", "something", "thing"}
VAGUE = {
    "answered", "asked", "begun", "came", "drawn", "each", "found", "given", "held", "kept", "known", "listed", "made",
    "named", "offered", "one", "other", "others", "seen", "shown", "taken", "told", "wanted",
}  # fmt: skip
RIDDLE = re.compile(
    r"^\s*\w+: What |\bstands? (in|for|there|behind|above|below|beside|as|at|on|where)\b|\banew\b"
    r"|\b(there|they|it) (is|are) (no|none)\b[^'\"`]*$|\bis no (?!longer|more|t)\w+",
    re.MULTILINE,
)


def is_participle(name):
    """Whether the first word of a name is a past or present participle."""
    first = name.strip("_").split("_")[0]
    if first in VERBS | NO_PARTICIPLES:
        return False
    return first in PARTICIPLES or (len(first) > 4 and first.endswith(("ed", "ing")))


def _bound_name(node):
    """Return the name that a node binds; None for none."""
    if isinstance(node, ast.arg):
        return node.arg
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None


def measure():
    """Return the shares of participles and of vague names in percent, and the numbers of the rest."""
    count, homes = Counter(), defaultdict(set)
    for path in sorted(HOUSE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        count["fmt: skip"] += text.count("fmt: skip")
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                count["riddles"] += len(RIDDLE.findall(ast.get_docstring(node) or ""))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                is_property = any(isinstance(mark, ast.Name) and "property" in mark.id for mark in node.decorator_list)
                count["functions"] += not is_property
                count["participles"] += not is_property and is_participle(node.name)
            if (name := _bound_name(node)) is not None:
                count["names"] += 1
                count["vague"] += name in VAGUE
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and path.name != "__init__.py":
                homes[node.name].add(path)
    return {
        "functions named by a participle, %": 100 * count["participles"] / count["functions"],
        "vague names, %": 100 * count["vague"] / count["names"],
        "riddles in docstrings": count["riddles"],
        "class names in several files": sum(len(paths) > 1 for paths in homes.values()),
        "fmt: skip": count["fmt: skip"],
    }

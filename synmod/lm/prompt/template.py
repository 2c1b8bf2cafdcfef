"""Templates of a prompt: the five slots in another order, and nothing else that could act."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from synmod.errors import ConfigError
from synmod.leaves.names import did_you_mean
from synmod.lm.prompt.slots import SLOTS

_ROLES: Final = ("system", "user")
_SLOT: Final = re.compile(r"\{(" + "|".join(SLOTS) + r")\}")
_BRACES: Final = re.compile(r"\{\s*([A-Za-z_][A-Za-z_ ]{0,38})\s*\}")


class Template:
    r"""One text for the system turn and one for the user turn, with slots in braces.

    Braces that name no slot are plain text. Values are put in, never searched for slots.

    Args:
        texts: `{"system": ..., "user": ...}`; a turn may be left out, `{inputs}` in the user turn may not.

    Raises:
        ConfigError: No mapping, another key, a text that is no str, a near miss of a slot (`{input}`), no `{inputs}` in
            the user turn, or `{inputs}` in the system turn.

    Example:
        >>> template = Template({"system": "{instructions}", "user": "{inputs}\n{examples}"})
        >>> template.filled("user", {"examples": "E"})
        ('', '\nE')

    Source: str.format without its attribute access.
    """

    __slots__ = ("_pieces",)

    def __init__(self, texts: Mapping[str, str]) -> None:
        if not isinstance(texts, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  (a file may hold anything)
            raise ConfigError(
                f"template is a {type(texts).__name__}; it must be a mapping "
                "such as {'system': '{instructions}', 'user': '{inputs}'}."
            )
        for role, text in texts.items():
            if role not in _ROLES:
                raise ConfigError(
                    f"template: {role!r} is no turn of a prompt; those are 'system' and 'user'."
                    f"{did_you_mean(role, _ROLES)}"
                )
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (a file may hold anything)
                raise ConfigError(f"template: the {role} turn is a {type(text).__name__}; it must be a str.")
            _refuse_near_misses(role, text)
        # Alternating: plain text, slot name, plain text, ...
        self._pieces = {role: _SLOT.split(texts.get(role, "")) for role in _ROLES}
        if "inputs" in self._pieces["system"][1::2]:
            raise ConfigError(
                "template: {inputs} stands in the system turn, where data would become instructions; "
                "put it into the user turn."
            )
        if "inputs" not in self._pieces["user"][1::2]:
            raise ConfigError("template: the user turn lacks {inputs}, so the model would never see what it is asked.")

    def filled(self, role: str, texts: Mapping[str, str]) -> tuple[str, ...]:
        """Put every slot but the inputs into one turn, in one pass.

        Args:
            role: `system` or `user`.
            texts: The slots as texts; one that is missing is empty.

        Returns:
            The turn as the pieces between which the inputs stand.
        """
        pieces = self._pieces[role]
        filled = [pieces[0]]
        for slot, plain in zip(pieces[1::2], pieces[2::2], strict=True):
            if slot == "inputs":
                filled.append(plain)
            else:
                filled[-1] += texts.get(slot, "") + plain
        return tuple(filled)


def _refuse_near_misses(role: str, text: str) -> None:
    """Raise ConfigError for braces that hold nearly, but not exactly, the name of a slot."""
    for found in _BRACES.finditer(text):
        if found[0][1:-1] in SLOTS:
            continue
        if near := did_you_mean(found[1].strip(), SLOTS):
            raise ConfigError(
                f"template: {found[0]} in the {role} turn is no slot; the slots are "
                f"{', '.join('{' + slot + '}' for slot in SLOTS)}.{near}"
            )

"""Every layout and level is a text in the repository, so that no prompt changes without being read."""

import pytest

from tests.golden.prompts import FOLDER, every, prompt


@pytest.mark.parametrize(("layout", "level"), every())
def test_a_prompt_is_that_of_its_file(layout, level):
    """What is sent, turn by turn, and the fields beside it."""
    assert prompt(layout, level) == (FOLDER / f"{layout}-{level}.txt").read_text()

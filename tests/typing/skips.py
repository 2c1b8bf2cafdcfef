"""What a type checker knows of skips; never run."""

from typing import assert_type

import synmod as sm
from synmod.skip import Namespace, SkipFrame, current_skip_frame, pop, skip_layout, skippable, stash, use_skip_frame


class Query(sm.DataModel):
    question: str


@skippable(stash={"doc": Query}, pop=["other"])
class Both(sm.Module):
    async def call(self, inputs: sm.JsonDataModel[Query]) -> sm.JsonDataModel[Query]:
        stash("doc", inputs, replace=True)
        pop("other", default=None)
        return inputs


async def uses(query: Query) -> None:
    assert_type(await Both()(query), sm.JsonDataModel[Query])
    assert_type(Both().isolate(Namespace("one")), Both)
    assert_type(current_skip_frame(), SkipFrame | None)
    assert_type(sorted(Both.stashable_names), list[str])
    with use_skip_frame(SkipFrame()) as frame:
        assert_type(frame, SkipFrame)
    assert_type(skip_layout(Both())[None, "doc"], tuple[str, str])

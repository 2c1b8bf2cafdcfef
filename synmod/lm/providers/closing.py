"""What litellm leaves in a loop: a task that logs, and pooled clients; both end here."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

__all__ = ["close_leftovers"]


async def close_leftovers() -> None:
    """Stop litellm's logging task in the running loop, and close the clients that it keeps for this loop."""
    loop = asyncio.get_running_loop()
    logging_worker: Any = sys.modules.get("litellm.litellm_core_utils.logging_worker")
    worker = getattr(logging_worker, "GLOBAL_LOGGING_WORKER", None)
    if worker is not None and getattr(worker, "_bound_loop", None) is loop:
        await worker.stop()
    litellm: Any = sys.modules.get("litellm")
    kept: Any = getattr(getattr(litellm, "in_memory_llm_clients_cache", None), "cache_dict", {})
    for key in [key for key in list(kept) if str(key).endswith(f"-{id(loop)}")]:
        client = kept.pop(key, None)
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        if close is not None:
            closing = close()
            if hasattr(closing, "__await__"):
                await closing

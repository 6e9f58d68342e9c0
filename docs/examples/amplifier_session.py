"""Amplifier: a session whose mount plan has the hook module in it.

Needs: ctxctl amplifier-core, and the modules that the plan names; a bundle or a profile names the hook in the
same way.
"""

import asyncio
import sys

from amplifier_core import AmplifierSession

PLAN = {
    "session": {"orchestrator": "loop-basic", "context": "context-simple"},
    "providers": [{"module": "provider-anthropic"}],
    "hooks": [{"module": "hooks-ctxctl", "config": {"path": "run.jsonl"}}],
}


async def main(prompt: str) -> None:
    """One prompt."""
    session = AmplifierSession(PLAN)
    await session.initialize()
    try:
        print(await session.execute(prompt))
    finally:
        await session.cleanup()


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "Why is the sky blue?"))

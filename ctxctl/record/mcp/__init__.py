"""`ctxctl record --mcp -- SERVER`: stands between an MCP client and its server, on stdio.

The server runs as if its client had started it: bytes pass unchanged, standard error, signals and exit code
are its own.  A thread that the traffic never waits for records what was said.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxctl.record.options import Options


def tap(command: list[str], options: Options) -> int:
    """Run a server and record what it and its client say; return the server's exit code.

    Where a signal killed the server, the same signal kills this process after the summary.  A server that
    cannot be started gives 127 (not found) or 126, as in shells.  The server also runs where the trace cannot
    be written.
    """
    from ctxctl.record.mcp.messages import Listener
    from ctxctl.record.mcp.process import Server, end_as

    recorder = options.recorder(must=False)
    name = Path(command[0]).name
    options.begin(f"recording what {name} and its client say")
    listener = Listener(recorder, options.session)
    try:
        server = Server(command, listener.take)
    except OSError as error:
        options.say(f"ctxctl: error: cannot run {command[0]}: {os.strerror(error.errno or 0)}")
        options.finish(recorder)
        return 127 if isinstance(error, FileNotFoundError) else 126
    code = server.run()
    listener.close()
    options.finish(recorder, *([] if options.quiet else listener.summary_lines(name)))
    return end_as(code)

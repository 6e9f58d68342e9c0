"""`ctxctl record --mcp -- SERVER`: between an MCP client and its server, on stdio.

The server runs as if its client had started it: bytes pass without anybody looking at them, standard error,
signals and exit code are its own.  What was said is recorded beside that, by a thread that the traffic never
waits for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctxctl.record.options import Options


def tap(command: list[str], options: Options) -> int:
    """Run a server and record what it and its client say; the exit code is the server's.

    A server that a signal killed kills this process by the same signal, after what is said at the end.
    A server that cannot be started gives 127 (not found) or 126, as in shells.  A trace that cannot be
    written does not keep the server from running.
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

"""Connections that do not end well: the other side is to notice, and to get what was sent before."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_LINGER: Final = struct.pack("ii", 1, 0)
"""Closing sends a reset, and does not wait."""
_FLUSH: Final = 5.0
"""Seconds that what came before a reset has to be delivered."""


def reset(transport: asyncio.Transport) -> None:
    """End a connection so that the other side notices that it did not end well."""
    opened: Any = transport.get_extra_info("socket")
    if opened is not None and transport.get_extra_info("sslcontext") is None:
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
    transport.abort()


async def reset_when_flushed(transport: asyncio.Transport) -> None:
    """A reset throws away what was not delivered: wait for that, and not forever."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _FLUSH
    opened: Any = transport.get_extra_info("socket")
    pause = 0.001
    while not transport.is_closing() and loop.time() < until:
        if not transport.get_write_buffer_size() and not _undelivered(opened):
            break
        await asyncio.sleep(pause)
        pause = min(2 * pause, 0.1)
    reset(transport)


def _undelivered(opened: Any) -> int:
    """Bytes that the other side's system has not got; 0 where that cannot be told."""
    import fcntl
    import termios

    command: Callable[..., Any] = fcntl.ioctl
    try:
        return int(struct.unpack("i", command(opened.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except (OSError, ValueError):
        return 0

"""Run the command line in this interpreter with the network cut, and report what it loaded and what it tried.

    python child.py REPORT ARGUMENT…

REPORT is written as JSON: ``modules`` (all of `sys.modules` at the end), ``network`` (audit events that would
have left the machine; each was refused), ``patience`` (how many objects the garbage collector waited for).
Stdout, stderr and the exit code are the command's own.
"""

from __future__ import annotations

import gc
import json
import sys

NETWORK = {
    "socket.connect",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
    "socket.sendto",
    "urllib.Request",
    "http.client.connect",
}


def main() -> int:
    report, *arguments = sys.argv[1:]
    tried: list[str] = []

    def refuse(event: str, args: object) -> None:
        if event in NETWORK:
            tried.append(event)
            raise OSError(f"no network here: {event}")

    sys.addaudithook(refuse)
    # As for the installed script: the directory of this file is not on the path.
    sys.path.pop(0)
    sys.argv = ["ctxctl", *arguments]
    try:
        from ctxctl.__main__ import main as command

        return int(command() or 0)
    finally:
        with open(report, "w", encoding="utf-8") as out:
            told = {"modules": sorted(sys.modules), "network": tried, "patience": gc.get_threshold()[0]}
            json.dump(told, out)


if __name__ == "__main__":
    sys.exit(main())

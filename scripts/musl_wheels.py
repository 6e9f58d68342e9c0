"""Wheels for musl (Alpine) beside the one for all, without what has no wheel there (run by ``make dist``).

    musl_wheels.py dist/ctxctl-X.Y.Z-py3-none-any.whl

No marker of a requirement tells musl from glibc, but a wheel's tag does, and an installer takes the one with
the narrowest tag that fits.  The files are the same; of the metadata, `WITHOUT` is left out: `ctxctl.linear`
goes on without it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

WITHOUT = frozenset({"google-re2"})
"""Requirements that have no wheel for musl, and that ctxctl runs without."""
TAGS = ("musllinux_1_1_x86_64", "musllinux_1_1_aarch64")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def main() -> int:
    """Write the wheels beside the one that is named."""
    (name,) = sys.argv[1:]
    for tag in TAGS:
        print(derived(Path(name), tag))
    return 0


def derived(wheel: Path, tag: str) -> Path:
    """A wheel for one platform, made of the one for all; the same bytes each time."""
    made = wheel.with_name(wheel.name.replace("-none-any.whl", f"-none-{tag}.whl"))
    assert made != wheel, wheel.name
    record: list[str] = []
    with zipfile.ZipFile(wheel) as given, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for info in given.infolist():
            data = given.read(info)
            if info.filename.endswith(".dist-info/METADATA"):
                data = _without(data)
            elif info.filename.endswith(".dist-info/WHEEL"):
                data = data.replace(b"Tag: py3-none-any", f"Tag: py3-none-{tag}".encode())
                data = data.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
            if info.filename.endswith(".dist-info/RECORD"):
                data = "".join([*record, f"{info.filename},,\n"]).encode()
            else:
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{info.filename},sha256={digest},{len(data)}\n")
            out.writestr(info, data, zipfile.ZIP_DEFLATED)
    return made


def _without(metadata: bytes) -> bytes:
    head, end, rest = metadata.partition(b"\n\n")
    lines = [line for line in head.split(b"\n") if not _is_left_out(line.decode())]
    assert len(lines) == len(head.split(b"\n")) - len(WITHOUT), "a requirement that is not there"
    return b"\n".join(lines) + end + rest


def _is_left_out(line: str) -> bool:
    if not line.startswith("Requires-Dist: "):
        return False
    found = _NAME.match(line.removeprefix("Requires-Dist: "))
    return found is not None and found[0].lower().replace("_", "-") in WITHOUT


if __name__ == "__main__":
    sys.exit(main())

"""Digests with a dataset's key: equal texts meet by them, and nobody without the key can try a guess.

The key is 32 random bytes and is never in the dataset.  A digest has a use, so that the digests of one text
for two uses have nothing in common.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from itertools import count
from typing import Final, Literal

KEY_SIZE: Final = 32
"""Bytes of a dataset's key."""
_SIZE: Final = 8
_NONCE: Final = 16
_BLOCK: Final = 64

Use = Literal["source", "session", "item", "content", "request", "host", "thread", "name"]


class KeyedDigests:
    """Digests of one dataset.

    Args:
        key: Its key; raises ValueError where that is not `KEY_SIZE` bytes.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_SIZE:
            raise ValueError(f"a key has {KEY_SIZE} bytes, and this one {len(key)}")
        self._key = key

    def number(self, use: Use, data: bytes) -> int:
        """A digest of 64 bits."""
        return int.from_bytes(blake2b(data, digest_size=_SIZE, key=self._key, person=use.encode()).digest())

    def word(self, use: Use, data: bytes) -> str:
        """The same as 16 hex digits."""
        return f"{self.number(use, data):016x}"

    @property
    def check(self) -> str:
        """What tells whether a key is the one of a dataset; says nothing else about it."""
        return blake2b(b"", digest_size=16, key=self._key, person=b"check").hexdigest()

    def seal(self, data: bytes) -> bytes:
        """Bytes that only the key makes readable; the same for the same bytes."""
        nonce = blake2b(data, digest_size=_NONCE, key=self._key, person=b"seal").digest()
        return nonce + self._masked(nonce, data)

    def unseal(self, sealed: bytes) -> bytes | None:
        """What was sealed; None where it was not by this key, or was changed."""
        nonce = sealed[:_NONCE]
        data = self._masked(nonce, sealed[_NONCE:])
        known = blake2b(data, digest_size=_NONCE, key=self._key, person=b"seal").digest()
        return data if known == nonce else None

    def _masked(self, nonce: bytes, data: bytes) -> bytes:
        """The bytes combined with a stream that key and nonce give: twice is not at all."""
        size = len(data)
        stream = b"".join(
            blake2b(
                block.to_bytes(8), digest_size=_BLOCK, key=self._key, salt=nonce, person=b"stream"
            ).digest()
            for block, _ in zip(count(), range(0, size, _BLOCK), strict=False)
        )
        return (int.from_bytes(data) ^ int.from_bytes(stream[:size])).to_bytes(size)


@lru_cache(maxsize=4)
def digests_of(key: bytes) -> KeyedDigests:
    """The digests of a key."""
    return KeyedDigests(key)

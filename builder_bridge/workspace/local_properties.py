"""The keys of `local.properties` that name folders of the host, which a phone does not have."""

import re

HOST_KEYS = ("sdk.dir", "ndk.dir", "cmake.dir", "android.dir")
_HOST_LINE = re.compile(rf"^[ \t\f]*({'|'.join(map(re.escape, HOST_KEYS))})[ \t\f]*[=: \t]".encode())


def without_host_folders(content: bytes) -> bytes:
    """Give the same properties without the host's folders; other lines stay byte for byte.

    A line that ends in an odd number of backslashes goes on in the next one, as
    `java.util.Properties` reads it, so its continuation goes too.
    """
    kept: list[bytes] = []
    is_dropping = False
    for line in content.splitlines(keepends=True):
        is_dropping = is_dropping or _HOST_LINE.match(line) is not None
        if not is_dropping:
            kept.append(line)
        body = line.rstrip(b"\r\n")
        trailing = len(body) - len(body.rstrip(b"\\"))
        is_dropping = is_dropping and trailing % 2 == 1
    return b"".join(kept)

"""Only the host's folders leave `local.properties`."""

import pytest

from builder_bridge.workspace.local_properties import without_host_folders


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"sdk.dir=/x\n", b""),
        (b"a=1\r\nsdk.dir=C\\:\\\\sdk\r\nb=2\r\n", b"a=1\r\nb=2\r\n"),
        (b"  cmake.dir : /x\nkey=v", b"key=v"),
        (b"sdk.dir=/a\\\n  /b\nkey=v\n", b"key=v\n"),
        (b"sdk.dir=C\\:\\\\\nkey=v\n", b"key=v\n"),
        (b"# sdk.dir=/x\nsdk.directory=1\nmy.sdk.dir=2\n", b"# sdk.dir=/x\nsdk.directory=1\nmy.sdk.dir=2\n"),
        (b"", b""),
    ],
)
def test_lines_of_host_folders_go_and_all_others_stay(before: bytes, after: bytes) -> None:
    assert without_host_folders(before) == after

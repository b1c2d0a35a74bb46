"""Paths of the phone in the log, paths of the workspace on the host."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.log.places import PathMap, decoded

PATHS = PathMap.of(["/data/data/org.builder/files/p", "/data/user/0/org.builder/files/p", "/work dir"])


@pytest.mark.parametrize(
    ("file", "path"),
    [
        ("/data/data/org.builder/files/p/app/A.kt", "app/A.kt"),
        ("/data/user/0/org.builder/files/p/app/A.kt", "app/A.kt"),
        ("/work%20dir/My%20App/A.kt", "My App/A.kt"),
        ("/work dir/100%/A.kt", "100%/A.kt"),
        ("app/A.kt", "app/A.kt"),
        ("app\\A.kt", "app/A.kt"),
        ("/data/data/org.other/files/pocketbuild/trees/a5ec7d04357a3347553a/app/A.kt", "app/A.kt"),
        ("/data/local/tmp/pocketbuild/pocketbuild/trees/a5ec7d04357a3347553a/A.kt", "A.kt"),
        ("/data/pocketbuild/trees/a5ec7d04357a3347553a/../../A.kt", None),
        ("/data/pocketbuild/trees/mine/A.kt", None),
        ("/opt/A.kt", None),
        ("/data/data/org.builder/files/pp/A.kt", None),
        ("/data/data/org.builder/files/p/../../secret", None),
        ("../A.kt", None),
        ("C:\\p\\A.kt", None),
        ("/C:/p/A.kt", None),
    ],
)
def test_a_path_is_the_workspaces_or_none(file: str, path: str | None) -> None:
    assert PATHS.to_workspace(file) == path


def test_windows_paths_out_of_uris_lose_their_leading_slash() -> None:
    assert decoded("/C:/My%20App/A.kt") == "C:/My App/A.kt"


@given(st.text(max_size=30))
def test_no_path_leads_out_of_the_workspace(text: str) -> None:
    path = PATHS.to_workspace(text)
    assert path is None or (not path.startswith("/") and ".." not in path.split("/"))

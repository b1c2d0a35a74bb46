from pathlib import Path

from orchestrator.source_files import MAX_SOURCE_BYTES, sources_in


def test_sources_are_read_inside_the_workspace_only(tmp_path: Path) -> None:
    (tmp_path / "w/app").mkdir(parents=True)
    (tmp_path / "w/app/A.kt").write_bytes(b"val a = \xff\n")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "w/out").symlink_to(tmp_path / "secret")
    (tmp_path / "w/in").symlink_to("app/A.kt")
    read = sources_in(tmp_path / "w")
    assert read("app/A.kt") == read("in") == "val a = \ufffd\n"
    for outside in ("out", "../secret", str(tmp_path / "secret"), "app", "app/B.kt", "a\0b", "x" * 5000):
        assert read(outside) is None
    with (tmp_path / "w/app/A.kt").open("r+b") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    assert read("app/A.kt") is None

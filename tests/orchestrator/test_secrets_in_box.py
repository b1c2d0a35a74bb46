"""Real Gradle signs a release with a keystore and a password that are secrets, from command to APK."""

import base64
import json
import secrets as randomness
import shutil
from pathlib import Path

import pytest

from builder_bridge.box import Box
from builder_bridge.inspect.reader import inspect_package
from builder_bridge.inspect.rendering import package_to_json
from tests.keystores import make_keystore
from tests.orchestrator.cli.test_build import pocketbuild
from tests.orchestrator.test_secrets import holders

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.xdist_group("agp")]
SAMPLE = Path(__file__).parents[1] / "workspaces/hello"
SIGNED = """
android {
    lintOptions.checkReleaseBuilds false
    signingConfigs {
        release {
            storeFile file(releaseStore)
            storePassword releasePassword
            keyAlias 'release'
            keyPassword findProperty('releasePassword')
        }
    }
    buildTypes { release { signingConfig signingConfigs.release } }
}
println "the password is ${releasePassword}, the store $releaseStore"
"""
BUILD_S = 900.0
"""A busy machine takes minutes for what takes a quarter of one."""


def test_a_release_is_signed_by_a_secret_key_of_which_nothing_is_left(
    agp_box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, data = tmp_path / "hello", tmp_path / "data"
    shutil.copytree(SAMPLE, workspace)
    with (workspace / "app/build.gradle").open("a") as script:
        script.write(SIGNED)
    settings = workspace / "settings.gradle"
    settings.write_text(settings.read_text() + "\nprintln 'settings know it: ' + releasePassword\n")
    # In gradle.properties of the project, too: what is given for this build wins.
    with (workspace / "gradle.properties").open("a") as properties:
        properties.write("releasePassword=of the project\n")
    password = f'P&ss."{randomness.token_hex(8)}/*'
    store, certificate = make_keystore("release", password)
    (tmp_path / "release.p12").write_bytes(store)
    monkeypatch.setenv("releasePassword", password)
    done = pocketbuild(
        data,
        *("build", str(workspace), "--task", ":app:assembleRelease", "--json", "--quiet"),
        *("--secret", "releasePassword", "--secret-file", f"releaseStore={tmp_path}/release.p12"),
        *("--device", f"127.0.0.1:{agp_box.port}", "--output", str(tmp_path / "out")),
        cwd=tmp_path,
        timeout_s=BUILD_S,
    )
    log = (tmp_path / "out/build.log").read_text()
    assert done.returncode == 0, done.stdout + done.stderr + log
    (package,) = [file for file in json.loads(done.stdout)["files"] if file.endswith(".apk")]
    assert certificate in json.dumps(package_to_json(inspect_package(Path(package))))
    assert "the password is ***, the store /data/" in log
    assert "settings know it: ***" in log
    needles = (password.encode(), json.dumps(password)[1:-1].encode(), store, base64.b64encode(store)[:60])
    for folder in ("data/local/tmp/pocketbuild", "data/data/org.pocketbuild.builder/files"):
        assert holders(agp_box.root / folder, *needles) == []
    assert holders(data, *needles) == []
    assert holders(tmp_path / "out", *needles) == []

"""The preflight stops what cannot work, names where, and otherwise only notes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.workspace.preflight import Needs, check_project

NEEDS = Needs(gradle="8.14.3", agp=("8.11.0",), platforms=("34", "35"))


def check(
    texts: dict[str, str], *others: str, project_dir: str = ".", needs: Needs = NEEDS
) -> dict[str, tuple[int, bool]]:
    texts = {"settings.gradle": ""} | texts
    findings = check_project(frozenset(texts) | set(others), texts, project_dir, needs)
    return {finding.code: (finding.line, finding.is_fatal) for finding in findings}


CMAKE = "android {\n  externalNativeBuild {\n    cmake { path 'CMakeLists.txt' }\n  }\n}"


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("app/build.gradle", CMAKE, {"needs_ndk": (2, True)}),
        ("app/build.gradle", "/*" + CMAKE + "*/", {}),
        ("app/build.gradle.kts", "android {\n compileSdk = 36\n}", {"needs_platform": (2, True)}),
        ("app/build.gradle", "compileSdkVersion 23", {"needs_platform": (1, True)}),
        ("app/build.gradle", "compileSdkVersion(35)", {}),
        ("app/build.gradle", "// compileSdk 36\ncompileSdk 34", {}),
        ("app/build.gradle", "compileSdk libs.versions.sdk.get().toInteger()", {}),
        ("settings.gradle", "\nincludeBuild('../shared')", {"include_outside": (2, True)}),
        ("settings.gradle.kts", 'includeBuild("build-logic")', {"include_empty": (1, True)}),
        ("settings.gradle.kts", 'pluginManagement { includeBuild("gradle") }', {"include_empty": (1, True)}),
        ("app/build.gradle", "storeFile file('/home/me/key.jks')", {"keystore_on_host": (1, False)}),
        ("app/build.gradle", "storeFile file('../debug.jks')", {}),
        (
            "app/build.gradle",
            "apply plugin: 'com.google.gms.google-services'",
            {"google_services_missing": (1, False)},
        ),
        ("build.gradle", "id 'com.google.gms.google-services' version '4' apply false", {}),
        ("build.gradle", "exec { commandLine 'git', 'describe' }", {"needs_git": (1, False)}),
        ("app/build.gradle", "apply from: '../node_modules/x.gradle'", {"needs_node": (1, False)}),
        ("build.gradle", "classpath 'com.android.tools.build:gradle:7.4.2'", {"other_agp": (1, False)}),
        ("gradle/libs.versions.toml", 'agp = "9.0.0"', {"other_agp": (1, False)}),
        (
            "gradle/wrapper/gradle-wrapper.properties",
            "distributionUrl=https\\://x/gradle-8.7-bin.zip",
            {"other_gradle": (1, False)},
        ),
    ],
)
def test_each_finding_has_its_code_its_line_and_its_weight(
    path: str, text: str, found: dict[str, tuple[int, bool]]
) -> None:
    assert check({path: text}) == found


def test_what_the_prefix_has_is_no_finding() -> None:
    needs = Needs(has_ndk=True, has_node=True, has_git=True)
    text = CMAKE + "\ncompileSdk 99\n'git', 'node_modules' com.android.tools.build:gradle:1.0"
    assert check({"app/build.gradle": text}, needs=needs) == {}


def test_files_that_are_there_are_no_finding() -> None:
    texts = {
        "app/build.gradle": "id 'com.google.gms.google-services'",
        "settings.gradle": "includeBuild 'logic'",
    }
    assert check(texts, "app/google-services.json", "logic/settings.gradle") == {}


def test_a_workspace_without_a_root_lists_where_roots_lie() -> None:
    (finding,) = check_project(frozenset({"android/settings.gradle", "package.json"}), {}, ".", NEEDS)
    assert finding.is_fatal
    assert "android" in finding.message
    assert check_project(frozenset({"android/settings.gradle"}), {}, "android", NEEDS) == ()


@given(st.text(max_size=400))
def test_any_script_is_read_without_a_fault(text: str) -> None:
    for path in ("settings.gradle", "app/build.gradle", "gradle/libs.versions.toml"):
        check_project(frozenset({path}), {path: text}, ".", NEEDS)

"""Routes: what run-as says is understood, and nothing but plain words gets into a phone's shell line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder_bridge.routes.route import check_words
from builder_bridge.routes.run_as import check_package, explain_run_as

SAID = {
    "run-as: package not debuggable: org.x": "not_debuggable",
    "run-as: Package 'org.x' is not debuggable": "not_debuggable",
    "run-as: unknown package: org.x": "unknown_package",
    "run-as: package not an application: org.x": "unknown_package",
    "run-as: run-as is disabled from the kernel commandline": "disabled",
    "run-as: /data/user/0/org.x has wrong owner: 0/1000, not 10123": "wrong_owner",
    "run-as: package has corrupt installation: org.x": "wrong_owner",
    "run-as: couldn't stat /data/user/0/org.x: Permission denied": "device_locked",
    "run-as: couldn't chdir to package's data directory: Required key not available": "device_locked",
    "run-as: only 'shell' or 'root' users can run this program": "wrong_caller",
    "run-as: couldn't set SELinux security context: Permission denied": "selinux",
    "run-as: Operation not permitted": "refused",
    "run-as: something new in Android 19": "refused",
}


@pytest.mark.parametrize("said", SAID)
def test_each_refusal_of_run_as_has_a_code_and_a_next_step(said: str) -> None:
    fault = explain_run_as(said, "org.x")
    assert fault is not None
    assert f": {SAID[said]}: " in str(fault)
    assert fault.hint


@pytest.mark.parametrize(
    "said", ["sh: pb: not found", "", "run-as: exec failed for files/usr/bin/pb: No such file"]
)
def test_what_is_no_refusal_of_run_as_is_left_to_others(said: str) -> None:
    assert explain_run_as(said, "org.x") is None


@given(st.text(min_size=1, max_size=80))
def test_only_plain_words_pass_into_a_shell_line(word: str) -> None:
    is_plain = (
        set(word) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and word[0] != "-" and len(word) <= 64
    )
    if is_plain:
        check_words((word,))
    else:
        with pytest.raises(ValueError, match="may not stand"):
            check_words((word,))


@pytest.mark.parametrize(
    "package", ["", "x", "org.x; id", "org..x", "org.x y", "-org.x", "org.$x", "org.x\n"]
)
def test_what_is_no_package_is_refused(package: str) -> None:
    with pytest.raises(ValueError, match="no package name"):
        check_package(package)

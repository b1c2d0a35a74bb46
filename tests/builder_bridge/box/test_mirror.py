"""Finding the Debian mirror in apt's sources."""

import pytest

from builder_bridge.box.mirror import find_mirror

MIRROR = "http://mirror.example/debian"
DEB822 = """\
# made by the installer
Types: deb deb-src
URIs: {uris}
Suites: {suites}
Components: main
Signed-By:
 /usr/share/keyrings/debian-archive-keyring.gpg
"""


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        (["deb http://mirror.example/debian trixie main contrib"], MIRROR),
        (["deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian/ bookworm main"], MIRROR),
        (["deb [ trusted=yes arch=amd64 ] http://mirror.example/debian sid main"], MIRROR),
        (
            ["# deb http://old.example/debian sid main\ndeb file:/srv/debian stable main # local"],
            "file:/srv/debian",
        ),
        (["deb-src http://mirror.example/debian trixie main"], None),
        (["deb http://security.example/debian-security trixie-security main"], None),
        (["deb http://archive.example/ubuntu noble main"], None),
        (["deb cdrom:[Debian 13]/ trixie main"], None),
        (["deb http://mirror.example/debian"], None),
        (["deb [arch=amd64"], None),
        ([""], None),
        ([], None),
        (["", "deb http://second.example/debian trixie main"], "http://second.example/debian"),
        ([DEB822.format(uris=MIRROR, suites="trixie trixie-updates")], MIRROR),
        (
            [DEB822.format(uris="\n http://a.example/debian\n http://b.example/debian", suites="trixie")],
            "http://a.example/debian",
        ),
        (
            [
                DEB822.format(uris="http://security.example/debian-security", suites="trixie-security")
                + "\n"
                + DEB822.format(uris=MIRROR, suites="trixie")
            ],
            MIRROR,
        ),
        ([DEB822.format(uris=MIRROR, suites="trixie") + "Enabled: no\n"], None),
        (["Types: deb-src\nURIs: http://mirror.example/debian\nSuites: trixie\n"], None),
        (["types: deb\nuris: http://mirror.example/debian\nsuites: trixie\n"], MIRROR),
    ],
)
def test_the_first_archive_that_carries_debian_is_the_mirror(sources: list[str], mirror: str | None) -> None:
    assert find_mirror(sources) == mirror

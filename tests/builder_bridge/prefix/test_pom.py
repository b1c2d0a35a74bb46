"""POMs are read as Maven means them, and hostile ones are refused or bounded."""

import json
from collections.abc import Mapping

import pytest

from builder_bridge.prefix.pom import (
    Coordinate,
    fill,
    read_pom,
)
from builder_bridge.prefix.resolve import Resolution, Resolver

LIB = Coordinate("org.example", "lib", "1.0")


def pom(inside: str = "", name: str = "lib", version: str = "1.0", group: str = "org.example") -> bytes:
    return (
        f'<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        f"<groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>{inside}</project>"
    ).encode()


def needs(name: str, version: str = "1.0", more: str = "") -> str:
    said = f"<version>{version}</version>" if version else ""
    return (
        f"<dependency><groupId>org.example</groupId><artifactId>{name}</artifactId>{said}{more}</dependency>"
    )


def all_of(*dependencies: str) -> str:
    return f"<dependencies>{''.join(dependencies)}</dependencies>"


def managing(*dependencies: str) -> str:
    return f"<dependencyManagement>{all_of(*dependencies)}</dependencyManagement>"


PARENT = "<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>7</version></parent>"
IMPORT = "<type>pom</type><scope>import</scope>"
CASES: dict[str, tuple[dict[str, bytes], set[str]]] = {
    "alone": ({"lib:1.0": pom()}, {"lib-1.0.jar"}),
    "compile and runtime, nothing else": (
        {
            "lib:1.0": pom(
                all_of(
                    needs("a"),
                    needs("b", more="<scope>runtime</scope>"),
                    needs("c", more="<scope>test</scope>"),
                    needs("d", more="<scope>provided</scope>"),
                    needs("e", more="<optional>true</optional>"),
                )
            ),
            "a:1.0": pom(name="a"),
            "b:1.0": pom(name="b"),
        },
        {"lib-1.0.jar", "a-1.0.jar", "b-1.0.jar"},
    ),
    "a version out of a property of the parent": (
        {
            "lib:1.0": pom(PARENT + all_of(needs("a", "${a.version}"))),
            "parent:7": pom(
                "<packaging>pom</packaging><properties><a.version>${major}.5</a.version><major>2</major>"
                "</properties>",
                "parent",
                "7",
            ),
            "a:2.5": pom(name="a", version="2.5"),
        },
        {"lib-1.0.jar", "a-2.5.jar"},
    ),
    "the version of the project itself": (
        {"lib:1.0": pom(all_of(needs("a", "${project.version}"))), "a:1.0": pom(name="a")},
        {"lib-1.0.jar", "a-1.0.jar"},
    ),
    "a version managed by an imported BOM whose parent has the property": (
        {
            "lib:1.0": pom(managing(needs("bom", "3", IMPORT)) + all_of(needs("a", ""))),
            "bom:3": pom(PARENT + managing(needs("a", "${a.version}")), "bom", "3"),
            "parent:7": pom("<properties><a.version>4</a.version></properties>", "parent", "7"),
            "a:4": pom(name="a", version="4"),
        },
        {"lib-1.0.jar", "a-4.jar"},
    ),
    "an own managed version goes before an imported one": (
        {
            "lib:1.0": pom(managing(needs("bom", "3", IMPORT), needs("a", "5")) + all_of(needs("a", ""))),
            "bom:3": pom(managing(needs("a", "4")), "bom", "3"),
            "a:5": pom(name="a", version="5"),
        },
        {"lib-1.0.jar", "a-5.jar"},
    ),
    "exclusions hold for all below": (
        {
            "lib:1.0": pom(
                all_of(
                    needs(
                        "a",
                        more="<exclusions><exclusion><groupId>org.example</groupId>"
                        "<artifactId>c</artifactId></exclusion></exclusions>",
                    )
                )
            ),
            "a:1.0": pom(all_of(needs("b")), "a"),
            "b:1.0": pom(all_of(needs("c")), "b"),
        },
        {"lib-1.0.jar", "a-1.0.jar", "b-1.0.jar"},
    ),
    "a circle": (
        {"lib:1.0": pom(all_of(needs("a"))), "a:1.0": pom(all_of(needs("lib")), "a")},
        {"lib-1.0.jar", "a-1.0.jar"},
    ),
    "an AAR, or a JAR in its place": (
        {"lib:1.0": pom("<packaging>aar</packaging>")},
        {"lib-1.0.aar|lib-1.0.jar"},
    ),
    "a bundle is a JAR": ({"lib:1.0": pom("<packaging>bundle</packaging>")}, {"lib-1.0.jar"}),
    "a marker of a plugin has no file of its own": (
        {"lib:1.0": pom("<packaging>pom</packaging>" + all_of(needs("a"))), "a:1.0": pom(name="a")},
        {"a-1.0.jar"},
    ),
    "a classifier": (
        {
            "lib:1.0": pom(all_of(needs("a", more="<classifier>linux</classifier><type>exe</type>"))),
            "a:1.0": pom(name="a"),
        },
        {"lib-1.0.jar", "a-1.0-linux.exe"},
    ),
    "a relocation": (
        {
            "lib:1.0": pom(
                "<distributionManagement><relocation><artifactId>a</artifactId></relocation></distributionManagement>"
            ),
            "a:1.0": pom(name="a"),
        },
        {"a-1.0.jar"},
    ),
    "an exact range": (
        {"lib:1.0": pom(all_of(needs("a", "[1.0]"))), "a:1.0": pom(name="a")},
        {"lib-1.0.jar", "a-1.0.jar"},
    ),
}


def resolve(
    poms: Mapping[str, bytes], modules: Mapping[str, bytes] | None = None, *wanted: Coordinate
) -> Resolution:
    resolver = Resolver(wanted or (LIB,))
    for _ in range(100):
        asks = resolver.asks()
        for each in asks:
            key = f"{each.name}:{each.version}"
            resolver.feed(each, poms.get(key), (modules or {}).get(key))
        if not asks:
            return resolver.close()
    raise AssertionError("it asks without end")


def names_of(resolution: Resolution) -> set[str]:
    return {"|".join(path.rpartition("/")[2] for path in wanted.paths) for wanted in resolution.files}


@pytest.mark.parametrize("case", CASES)
def test_a_module_brings_what_it_needs_and_nothing_else(case: str) -> None:
    poms, expected = CASES[case]
    resolution = resolve(poms)
    assert names_of(resolution) == expected
    assert resolution.missing == ()


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (all_of(needs("gone")), "org.example:gone:1.0: no repository has its POM"),
        (all_of(needs("a", "[1.0,2.0)")), "org.example:a:[1.0,2.0)"),
        (all_of(needs("a", "${nowhere}")), "org.example:a:${nowhere}"),
        (all_of(needs("a", "")), "org.example:a: org.example:lib:1.0 wants it in no version"),
        (all_of(needs("..", "1")), "org.example:..:1"),
        (all_of(needs("a", "../../x")), "org.example:a:../../x"),
        (
            "<properties><p>${q}</p><q>${p}</q></properties>" + all_of(needs("a", "${p}")),
            "name each other in a circle",
        ),
        (
            "<properties>"
            + "".join(f"<p{n}>{f'${{p{n + 1}}}' * 10}</p{n}>" for n in range(20))
            + f"</properties>{all_of(needs('a', '${p0}'))}",
            "grow without end",
        ),
        (managing(needs("lib", "1.0", IMPORT)), "go in a circle"),
    ],
)  # fmt: skip
def test_what_cannot_be_resolved_is_told_and_takes_nothing_else_down(inside: str, told: str) -> None:
    ok = Coordinate("org.example", "ok", "1.0")
    resolution = resolve({"lib:1.0": pom(inside), "ok:1.0": pom(name="ok")}, None, LIB, ok)
    assert "ok-1.0.jar" in names_of(resolution)
    assert any(told in sentence for sentence in resolution.missing), resolution.missing


def test_parents_in_a_circle_come_to_an_end() -> None:
    resolution = resolve({"lib:1.0": pom(PARENT), "parent:7": pom(PARENT, "parent", "7")})
    assert any("parents above it" in sentence for sentence in resolution.missing)


def test_a_module_file_tells_variants_files_and_where_another_module_has_them() -> None:
    def variant(**more: object) -> dict[str, object]:
        return {"attributes": {"org.jetbrains.kotlin.platform.type": "jvm"}, **more}

    request = {"group": "org.example", "module": "a", "version": {"requires": "1.0"}}
    native = {"org.jetbrains.kotlin.platform.type": "native"}
    document = {
        "variants": [
            variant(**{"available-at": {"group": "org.example", "module": "lib-jvm", "version": "1.0"}}),
            variant(dependencies=[request], files=[{"url": "lib-debug.aar"}]),
            variant(dependencyConstraints=[{**request, "version": {"strictly": "1.1"}}]),
            variant(dependencyConstraints=[{**request, "module": "unrelated"}]),
            {
                "attributes": native,
                "files": [{"url": "lib.klib"}],
                "dependencies": [{**request, "module": "n"}],
            },
        ]
    }
    poms = {
        "lib:1.0": pom(),
        "lib-jvm:1.0": pom(name="lib-jvm"),
        "a:1.0": pom(name="a"),
        "a:1.1": pom(name="a", version="1.1"),
    }
    resolution = resolve(poms, {"lib:1.0": json.dumps(document).encode()})
    assert names_of(resolution) == {
        "lib-1.0.jar",
        "lib-debug.aar",
        "lib-jvm-1.0.jar",
        "a-1.0.jar",
        "a-1.1.jar",
    }
    assert resolution.missing == ()


def test_unknown_properties_stay_as_they_are() -> None:
    assert fill("${a}-${b}", {"a": "1"}) == "1-${b}"


def test_letters_named_as_in_html_are_read_as_maven_reads_them() -> None:
    assert read_pom(pom("<properties><who>J&oslash;rn &amp; co</who></properties>")).properties == {
        "who": "J\N{LATIN SMALL LETTER O WITH STROKE}rn & co"
    }

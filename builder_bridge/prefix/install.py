"""Puts the host's version of the runner and of the init scripts into a prefix, over any route.

The version is the digest of all of them and is written last, so a cut installation is seen and
done again, and an installation that is there costs one call.
"""

import hashlib
from functools import cache
from importlib.resources import files

import structlog

from builder_bridge.errors import ProtocolFault, RouteUnavailable
from builder_bridge.handoff import parse
from builder_bridge.prefix.contract import ProbeDocument
from builder_bridge.routes.route import Route

log = structlog.get_logger()

VERSION_PLACE = "share/pocketbuild/version"


@cache
def runner_files() -> tuple[tuple[str, bytes], ...]:
    """Give what belongs into a prefix: place and content, from this package's own files."""
    device = files("builder_bridge.device")
    programs = ("pb-info", "pb-seed", "pb-secrets", "pb-work", "pb")
    found = [(f"bin/{name}", device.joinpath(name).read_bytes()) for name in programs]
    scripts = files("builder_bridge.prefix").joinpath("init")
    found += [
        (f"share/pocketbuild/{script.name}", script.read_bytes())
        for script in sorted(scripts.iterdir(), key=lambda entry: entry.name)
        if script.name.endswith((".gradle", ".groovy"))
    ]
    return tuple(found)


@cache
def runner_version() -> str:
    """Give the digest that names the host's version."""
    digest = hashlib.sha256()
    for place, content in runner_files():
        digest.update(f"{place}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


async def ensure_runner(route: Route) -> ProbeDocument:
    """Make sure that the prefix has the host's version, and give what its probe says.

    Raises `RouteUnavailable` where the route reaches no prefix.
    """
    try:
        probe = parse(await route.call("probe"), ProbeDocument)
        if probe.version == runner_version():
            return probe
    except (RouteUnavailable, ProtocolFault) as fault:
        if isinstance(fault, RouteUnavailable) and "no runner" not in str(fault):
            raise
    for place, content in runner_files():
        await route.install(place, content)
    await route.install(VERSION_PLACE, runner_version().encode() + b"\n")
    log.info("runner.was_installed", route=route.name, version=runner_version()[:12])
    probe = parse(await route.call("probe"), ProbeDocument)
    if probe.version != runner_version():
        raise RouteUnavailable(f"Route {route.name}: the runner does not stay installed.")
    return probe

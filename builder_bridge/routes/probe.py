"""Picks the route to a phone's builder prefix: the first of a configured list whose probe passes.

Nothing is guessed: where none passes, the fault says for each route why. A prefix without our
runner is reached too, and gets it.
"""

from collections.abc import Sequence

import structlog

from builder_bridge.adb import AdbConnection
from builder_bridge.errors import RouteUnavailable, TransferFault
from builder_bridge.prefix.install import ensure_runner
from builder_bridge.routes import provider, run_as, shell_dir, su, termux
from builder_bridge.routes.provider import ProviderRoute
from builder_bridge.routes.route import Route
from builder_bridge.routes.run_as import RunAsRoute
from builder_bridge.routes.shell_dir import ShellDirRoute
from builder_bridge.routes.su import SuRoute
from builder_bridge.routes.termux import TermuxRoute

log = structlog.get_logger()

ROUTE_NAMES = (run_as.NAME, provider.NAME, termux.NAME, shell_dir.NAME, su.NAME)
DEFAULT_PACKAGE = "org.pocketbuild.builder"


def make_route(adb: AdbConnection, name: str, package: str = DEFAULT_PACKAGE) -> Route:
    """Give the route of that name; raises ValueError for a name that is none."""
    match name:
        case run_as.NAME:
            return RunAsRoute(adb, package)
        case shell_dir.NAME:
            return ShellDirRoute(adb)
        case termux.NAME:
            return TermuxRoute(adb)
        case provider.NAME:
            return ProviderRoute(adb, package)
        case su.NAME:
            return SuRoute(adb, package)
        case _:
            raise ValueError(f"{name!r} is no route; routes are {', '.join(ROUTE_NAMES)}")


async def pick_route(adb: AdbConnection, names: Sequence[str], package: str = DEFAULT_PACKAGE) -> Route:
    """Try the routes in order and give the first that answers, with the host's version of the runner.

    Raises `RouteUnavailable` with the reason of each; faults of the connection pass through.
    """
    reasons: list[RouteUnavailable | TransferFault] = []
    for name in names:
        route = make_route(adb, name, package)
        try:
            await ensure_runner(route)
        except (RouteUnavailable, TransferFault) as fault:
            log.info("route.was_refused", serial=adb.serial, route=name, reason=str(fault))
            reasons.append(fault)
            continue
        return route
    told = "; ".join(str(reason) for reason in reasons) or "no route was named"
    hint = reasons[0].hint if len(reasons) == 1 else None
    raise RouteUnavailable(
        f"No route reaches a builder prefix on {adb.serial}: {told}", serial=adb.serial, hint=hint
    )

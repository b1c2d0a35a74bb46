"""Takes the secrets of a request in: values and files that it brings, and names that the settings know."""

import base64

from anyio import to_thread

from builder_bridge.secret import BadSecret, Secret, Secrets
from orchestrator.access import LOCAL_OWNER, Principal
from orchestrator.engine.resources import Stores
from orchestrator.errors import BadRequest, Conflict, Forbidden, NotFound, SettingsFault, Unprocessable
from orchestrator.named_secrets import SecretSource, read_named
from orchestrator.schema import BuildRequest


async def take_secrets(stores: Stores, principal: Principal, body: BuildRequest) -> Secrets:
    """Give the secrets that a build is to have, sealed; none of a fault's messages holds a value.

    Raises `BadRequest` for one that cannot be used, `NotFound` and `Forbidden` for names.
    """
    if not (body.secrets or body.secret_files or body.use_secrets):
        return Secrets()
    return await to_thread.run_sync(_take, stores, principal, body)


def names_for_agents(stores: Stores, owner: str) -> list[str]:
    """Give the names of the secrets that builds of an owner's agents get."""
    sources = stores.settings.secrets
    return [name for name, source in sources.items() if source.for_agents and _may_use(source, owner)]


def _take(stores: Stores, principal: Principal, body: BuildRequest) -> Secrets:
    sources = stores.settings.secrets
    names = [*body.secrets, *body.secret_files, *set(body.use_secrets)]
    if len(set(names)) < len(names):
        raise Conflict("two secrets have one name", code="secret_given_twice", hint="Give each once.")
    for name in body.use_secrets:
        if name not in sources:
            raise NotFound(
                f"the settings of this service name no secret {name}",
                code="unknown_secret",
                hint="Name it in `[secrets]`, or send its value in `secrets`.",
            )
        if not _may_use(sources[name], principal.owner):
            raise Forbidden(
                f"{principal.owner} may not use the secret {name}",
                code="secret_not_yours",
                hint=f"Its setting `secrets.{name}.owners` names who may.",
            )
    try:
        given = [Secret(name, value.get_secret_value().encode()) for name, value in body.secrets.items()]
        given += [
            Secret(name, base64.b64decode(value.get_secret_value()), is_file=True)
            for name, value in body.secret_files.items()
        ]
        named = read_named(sources, body.use_secrets)
        return stores.secrets.seal(principal.owner, (*given, *named))
    except BadSecret as fault:
        raise BadRequest(str(fault), code="bad_secret", hint="No value of a secret was kept.") from None
    except SettingsFault as fault:
        raise Unprocessable(str(fault), code="secret_unreadable") from None


def _may_use(source: SecretSource, owner: str) -> bool:
    return owner in source.owners if source.owners else owner == LOCAL_OWNER

"""Find the key of a provider: in the environment, in a file that only its owner reads, or by a command."""

import shlex
import stat
from collections.abc import Mapping
from pathlib import Path

import anyio

from agent.errors import KeyMissing, SettingsFault
from agent.providers.provider import Provider

_COMMAND_DEADLINE_S = 30.0


async def find_key(provider: Provider, environ: Mapping[str, str]) -> str | None:
    """Give the provider's key, None where it works without one and none is set.

    A key command or key file of the settings wins over the environment. Raises `KeyMissing` with the
    places that were tried, `SettingsFault` where a file is open to others or a command fails. The key
    is never part of a message or a log.
    """
    if provider.key_command:
        return await _from_command(provider)
    if provider.key_file:
        return _from_file(provider.key_file)
    for name in provider.key_env:
        if key := environ.get(name, "").strip():
            return key
    if provider.key_optional:
        return None
    names = " and ".join(provider.key_env)
    raise KeyMissing(
        f"no key for {provider.title}: {names} {'is' if len(provider.key_env) == 1 else 'are'} not set"
    )


async def _from_command(provider: Provider) -> str:
    shown = shlex.join(provider.key_command)
    try:
        with anyio.fail_after(_COMMAND_DEADLINE_S):
            done = await anyio.run_process(list(provider.key_command), check=False)
    except TimeoutError:
        raise SettingsFault(f"key command `{shown}` gave nothing in {_COMMAND_DEADLINE_S:.0f} s") from None
    except OSError as fault:
        raise SettingsFault(f"key command `{shown}` did not start: {fault.strerror}") from fault
    key = done.stdout.decode("utf-8", "replace").strip()
    if done.returncode != 0 or not key:
        raise SettingsFault(f"key command `{shown}` ended with status {done.returncode} and no key")
    return key


def _from_file(name: str) -> str:
    path = Path(name).expanduser()
    try:
        with path.open() as file:
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077:
                raise SettingsFault(f"key file {path} has mode {mode:04o}, open to others: chmod 600 it")
            key = file.read().strip()
    except OSError as fault:
        raise SettingsFault(f"key file {path} cannot be read: {fault.strerror}") from fault
    if not key:
        raise KeyMissing(f"key file {path} is empty")
    return key

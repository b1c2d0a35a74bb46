"""Serves until it is killed: `python -m tests.orchestrator.service_process DATA [FAKE_PHONES]`.

It starts as `pocketbuild serve` does, with fake phones or real ones. Settings come from
`POCKETBUILD_*` variables; the URL is written to `DATA/url`.
"""

import gc
import sys
from pathlib import Path

import anyio


async def serve(data_dir: Path, phones: Path | None) -> None:
    gc.disable()
    from orchestrator.app import create_app
    from orchestrator.engine.bridges import open_phone
    from orchestrator.observe import set_up_logs
    from orchestrator.serving import serving
    from orchestrator.settings import load_settings
    from tests.orchestrator.fakes import folder_phones

    settings = load_settings(data_dir=data_dir).settings
    set_up_logs(settings)
    port = settings.port if "port" in settings.model_fields_set else 0
    opener = open_phone if phones is None else folder_phones(phones)
    async with serving(create_app(settings, opener), "127.0.0.1", port) as url:
        gc.freeze()
        gc.enable()
        partial = data_dir / "url.part"
        partial.write_text(url)
        partial.replace(data_dir / "url")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)

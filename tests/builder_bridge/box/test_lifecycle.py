"""Starting, stopping, rebooting boxes; several at once; who may listen where."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio
import pytest

from builder_bridge.adb import connect
from builder_bridge.adb.shell import run
from builder_bridge.box import (
    Box,
    Kind,
    Mode,
    boxes,
    find,
    make_root,
    reboot,
    remove,
    restart_adbd,
    start,
    stop,
)
from builder_bridge.box.network import listens
from builder_bridge.box.process import children_of, identify
from builder_bridge.errors import BoxFault
from tests.box.device import said, shell
from tests.box.fixtures import BoxFactory

pytestmark = [pytest.mark.anyio, pytest.mark.box]
STAY = "setsid sleep 6000 </dev/null >/dev/null 2>&1 & sleep 0.2"
STAYING = "pgrep -f '[s]leep 6000' | wc -l"


def has_namespace(box: Box) -> bool:
    return Path(f"/run/netns/pocketbuild-{box.name}").exists()


async def test_a_reboot_changes_the_boot_id_and_keeps_files_port_and_name(box_factory: BoxFactory) -> None:
    box = box_factory()
    await said(box, "echo kept > /data/local/tmp/mark")
    before = await said(box, "cat /proc/sys/kernel/random/boot_id")
    again = reboot(box.name)
    assert await said(again, "cat /data/local/tmp/mark") == "kept"
    after = await said(again, "cat /proc/sys/kernel/random/boot_id")
    assert (before, after) == (box.boot_id, again.boot_id)
    assert before != after
    assert (again.name, again.serial) == (box.name, box.serial)


async def test_adbd_comes_back_within_the_same_boot(box_factory: BoxFactory) -> None:
    box = box_factory()
    pid = box.adbd_pid
    restart_adbd(box.name)
    assert box.is_running
    assert box.adbd_pid != pid
    assert await said(box, "cat /proc/sys/kernel/random/boot_id") == box.boot_id


@pytest.mark.parametrize(("kill_children", "left"), [(False, "1"), (True, "0")])
async def test_what_adbd_started_ends_with_it_only_where_asked(
    box_factory: BoxFactory, kill_children: bool, left: str
) -> None:
    box = box_factory(kill_children=kill_children)
    await said(box, STAY)
    assert await said(box, STAYING) == "1"
    restart_adbd(box.name)
    assert await said(box, STAYING) == left


async def test_a_box_that_is_stopped_leaves_no_process_and_refuses_connections(
    box_factory: BoxFactory,
) -> None:
    box = box_factory()
    await said(box, STAY)
    processes = [box.init, *filter(None, map(identify, children_of(box.init.pid)))]
    assert all(process.is_alive for process in processes)
    assert stop(box.name)
    assert not stop(box.name)
    assert not any(process.is_alive for process in processes)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((box.host, box.port), timeout=5).close()


async def test_a_plain_box_listens_on_loopback_alone(tiny_box: Box) -> None:
    table = Path(f"/proc/{tiny_box.init.pid}/net")
    port = f"{tiny_box.port:04X}"
    lines = [line.split() for name in ("tcp", "tcp6") for line in (table / name).read_text().splitlines()[1:]]
    listening = {fields[1] for fields in lines if fields[3] == "0A" and fields[1].endswith(f":{port}")}
    assert listening == {f"0100007F:{port}"}


async def test_boxes_side_by_side_share_nothing(box_factory: BoxFactory) -> None:
    with ThreadPoolExecutor() as threads:
        one, two, three = threads.map(lambda _: box_factory(), range(3))
    assert len({one.serial, two.serial, three.serial}) == 3
    assert len({one.boot_id, two.boot_id, three.boot_id}) == 3
    await said(one, "echo mine > /data/local/tmp/mark")
    for other in (two, three):
        assert (await shell(other, "cat /data/local/tmp/mark")).exit_code == 1
    assert one.name in {box.name for box in boxes()}
    remove(one.name)
    assert find(one.name) is None
    assert two.is_running


async def test_up_again_gives_the_running_box_and_refuses_another_kind_of_it(box_factory: BoxFactory) -> None:
    box = box_factory()
    assert start(Kind.TINY, box.name) == box
    with pytest.raises(BoxFault, match="runs already"):
        start(Kind.TINY, box.name, mode=Mode.AUTH)


async def test_a_taken_port_is_named_and_nothing_runs(box_factory: BoxFactory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(BoxFault, match=f"Port {port} of 127.0.0.1 is taken"):
            box_factory(port=port)


async def test_a_port_that_was_asked_for_is_the_one(box_factory: BoxFactory) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    box = box_factory(port=port)
    assert (box.host, box.port) == ("127.0.0.1", port)
    assert box.adbd_pid is not None
    assert listens([box.adbd_pid], port)


async def test_a_broken_system_is_a_fault_with_the_boxs_log(box_factory: BoxFactory) -> None:
    box = box_factory()
    stop(box.name)
    (box.folder / "upper/system/bin").mkdir(parents=True)
    (box.folder / "upper/system/bin/adbd").write_text("no program")
    for timeout_s in (4, 8, 16, 64):  # what a busy machine may need to come as far as adbd
        with pytest.raises(BoxFault, match="does not listen") as fault:
            start(Kind.TINY, box.name, timeout_s=timeout_s)
        if "init: " in str(fault.value):
            break
    assert "init: /system/bin/adbd: Permission denied" in str(fault.value)
    found = find(box.name)
    assert found is not None
    assert not found.is_running


async def test_a_device_that_cannot_be_mounted_is_a_fault_at_once(box_factory: BoxFactory) -> None:
    box = box_factory()
    stop(box.name)
    (box.folder / "upper/proc").mkdir()
    (box.folder / "upper/proc").rmdir()
    (box.folder / "upper/proc").write_text("no folder")
    with pytest.raises(BoxFault, match=r"its log .* mount"):
        start(Kind.TINY, box.name)


async def test_a_root_is_made_once_and_found_again() -> None:
    steps: list[str] = []
    root = make_root(Kind.TINY, steps.append)
    assert make_root(Kind.TINY, steps.append) == root
    assert not [step for step in steps if step.startswith("Made")] or len(steps) > 1
    assert not list(root.parent.glob(f"{root.name}.partial"))


@pytest.mark.slow
async def test_two_makers_at_once_make_one_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path))
    steps: list[str] = []
    barrier = threading.Barrier(2)

    def make() -> Path:
        barrier.wait()
        return make_root(Kind.TINY, steps.append)

    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(anyio.to_thread.run_sync, make)
    assert len([step for step in steps if step.startswith("Made")]) == 1
    assert len([step for step in steps if step.startswith("Waiting")]) == 1
    assert len(list((tmp_path / "roots").iterdir())) == 1


async def test_a_failed_making_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POCKETBUILD_BOX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("POCKETBUILD_BOX_MIRROR", f"file://{tmp_path}/no-mirror")
    with pytest.raises(BoxFault, match="Making a Debian trixie root: mmdebstrap ended with"):
        make_root(Kind.TINY, print)
    assert not list((tmp_path / "cache/roots").iterdir())


async def test_behind_a_link_of_mtu_1500_adbd_has_an_address_of_its_own(box_factory: BoxFactory) -> None:
    box = box_factory(mtu_1500=True)
    assert box.host.startswith("10.213.")
    assert has_namespace(box)
    with socket.create_connection((box.host, box.port)) as probe:
        assert probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) <= 1460
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", box.port), timeout=5).close()
    sent = bytes(range(256)) * 8192
    async with connect(box.serial) as adb:
        assert (await run(adb, "cat", sent)).stdout == sent
    again = reboot(box.name)
    assert await said(again, "echo back") == "back"
    remove(box.name)
    assert not has_namespace(box)


async def test_a_namespace_that_outlives_its_box_keeps_no_link_from_the_next_start(
    box_factory: BoxFactory,
) -> None:
    box = box_factory(mtu_1500=True)
    keeper = ["ip", "netns", "exec", f"pocketbuild-{box.name}", "sh", "-c", "echo inside; exec cat"]
    async with await anyio.open_process(keeper) as inside:
        assert inside.stdout is not None
        assert await inside.stdout.receive() == b"inside\n"
        again = reboot(box.name)
        assert await said(again, "echo back") == "back"
        assert inside.returncode is None
        inside.kill()

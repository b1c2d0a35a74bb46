"""The phones' end of a network: announces what it is told to, by real multicast, until its stdin ends.

Each line of stdin is one JSON document and is answered by one line:

    {"service": "_adb._tcp.local.", "name": "adb-X", "port": 5555, "hosts": ["10.99.0.2"]}    announce it
    {"service": …, "name": …, "port": …, "hosts": …, "as": "update"}     announce it anew, or "withdraw" it
    {"flood": 2000}                                                      announce so many, in raw packets
"""

import asyncio
import json
import socket
import sys

from zeroconf import DNSOutgoing, DNSPointer, ServiceInfo
from zeroconf.asyncio import AsyncZeroconf

FLAGS_ANSWER = 0x8400
CONNECT = "_adb-tls-connect._tcp.local."


def raw_packets(count: int) -> list[bytes]:
    """Announce `count` phones that are nowhere, with names as hostile as DNS lets them be."""
    packets = []
    for start in range(0, count, 20):
        out = DNSOutgoing(FLAGS_ANSWER)
        for number in range(start, start + 20):
            label = f"adb-\x1b[2J\x07{number}-" + "é" * 20
            out.add_answer_at_time(DNSPointer(CONNECT, 12, 1, 4500, f"{label}.{CONNECT}"), 0)
        packets += out.packets()
    return packets


async def main(own_address: str) -> None:
    zeroconf = AsyncZeroconf(interfaces=[own_address])
    await zeroconf.zeroconf.async_wait_for_start(120)
    loop = asyncio.get_running_loop()
    print("ready", flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        order = json.loads(line)
        if count := order.get("flood"):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(own_address))
                for packet in raw_packets(count):
                    sender.sendto(packet, ("224.0.0.251", 5353))
                    await asyncio.sleep(0)
        else:
            info = ServiceInfo(
                order["service"],
                f"{order['name']}.{order['service']}",
                port=order["port"],
                parsed_addresses=order["hosts"],
                server=f"phone-{order['port']}.local.",
                properties={"v": "1"},
            )
            match order.get("as", "new"):
                case "new":
                    said = await zeroconf.async_register_service(
                        info, cooperating_responders=True, strict=False
                    )
                case "update":
                    said = await zeroconf.async_update_service(info)
                case _:
                    said = await zeroconf.async_unregister_service(info)
            await said  # each is said several times; the next order must not be drowned by the last
        print("done", flush=True)
    await zeroconf.async_close()


asyncio.run(main(sys.argv[1]))

"""A file read straight into the sync service's language: block after block, each one ADB packet.

The heads of the DATA chunks lie in the buffer already and the content is read into the gaps between
them, so a block goes from the page cache to the socket as one piece. What the page cache holds is
read in place, which takes less than the way to a thread and back; what it does not hold is read in
a thread, so that a disk never makes the event loop wait.
"""

import errno
import os
from collections import deque

import anyio

from builder_bridge.adb.packets import skip_bytes
from builder_bridge.adb.sync_packets import BLOCK_BYTES, CHUNK_BYTES, HEAD, encode_chunk_head
from builder_bridge.adb.waiting import Hurry

SLOT_BYTES = HEAD.size + CHUNK_BYTES


class FileBlocks:
    """Reads an open file from its beginning to its end; the descriptor stays its owner's.

    A buffer is filled again as soon as nobody holds a view of it any more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._position = 0
        self._tells_of_waiting = True
        self._hurry = Hurry()
        self._chunks = min(BLOCK_BYTES // CHUNK_BYTES, os.fstat(descriptor).st_size // CHUNK_BYTES + 1)
        self._buffers = list[bytearray]()

    async def take(self) -> memoryview:
        """Give the next block with its heads, an empty one at the end. Raises `OSError`."""
        buffer = self._free_buffer()
        view = memoryview(buffer)
        slots = [view[start + HEAD.size : start + SLOT_BYTES] for start in range(0, len(view), SLOT_BYTES)]
        read_bytes = await self._fill(deque(slots))
        chunks, rest_bytes = divmod(read_bytes, CHUNK_BYTES)
        end = chunks * SLOT_BYTES
        if rest_bytes:  # the file's last block, so the changed head does no harm
            view[end : end + HEAD.size] = encode_chunk_head(rest_bytes)
            end += HEAD.size + rest_bytes
        return view[:end]

    async def _fill(self, slots: deque[memoryview]) -> int:
        """Read until the slots are full or the file ends."""
        wanted_bytes, filled_bytes, must_wait = self._chunks * CHUNK_BYTES, 0, False
        while filled_bytes < wanted_bytes:
            place = (self._descriptor, slots, self._position)
            try:
                if must_wait:
                    read_bytes = await anyio.to_thread.run_sync(os.preadv, *place)
                elif self._tells_of_waiting:
                    read_bytes = os.preadv(*place, os.RWF_NOWAIT)
                else:
                    read_bytes = await self._hurry.run(os.preadv, *place)
            except OSError as error:
                if error.errno == errno.EAGAIN and not must_wait:
                    must_wait = True
                elif error.errno == errno.EOPNOTSUPP and self._tells_of_waiting:
                    self._tells_of_waiting = False  # a tmpfs, which never waits, or a network's, which may
                else:
                    raise
                continue
            if not read_bytes:
                break
            self._position += read_bytes
            filled_bytes += read_bytes
            if filled_bytes < wanted_bytes:
                skip_bytes(slots, read_bytes)
        return filled_bytes

    def _free_buffer(self) -> bytearray:
        for buffer in self._buffers:
            try:
                buffer.append(0)
            except BufferError:  # somebody holds a view of it
                continue
            del buffer[-1]
            return buffer
        end = SLOT_BYTES * self._chunks
        buffer = bytearray(end + 1)  # one more, so that the test above never moves it
        del buffer[-1]
        head = encode_chunk_head(CHUNK_BYTES)
        for start in range(0, end, SLOT_BYTES):
            buffer[start : start + HEAD.size] = head
        self._buffers.append(buffer)
        return buffer

"""Reading and writing files for measurement, with the page cache kept out where the filesystem lets us. Self-contained: stdlib alone.

Also sent to a child interpreter as text (its last lines run it there), so that a filesystem that hangs cannot hang the agent.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Tuple

ALIGN = 4096  # sector size of every disk that asks for alignment, and the page size
BLOCK = 1024 * 1024


def buffer_of(size: int, seed: int = 0) -> mmap.mmap:
    """Page-aligned memory with content that no disk compresses away."""
    memory = mmap.mmap(-1, size)
    memory.write(random.Random(seed).randbytes(size) if hasattr(random.Random, "randbytes") else os.urandom(size))
    return memory


def direct_reason(folder: str) -> str:
    """ "" when files in ``folder`` can be read and written with O_DIRECT, else why not. Tried, not guessed."""
    path = os.path.join(folder, "direct-try")
    memory = buffer_of(ALIGN)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
    except OSError as error:
        return f"open with O_DIRECT: {error.strerror}"
    try:
        os.pwrite(handle, memory, 0)
        os.preadv(handle, [memory], 0)
    except OSError as error:
        return f"O_DIRECT: {error.strerror}"
    finally:
        os.close(handle)
        with contextlib.suppress(OSError):  # a store that cannot delete is found out by the probe of the mount
            os.unlink(path)
    return ""


def write_file(path: str, size: int, direct: bool, sync: bool = True) -> float:
    """Seconds to write ``size`` bytes (rounded up to whole blocks with direct) and, with ``sync``, to have them on stable storage."""
    memory = buffer_of(BLOCK, seed=hash(path))
    began = time.monotonic()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | (os.O_DIRECT if direct else 0), 0o600)
    try:
        left = size
        while left > 0:
            part = min(BLOCK, -(-left // ALIGN) * ALIGN if direct else left)
            left -= os.write(handle, memoryview(memory)[:part])
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)
    return time.monotonic() - began


def read_file(path: str, direct: bool) -> Tuple[int, float]:
    """(bytes, seconds) of one sequential reading."""
    memory = mmap.mmap(-1, BLOCK)
    began, total = time.monotonic(), 0
    handle = os.open(path, os.O_RDONLY | (os.O_DIRECT if direct else 0))
    try:
        while True:
            count = os.readv(handle, [memory])
            total += count
            if count <= 0:
                break
    finally:
        os.close(handle)
    return total, time.monotonic() - began


def forget(path: str) -> None:
    """Ask the kernel to drop the file's pages; they must be clean, so it is synced first. FUSE has caches of its own beside."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def on_threads(count: int, items: List[Any], work: Callable[[Any], Any]) -> List[Any]:
    """``work`` on every item, on ``count`` threads, results in order; the first error is raised after all have ended."""
    results: List[Any] = [None] * len(items)
    errors: List[OSError] = []
    indices = iter(range(len(items)))
    lock = threading.Lock()

    def run() -> None:
        while not errors:
            with lock:
                index = next(indices, None)
            if index is None:
                return
            try:
                results[index] = work(items[index])
            except OSError as error:
                errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(max(1, min(count, len(items))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def quantile(values: List[float], share: float) -> float:
    """The smallest value that at least ``share`` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1))]


def phases(order: Dict[str, Any]) -> Dict[str, Any]:
    """The three phases of a training run on one folder: batches of samples, a model file, a sharded checkpoint."""
    folder = order["folder"]
    reason = direct_reason(folder)
    direct = not reason
    result: Dict[str, Any] = {"direct": direct, "direct_reason": reason}
    result["batch_read"] = _batches(order, folder)
    result["model_load"] = _model(order, folder, direct)
    result["checkpoint_write"] = _checkpoint(order, folder, direct)
    return result


def _batches(order: Dict[str, Any], folder: str) -> Dict[str, Any]:
    """Small files, each read once by one of several threads. Buffered, as a data loader reads, after the pages were dropped."""
    size = max(1, order["batch_size"] // order["samples"])
    paths = [[os.path.join(folder, f"sample-{b}-{s}") for s in range(order["samples"])] for b in range(order["batches"])]
    on_threads(order["threads"], [path for batch in paths for path in batch], lambda path: write_file(path, size, False))
    for batch in paths:
        for path in batch:
            forget(path)
    began, seconds = time.monotonic(), []
    for batch in paths:
        at = time.monotonic()
        on_threads(order["threads"], batch, lambda path: read_file(path, False))
        seconds.append(time.monotonic() - at)
    total = time.monotonic() - began
    count = order["batches"] * order["samples"]
    return {
        "seconds": total, "bytes": count * size, "bytes_per_second": count * size / total, "files_per_second": count / total,
        "batch_seconds": {"p50": quantile(seconds, 0.5), "p99": quantile(seconds, 0.99), "max": max(seconds)}, "sample_bytes": size,
        "cache": "pages dropped with posix_fadvise, then buffered",
    }


def _model(order: Dict[str, Any], folder: str, direct: bool) -> Dict[str, Any]:
    path = os.path.join(folder, "model")
    write_file(path, order["model_size"], False)
    forget(path)
    size, seconds = read_file(path, direct)
    how = "O_DIRECT" if direct else "pages dropped with posix_fadvise, then buffered"
    return {"seconds": seconds, "bytes": size, "bytes_per_second": size / seconds, "cache": how}


def _checkpoint(order: Dict[str, Any], folder: str, direct: bool) -> Dict[str, Any]:
    """Shards written at the same time, each followed by fsync, then the folder's fsync: only then is it there after a crash."""
    part = max(ALIGN, order["checkpoint_size"] // order["shards"])
    began = time.monotonic()
    each = on_threads(order["shards"], [os.path.join(folder, f"shard-{n}") for n in range(order["shards"])], lambda path: write_file(path, part, direct))
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    synced = True
    try:
        os.fsync(handle)
    except OSError:
        synced = False  # FUSE and some network filesystems do not sync folders
    finally:
        os.close(handle)
    seconds = time.monotonic() - began
    return {
        "seconds": seconds, "bytes": part * order["shards"], "bytes_per_second": part * order["shards"] / seconds, "slowest_shard_seconds": max(each),
        "folder_fsync": synced, "cache": "O_DIRECT and fsync" if direct else "buffered and fsync",
    }


def transfer(order: Dict[str, Any]) -> Dict[str, Any]:
    """What fio does, one request at a time: read or write, in sequence or at random, for a time. For nodes without fio."""
    folder, block = order["folder"], max(ALIGN, order["bs"] // ALIGN * ALIGN)
    reason = direct_reason(folder) if order["direct"] else "not asked for"
    path, size = os.path.join(folder, "data"), max(block, order["size"] // block * block)
    write_file(path, size, False)
    forget(path)
    writes = "write" in order["rw"]
    handle = os.open(path, (os.O_RDWR if writes else os.O_RDONLY) | (0 if reason else os.O_DIRECT))
    try:
        times = _requests(handle, order, block, size, writes)
        at = time.monotonic()
        if writes:
            os.fsync(handle)
        total = sum(times) + time.monotonic() - at
    finally:
        os.close(handle)
    return {
        "bytes": len(times) * block, "seconds": total, "bytes_per_second": len(times) * block / total, "iops": len(times) / total, "direct": not reason,
        "direct_reason": reason, "latency_s": {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "p99.9": quantile(times, 0.999)},
    }


def _requests(handle: int, order: Dict[str, Any], block: int, size: int, writes: bool) -> List[float]:
    """Seconds of each request."""
    memory, places, times = buffer_of(block), size // block, []
    chance, end, index = random.Random(1), time.monotonic() + order["runtime"], 0
    while True:
        place = chance.randrange(places) if order["rw"].startswith("rand") else index % places
        index += 1
        at = time.monotonic()
        if writes:
            os.pwrite(handle, memory, place * block)
        else:
            os.preadv(handle, [memory], place * block)
        times.append(time.monotonic() - at)
        if at > end:
            return times


if __name__ == "__main__":
    _ORDER = json.loads(sys.argv[1])
    print(json.dumps({"phases": phases, "transfer": transfer}[_ORDER["what"]](_ORDER)))  # noqa: T201 -- the child's answer to the agent

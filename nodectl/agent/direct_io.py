"""Reading and writing files for measurement, with the page cache kept out where the filesystem lets us. Self-contained: stdlib alone.

Also sent to a child interpreter as text (its last lines run it there), so that a filesystem that hangs cannot hang the agent.
"""

from __future__ import annotations

import contextlib
import hashlib
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


def write_file(path: str, size: int, direct: bool, sync: bool = True) -> Tuple[float, str]:
    """(seconds to write ``size`` bytes and, with ``sync``, to have them on stable storage; their SHA-256). With direct whole sectors are written.

    Each block begins with its number: a store that swaps or repeats blocks gives back other content.
    """
    memory, content = buffer_of(BLOCK, seed=hash(path)), hashlib.sha256()
    took, number = 0.0, 0
    began = time.monotonic()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | (os.O_DIRECT if direct else 0), 0o600)
    try:
        left = size
        while left > 0:
            at = time.monotonic()  # hashing is not writing
            memory[:8] = number.to_bytes(8, "little")
            part = memoryview(memory)[: min(BLOCK, -(-left // ALIGN) * ALIGN if direct else left)]
            content.update(part)
            took, number = took + time.monotonic() - at, number + 1
            left -= _all(handle, part)
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)
    return time.monotonic() - began - took, content.hexdigest()


def _all(handle: int, part: memoryview) -> int:
    done = 0
    while done < len(part):
        done += os.write(handle, part[done:])
    return done


def sum_of(path: str) -> str:
    """SHA-256 of what the file holds now."""
    content = hashlib.sha256()
    with open(path, "rb") as file:
        for part in iter(lambda: file.read(BLOCK), b""):
            content.update(part)
    return content.hexdigest()


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


def place(order: Dict[str, Any]) -> Dict[str, Any]:
    """Makes the files that will be read: samples and a model. Their sizes and sums by name."""
    folder, size = order["folder"], max(1, order["batch_size"] // order["samples"])
    names = _samples(order)
    wanted = [(name, size) for name in names] + [("model", order["model_size"])]
    done = on_threads(order["threads"], wanted, lambda one: [one[0], one[1], write_file(os.path.join(folder, one[0]), one[1], False)[1]])
    for name, _ in wanted:
        forget(os.path.join(folder, name))
    return {"files": {name: [length, content] for name, length, content in done}, "direct_reason": direct_reason(folder)}


def _samples(order: Dict[str, Any]) -> List[str]:
    return [f"sample-{batch}-{sample}" for batch in range(order["batches"]) for sample in range(order["samples"])]


def batch_read(order: Dict[str, Any]) -> Dict[str, Any]:
    """Small files, each read once by one of several threads, one batch after the other. Buffered, as a data loader reads."""
    folder, names, width = order["folder"], _samples(order), order["samples"]
    began, seconds, total = time.monotonic(), [], 0
    for first in range(0, len(names), width):
        at = time.monotonic()
        batch = [os.path.join(folder, name) for name in names[first : first + width]]
        total += sum(count for count, _ in on_threads(order["threads"], batch, lambda path: read_file(path, False)))
        seconds.append(time.monotonic() - at)
    took = time.monotonic() - began
    return {
        "seconds": took, "bytes": total, "bytes_per_second": total / took, "files_per_second": len(names) / took,
        "batch_seconds": {"p50": quantile(seconds, 0.5), "p99": quantile(seconds, 0.99), "max": max(seconds)}, "sample_bytes": total // len(names),
    }


def model_load(order: Dict[str, Any]) -> Dict[str, Any]:
    """One large file from end to end."""
    size, seconds = read_file(os.path.join(order["folder"], "model"), order["direct"])
    return {"seconds": seconds, "bytes": size, "bytes_per_second": size / seconds}


def compare(order: Dict[str, Any]) -> Dict[str, Any]:
    """Names of files that are missing or hold something else than what was written."""
    wrong = []
    for name, (_, content) in sorted(order["files"].items()):
        try:
            wrong += [] if sum_of(os.path.join(order["folder"], name)) == content else [f"{name}: other bytes than were written"]
        except OSError as error:
            wrong.append(f"{name}: {error.strerror}")
    return {"wrong": wrong}


def checkpoint_write(order: Dict[str, Any]) -> Dict[str, Any]:
    """Shards written at the same time, each followed by fsync, then the folder's fsync: only then is it there after a crash."""
    folder, direct = order["folder"], order["direct"]
    part = max(ALIGN, order["checkpoint_size"] // order["shards"] // ALIGN * ALIGN)
    names = [f"shard-{number}" for number in range(order["shards"])]
    began = time.monotonic()
    each = on_threads(order["shards"], names, lambda name: (name, *write_file(os.path.join(folder, name), part, direct)))
    synced = _sync(folder)
    seconds = time.monotonic() - began
    return {
        "seconds": seconds, "bytes": part * len(names), "bytes_per_second": part * len(names) / seconds,
        "slowest_shard_seconds": max(took for _, took, _ in each), "folder_fsync": synced, "files": {name: [part, content] for name, _, content in each},
    }


def _sync(folder: str) -> bool:
    """FUSE and some network filesystems do not sync folders."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def transfer(order: Dict[str, Any]) -> Dict[str, Any]:
    """What fio does, one request at a time: read or write, in sequence or at random, for a time. For nodes without fio."""
    folder, block, syncs = order["folder"], max(ALIGN, order["bs"] // ALIGN * ALIGN), order["rw"] == "fsync"
    reason = "each write is synced instead" if syncs else direct_reason(folder) if order["direct"] else "not asked for"
    path, size = order["file"] or os.path.join(folder, "data"), max(block, order["size"] // block * block)
    if not order["file"]:
        write_file(path, size, False)
        forget(path)
    writes = "write" in order["rw"] or syncs
    handle = os.open(path, (os.O_RDWR if writes else os.O_RDONLY) | (0 if reason else os.O_DIRECT))
    try:
        times, waits = _requests(handle, order, block, size, writes)
        at = time.monotonic()
        if writes:
            os.fsync(handle)
        total = sum(times) + sum(waits) + time.monotonic() - at
    finally:
        os.close(handle)
    return {
        "bytes": len(times) * block, "seconds": total, "bytes_per_second": len(times) * block / total, "iops": len(times) / total, "direct": not reason,
        "direct_reason": reason, "latency_s": shares(times), "sync_latency_s": shares(waits),
    }


def shares(times: List[float]) -> Dict[str, float]:
    return {name: quantile(times, share) for name, share in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999))} if times else {}


def _requests(handle: int, order: Dict[str, Any], block: int, size: int, writes: bool) -> Tuple[List[float], List[float]]:
    """Seconds of each request, and of each fsync where every write is synced."""
    memory, places, times, waits = buffer_of(block), size // block, [], []
    chance, end, index = random.Random(1), time.monotonic() + order["runtime"], 0
    while True:
        place = chance.randrange(places) if order["rw"].startswith("rand") else index % places
        index += 1
        at = time.monotonic()
        if writes:
            os.pwrite(handle, memory, place * block)
        else:
            os.preadv(handle, [memory], place * block)
        done = time.monotonic()
        times.append(done - at)
        if order["rw"] == "fsync":
            os.fsync(handle)
            waits.append(time.monotonic() - done)
        if done > end or (order["file"] and index >= places):
            return times, waits


def direct(order: Dict[str, Any]) -> Dict[str, Any]:
    return {"reason": direct_reason(order["folder"])}


ORDERS: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {
    "place": place, "batch_read": batch_read, "model_load": model_load, "checkpoint_write": checkpoint_write, "compare": compare, "transfer": transfer,
    "direct": direct,
}

if __name__ == "__main__":
    _ORDER = json.loads(sys.argv[1])
    print(json.dumps(ORDERS[_ORDER["what"]](_ORDER)))  # noqa: T201 -- the child's answer to the agent

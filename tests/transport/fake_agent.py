"""An agent of a page that runs on the node in place of the real one: it echoes, floods, hashes blobs, sleeps and dies on order.

It is packed under the name nodectl.agent.boot, so loader, importer, frames and streams are the real ones.
"""

from __future__ import annotations

from pathlib import Path

from nodectl.transport.bundle import pack, sources

SOURCE = '''
import hashlib, os, sys, threading, time
from nodectl.wire.frame import Decoder, encode

LOCK = threading.Lock()

def send(head):
    data = encode(head)
    with LOCK:
        while data:
            data = data[os.write(1, data):]

def beat():
    while True:
        time.sleep(0.1)
        send({"t": "beat"})

def done(step, **values):
    send({"t": "outcome", "id": step["id"], "outcome": {"values": values}})

def flood(step):
    n = step["args"]["bytes"]
    def err():
        left = n
        while left:
            left -= os.write(2, b"e" * min(left, 65536))
    thread = threading.Thread(target=err)
    thread.start()
    done(step, stdout="o" * n)
    thread.join()

def work(step, blobs):
    kind, args = step["module"], step["args"]
    if kind == "echo":
        done(step, args=args, uid=os.geteuid(), argv=sys.argv[1:], env=dict(os.environ))
    elif kind == "flood":
        flood(step)
    elif kind == "hash":
        done(step, **{name: [hashlib.sha256(blobs[key]).hexdigest(), len(blobs[key])] for name, key in step["blobs"].items()})
    elif kind == "progress":
        send({"t": "progress", "id": step["id"], "text": args["text"]})
        done(step)
    elif kind == "noise":
        os.write(1, b"not a frame at all, but text that something printed")
    elif kind == "crash":
        send({"t": "crash", "traceback": "Traceback\\nValueError: broken"})
        os._exit(70)
    elif kind == "die":
        os.write(2, b"out of memory\\n")
        os.kill(os.getpid(), 9)
    elif kind == "import":
        import nodectl.agent.second
        done(step, value=nodectl.agent.second.VALUE, source=nodectl.agent.second.fail())
    # "hang": nothing is answered

def main(sources):
    send({"t": "hello", "pid": os.getpid(), "uid": os.geteuid(), "user": "fake", "python": sys.version.split()[0], "hostname": "fake"})
    threading.Thread(target=beat, daemon=True).start()
    decoder, blobs = Decoder(), {}
    while True:
        data = os.read(0, 65536)
        if not data:
            return 0
        for head, payload in decoder.feed(data):
            if head["t"] == "bye":
                return 0
            if head["t"] == "blob":
                blobs[head["id"]] = blobs.get(head["id"], b"") + payload
            elif head["t"] == "cancel":
                send({"t": "outcome", "id": head["id"], "outcome": {"failed": True, "msg": "cancelled"}})
            elif head["t"] == "step":
                work(head["step"], blobs)
'''

SECOND = '''
import traceback

VALUE = 42

def fail():
    try:
        raise ValueError("shown with its source line")
    except ValueError:
        return traceback.format_exc()
'''


def packed(boot: str = SOURCE) -> bytes:
    return pack({**sources(), "nodectl.agent.boot": boot, "nodectl.agent.second": SECOND})


def write_script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path

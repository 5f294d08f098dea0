"""A fake as a program: `python3 -m providers stripe --port 0 --journal stripe.jsonl --set key_ttl=5`. Its first line of output is JSON with its ports. It ends
when its standard input does (unless that is a terminal or /dev/null is given with --stay)."""

import argparse
import json
import signal
import sys
import threading

from . import PROVIDERS


def main():
    parser = argparse.ArgumentParser(prog="providers")
    parser.add_argument("provider", choices=sorted(PROVIDERS))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--control", type=int, default=0, help="the control port")
    parser.add_argument("--journal", help="append every request and effect to this file")
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=JSON", help="an option of the provider, for example key_ttl=5")
    parser.add_argument("--stay", action="store_true", help="do not end with standard input")
    args = parser.parse_args()
    options = {name: json.loads(value) for name, _, value in (word.partition("=") for word in args.set)}
    fake = PROVIDERS[args.provider](journal=args.journal, **options).start(args.port, args.control)
    print(json.dumps({"provider": fake.name, "port": fake.port, "control": fake.control_port, "url": fake.url}), flush=True)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    if not args.stay and not sys.stdin.isatty():
        threading.Thread(target=lambda: (sys.stdin.buffer.read(), ended.set()), daemon=True).start()
    ended.wait()
    fake.stop()


if __name__ == "__main__":
    main()

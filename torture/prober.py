"""Asks a server for its health, ten times a second, until standard input ends; then prints what it saw as JSON.

    python -m torture.prober HOST PORT

Its own process, without any library, so that nobody's work but the server's is in the figures.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
import time

ENOUGH = 30.0  # seconds


def main(host: str, port: int) -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    seconds, failures = [], []
    while not ended.wait(0.1):
        started = time.perf_counter()
        connection = http.client.HTTPConnection(host, port, timeout=ENOUGH)
        try:
            connection.request("GET", "/api/health")
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                failures.append(str(answer.status))
        except OSError as error:
            failures.append(type(error).__name__)
        finally:
            connection.close()
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "failures": failures}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

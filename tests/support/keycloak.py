"""A Keycloak server for tests: the token endpoint of one realm."""

from __future__ import annotations

import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

__all__ = ["SECRET", "Endpoint", "Keycloak"]

SECRET: Final = "s3cr3t+/ü"


class Keycloak(ThreadingHTTPServer):
    """The token endpoint of one realm: numbered tokens, or scripted answers.

    ``life`` is the next tokens' lifetime in seconds. :meth:`accepts` tells those that have not ended.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Endpoint)
        self.asked: list[tuple[str, dict[str, list[str]], str]] = []
        self.answers: list[tuple[int, bytes]] = []
        self.life = 300.0
        self.ends: dict[str, float] = {}
        self.refused: list[str | None] = []
        self._numbers = itertools.count(1)
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/auth"

    def file(self, folder: Path, **changes: object) -> str:
        told = {
            "realm": "north sea",
            "auth-server-url": self.url,
            "ssl-required": "none",
            "resource": "spark-jobs",
            "credentials": {"secret": SECRET},
            **changes,
        }
        path = folder / "keycloak.json"
        path.write_text(json.dumps(told), encoding="utf-8")
        return str(path)

    def issue(self) -> str:
        """A new token, which ends after ``life``."""
        token = f"token{next(self._numbers)}"
        self.ends[f"Bearer {token}"] = time.monotonic() + self.life
        return token

    def accepts(self, authorization: str | None) -> bool:
        """Return True if a header has a token that has not ended."""
        accepted = time.monotonic() < self.ends.get(authorization or "", 0.0)
        if not accepted:
            self.refused.append(authorization)
        return accepted

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class Endpoint(BaseHTTPRequestHandler):
    server: Keycloak

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.asked.append((self.path, parse_qs(body), self.headers.get("Authorization", "")))
        answer = {"access_token": self.server.issue(), "expires_in": self.server.life}
        status, text = self.server.answers.pop(0) if self.server.answers else (200, json.dumps(answer).encode())
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass

"""Where an instance listens: bound before anything runs, and without a web server for those who need none."""

from __future__ import annotations

import errno
import socket

from noonday.domain.errors import Invalid, Problem


def bind(host: str, port: int, setting: str = "PORT") -> socket.socket:
    """Port 0 takes a free one. Bound early, so that a taken port is told before anything starts."""
    sock: socket.socket | None = None
    try:
        plain = host.strip("[]")
        found = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, proto, _, address = found[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as exc:
        if sock is not None:
            sock.close()
        name, value = (setting, port) if exc.errno in (errno.EADDRINUSE, errno.EACCES) else ("HOST", host)
        raise Invalid(Problem(name, f"cannot listen on {value!r}: {exc.strerror or exc}")) from exc
    sock.setblocking(False)
    return sock


def url_of(sock: socket.socket, host: str) -> str:
    port = sock.getsockname()[1]
    plain = host.strip("[]")
    return f"http://[{plain}]:{port}" if ":" in plain else f"http://{plain}:{port}"

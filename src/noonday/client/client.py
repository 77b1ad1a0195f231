"""The two clients: the same operations, at once or awaited."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any, Self

import httpx2

from noonday.client.listening import AsyncEvents, Events
from noonday.client.operations import AsyncOperations, Operations
from noonday.client.retrying import Retries
from noonday.client.sending import AsyncSender, Sender

__all__ = ["AsyncNoondayClient", "NoondayClient"]

DEFAULT_URL = "http://127.0.0.1:8060"


def _headers(token: str | None, key: str | None) -> dict[str, str]:
    if token is not None and key is not None:
        raise ValueError("give a token or a key, not both")
    proof = {"Authorization": f"Bearer {token}"} if token else {"X-API-Key": key} if key else {}
    return {"User-Agent": f"noonday-client/{version('noonday')}", **proof}


class NoondayClient(Operations):
    """Calls one server. Safe to use from several threads; close it, or use it with `with`.

    `timeout` and all spans are seconds. `token` is a JWT, `key` an API key; a server on loopback may need
    neither. `transport` replaces the network, as in tests.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        key: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self._http = httpx2.Client(
            base_url=url, headers=_headers(token, key), timeout=timeout, transport=transport
        )
        retries = retries or Retries()
        super().__init__(Sender(self._http, retries, timeout))
        self.events = Events(self._http, retries, timeout)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class AsyncNoondayClient(AsyncOperations):
    """As NoondayClient, for asyncio: every operation is awaited."""

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        token: str | None = None,
        key: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx2.AsyncClient(
            base_url=url, headers=_headers(token, key), timeout=timeout, transport=transport
        )
        retries = retries or Retries()
        super().__init__(AsyncSender(self._http, retries, timeout))
        self.events = AsyncEvents(self._http, retries, timeout)

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

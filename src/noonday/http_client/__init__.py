"""Calls over HTTP/1.1 for the runs that are calls: connections that are kept, one exchange at a time on each.

`httptools` reads the answers. Around it is what a scheduler needs and no more: no redirects, cookies, proxies
or sessions, so that a call costs about as little as its bytes.
"""

from noonday.http_client.answering import Reader
from noonday.http_client.errors import BrokeOff, CallFailed, NoAnswer, NoConnection, NotHttp, NotTrusted
from noonday.http_client.opening import AddrInfo, Opener, Origin
from noonday.http_client.pool import Pool
from noonday.http_client.request import REPEATABLE, Outline, head_of, outline
from noonday.http_client.unpacking import CODINGS

__all__ = [
    "CODINGS",
    "REPEATABLE",
    "AddrInfo",
    "BrokeOff",
    "CallFailed",
    "NoAnswer",
    "NoConnection",
    "NotHttp",
    "NotTrusted",
    "Opener",
    "Origin",
    "Outline",
    "Pool",
    "Reader",
    "head_of",
    "outline",
]

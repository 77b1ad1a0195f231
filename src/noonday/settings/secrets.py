"""What a secret or a key must be like to be worth its name: weak and well-known ones stop the start."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # loading it takes a while, and most commands need no keys
    from joserfc.jwk import ECKey, RSAKey

__all__ = ["check_secret", "read_public_key"]

_SHORTEST: Final = 32  # bytes: as many as HS256 makes of it (RFC 7518)
_FEWEST: Final = 8  # different characters: thirty-two times the same one is no secret
_SMALLEST_RSA, _LARGEST_RSA = 2048, 8192  # bits
_EXAMPLES: Final = (  # as they stand in examples and defaults, without what is between the words
    "changeme", "changethis", "changeit", "changeinproduction", "replaceme", "replacethis", "yoursecret",
    "yoursuper", "yourjwt", "your256bit", "yourrandom", "supersecret", "topsecret", "mysecret",
    "thisisasecret", "asecretkey", "insecure", "placeholder", "defaultsecret", "examplesecret",
    "astringsecretatleast",
    "0123456789abcdef0123456789abcdef", "abcdefghijklmnopqrstuvwxyz",
    "09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7",
)  # fmt: skip


def check_secret(text: str) -> None:
    """Raises ValueError with words for what anybody could guess."""
    if "-----BEGIN" in text:
        raise ValueError("is a key: give the public one as JWT_PUBLIC_KEY")
    if len(text.encode()) < _SHORTEST:
        raise ValueError(f"is shorter than {_SHORTEST} bytes; openssl rand -base64 48 makes a good one")
    plain = re.sub(r"[\W_]", "", text).lower()
    if len(set(text)) < _FEWEST or any(words in plain for words in _EXAMPLES):
        raise ValueError("is no secret: anybody would guess it; openssl rand -base64 48 makes a good one")


def read_public_key(pem: str) -> RSAKey | ECKey:
    """Raises ValueError with words for what is no public key for RS256 or ES256."""
    from joserfc.errors import InvalidKeyTypeError, JoseError, SecurityWarning  # noqa: PLC0415 - as above
    from joserfc.jwk import ECKey, RSAKey  # noqa: PLC0415

    text = pem.replace("\\n", "\n").strip()  # as some put it into one line of an environment file
    if "PRIVATE KEY" in text:
        raise ValueError("holds a private key, which nobody but its owner should have: give the public one")
    if not text.startswith("-----BEGIN "):
        raise ValueError("is no key: it must be PEM, which begins with -----BEGIN PUBLIC KEY-----")
    for kind in (RSAKey, ECKey):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SecurityWarning)  # the size is looked at below
                key: RSAKey | ECKey = kind.import_key(text.encode())
        except InvalidKeyTypeError:
            continue
        except (JoseError, ValueError, TypeError, KeyError) as exc:
            raise ValueError("cannot be read as a public key") from exc
        return _fit(key)
    raise ValueError("is of another kind than RSA or EC P-256")


def _fit(key: RSAKey | ECKey) -> RSAKey | ECKey:
    if key.key_type == "EC":
        if key.curve_name != "P-256":  # type: ignore[union-attr]  # of this kind
            raise ValueError("is of another curve than P-256, which ES256 is made for")
    elif not _SMALLEST_RSA <= key.raw_value.key_size <= _LARGEST_RSA:
        raise ValueError(f"must have {_SMALLEST_RSA} to {_LARGEST_RSA} bits")
    return key

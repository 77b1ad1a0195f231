"""The shell lines that docs/triggers.md shows for signing a call make signatures that hold."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from noonday.domain.signatures import proven, secrets_of

PAGE = Path(__file__).parents[2] / "docs" / "triggers.md"
WHSEC = "whsec_" + base64.b64encode(bytes(range(32))).decode()
SHOW = "curl() { printf '%s\\0' \"$@\"; }\n"  # what would be sent

pytestmark = pytest.mark.skipif(
    not os.environ.get("CI") and not (shutil.which("openssl") and shutil.which("bash")),
    reason="needs bash and openssl",
)


def sent(*signing: str, secret: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of the call at the end of the blocks that hold these words."""
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = "".join(next(block for block in blocks if word in block) for word in signing)
    done = subprocess.run(
        ["bash", "-euc", SHOW + lines],
        capture_output=True,
        check=True,
        env={"SECRET": secret, "PATH": os.environ["PATH"]},
    )
    words = done.stdout.split(b"\0")
    given = list(pairwise(words))
    headers = [value.decode().split(": ", 1) for flag, value in given if flag == b"-H"]
    return {name.lower(): value for name, value in headers}, [v for flag, v in given if flag == b"-d"][-1]


@pytest.mark.parametrize("secret", ["correct-horse-battery-staple", WHSEC])
def test_the_plain_form_holds(secret: str) -> None:
    headers, body = sent("X-Webhook-Signature: sha256", secret=secret)
    assert proven(headers, body, secrets_of(secret), datetime.now(UTC)).id is None


def test_the_standard_form_holds() -> None:
    headers, body = sent("X-Webhook-Signature: sha256", "webhook-signature: v1", secret=WHSEC)
    standard = {name: value for name, value in headers.items() if not name.startswith("x-")}
    found = proven(standard, body, secrets_of(WHSEC), datetime.now(UTC)).id
    assert found is not None
    assert found.startswith("msg_")

"""What went wrong at an S3 server, in one plain sentence: the client's own text has retries, times and debug output."""

import re

from trotline.rules import redaction

_SAID = re.compile(r"<(Code|Message)>([^<]{1,300})<")
_STATUS = re.compile(r"non-2xx status code: (\d{3})")
_CAUSES = (
    ("connection refused", ("connectionrefused", "connection refused")),
    ("its host name is not known (DNS)", ("dns error",)),
    ("its certificate is not accepted", ("invalidcertificate", "certificate")),
    ("no answer in time", ("kind: timeout", "timed out", "timedout")),
    ("no route to it", ("unreachable", "no route to host")),
    (
        "the connection was closed",
        ("kind: interrupted", "connectionreset", "brokenpipe", "unexpectedeof", "eof", "incompletemessage"),
    ),
    ("no connection", ("kind: connect",)),
    # After the other causes: nothing more is known.
    ("the connection was closed", ("error sending request",)),
)
_LONGEST = 300
_UNREADABLE = re.compile(r'object with invalid path: Error parsing Path "(.{1,2000}?)": ', re.DOTALL)


def cause(text: str) -> str:
    """The server's own words, or the reason why there are none."""
    if said := ": ".join(value for _, value in _SAID.findall(text)[:2]):
        return redaction.text(said)
    if status := _STATUS.search(text):
        return f"HTTP {status[1]}"
    lower = text.lower()
    for words, marks in _CAUSES:
        if any(mark in lower for mark in marks):
            return words
    # Without the name of the client's error and its retries.
    return redaction.text(" ".join(text.split("Debug source")[0].rpartition(" - ")[2].split())[:_LONGEST])


def unreadable_name(text: str) -> str:
    """The object in a list whose name the client refuses: with control characters, or `//`. Empty: it is not that."""
    found = _UNREADABLE.search(text)
    return redaction.text(found[1])[:_LONGEST] if found else ""


def is_past_the_end(text: str) -> bool:
    """A range that begins where the object ends: it is shorter than its index says."""
    return "<Code>InvalidRange<" in text or "status code: 416" in text


_LOOKUP = re.compile(r"performing [A-Z]{3,7} http://169\.254\.\d{1,3}\.\d{1,3}/(?:latest|v\d)/")
"""The metadata service of a machine or a container, which is the last place where credentials are looked for."""
NO_CREDENTIALS = (
    "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name them: ?credentials=env:NAME."
    " On AWS: give the machine or the container a role."
)


def is_credential_lookup(text: str) -> bool:
    """It failed while credentials were looked for: there are none in the environment, and this machine has no role."""
    return _LOOKUP.search(text) is not None


_CLOCK = "Set the clock of this machine (timedatectl): a signature is valid for some minutes only."
_CREDENTIALS = (
    "Check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, or ?credentials=) and the bucket's policy."
)


def refusal_hint(text: str) -> str:
    """What to do about a server that refuses us."""
    return _CLOCK if "RequestTimeTooSkewed" in text else _CREDENTIALS

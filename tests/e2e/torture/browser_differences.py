"""Where the browser-like client cannot do what the default one does, and why. The documentation has the same list."""

DIFFERENCES = {
    "/head/control": "a header with control characters spoils the whole answer; the default client drops the header",
    "/length/and-chunks": "chunks count and the length is ignored, as RFC 9112 allows; the default client refuses both",
    "/head/drip": "the head is one piece for us: it is cut by the time limit for the first byte, not by the rate",
    "/head/interim": "interim answers are not shown to us: they are cut by the time limit for the first byte",
    "/head/early-hints-flood": "the same",
    "/body/reset": "a reset in the body may take back the head, too: then it is a connection closed without an answer",
}

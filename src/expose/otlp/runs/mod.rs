//! Which runs have something to send, and what was sent of them.

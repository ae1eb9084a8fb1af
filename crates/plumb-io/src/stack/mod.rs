//! Wrappers: a queue around a queue.

//! Performers that reach the kernel, and the ladder that picks one.

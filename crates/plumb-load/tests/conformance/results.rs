//! The set `results`.

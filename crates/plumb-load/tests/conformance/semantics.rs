//! The set `semantics`.

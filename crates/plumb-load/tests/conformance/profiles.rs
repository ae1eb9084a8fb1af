//! The set `profiles`.

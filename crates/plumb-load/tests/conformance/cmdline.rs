//! The set `cmdline`.

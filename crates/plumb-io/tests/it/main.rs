//! Every queue keeps the promises of `IoQueue`.

mod conformance;
mod files;

//! What is reported.

pub mod model;

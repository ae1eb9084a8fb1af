//! What the user asked for: the profile, and the ways in and out of it.

pub mod check;
pub mod distribution;
pub mod error;
pub mod flags;
pub mod json;
pub mod model;
pub mod template;
pub mod text;
pub mod xml;

//! What is reported: the result of a run, and the three ways of writing it.
//!
//! Every writer takes the whole [`model::RunResult`] and a place to write to; none computes anything
//! that [`figures`], [`littles_law`] or [`crate::tally`] does not define.

pub mod errno_name;
pub mod figures;
pub mod json;
pub mod littles_law;
pub mod mark;
pub mod model;
pub mod open_loop;
pub mod stamp_error;
pub mod text;
pub mod verify;
pub mod xml;

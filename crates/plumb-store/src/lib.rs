//! Runs that are kept: a document each, and a catalogue to find them by.
//!
//! The documents are the truth. The catalogue is made from them and can be made anew, so a crash between
//! the two, a lost catalogue or a document that somebody copied in costs nothing.
#![forbid(unsafe_code)]

mod catalogue;
mod document;
mod durable;
pub mod parquet;
mod place;
mod store;

pub use document::{NewRun, Origin, STORE_VERSION, StoredRun, Summary};
pub use durable::write_file;
pub use place::{NoPlace, state_folder};
pub use store::{Entry, Store, StoreError, StudyEntry};

//! Whole runs through the library.
#![forbid(unsafe_code)]

mod accepted;
mod alike;
mod bounds;
mod documents;
mod engines;
mod golden;
mod limits;
mod made_up;
mod mutations;
mod open_loop;
mod read_back;
mod reference;
mod runs;
mod statistics;
mod verify;
mod watcher;

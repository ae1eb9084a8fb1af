//! The program as its users meet it.
#![forbid(unsafe_code)]

mod bad_input;
mod caching;
mod command_line;
mod content;
mod convert;
mod documents;
mod interruption;
mod memory;
mod names;
mod order;
mod pages;
mod place;
mod pools;
mod processors;
mod profiles;
mod program;
mod rates;
mod reports;
mod results;
mod rights;
mod submission;
mod system;
mod watching;

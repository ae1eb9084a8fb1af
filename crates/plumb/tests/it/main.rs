//! The program as its users meet it.
#![forbid(unsafe_code)]

mod as_diskspd;
mod bad_input;
mod baselines;
mod caching;
mod command_line;
mod content;
mod convert;
mod documents;
mod failing_io;
mod interruption;
mod kept;
mod memory;
mod names;
mod order;
mod pages;
mod place;
mod plain_user;
mod pools;
mod preflight;
mod processors;
mod profiles;
mod program;
mod rates;
mod reports;
mod results;
mod rights;
mod sealed;
mod studies;
mod submission;
mod sweeps;
mod system;
mod verifying;
mod watching;

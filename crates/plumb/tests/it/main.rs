//! The program as its users meet it.
#![forbid(unsafe_code)]

mod profiles;

//! x
mod ends;
mod partition_table;
mod signature;

//! The rules a profile must obey before it is run (spec 3.7, 15.8).

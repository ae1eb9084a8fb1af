//! Templates: `*1`, `*2`, … in a profile stand for the targets of the command line (spec 3.8).

//! The profile block of the text report (spec 7.2, 15.10).

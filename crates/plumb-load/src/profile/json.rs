//! The normalised profile (spec 2).

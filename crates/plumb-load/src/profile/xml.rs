//! XML profiles: reading (spec 5.1, 5.2, 15.9) and writing (5.4).

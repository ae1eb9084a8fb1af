//! Reads results back: DISKSPD and Plumb, text and XML (spec 12.1).

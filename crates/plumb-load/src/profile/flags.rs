//! The DISKSPD command line (spec 3 and 15) and the long options of Plumb.

//! A simulated disk under virtual time, with seeded faults.

//! The plots of the method's section 9, a file each. Every plot has its sentence and its data.

pub(super) mod beside;
pub(super) mod choice;
pub(super) mod cores;
pub(super) mod cumulative;
pub(super) mod curve;
pub(super) mod devices;
pub(super) mod forest;
pub(super) mod heat;
pub(super) mod history;
pub(super) mod percentiles;
pub(super) mod seconds;
pub(super) mod spread;

use super::page::{Data, Plot};

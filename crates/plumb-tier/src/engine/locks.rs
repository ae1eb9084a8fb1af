//! Range locks (WR-1): parts that touch one block go one after the other, unless both read.

use std::collections::VecDeque;

use plumb_units::convert::{index, to_u32};

use super::part::{NONE, Part, Step};
use crate::mutation::{Mutation, active};

/// Lines of parts, strewn by extent, each in order of arrival.
#[derive(Debug)]
pub(super) struct Locks {
    heads: Vec<u32>,
    tails: Vec<u32>,
}

impl Locks {
    pub(super) fn new(parts: usize) -> Self {
        let lines = parts.next_power_of_two();
        Self { heads: vec![NONE; lines], tails: vec![NONE; lines] }
    }

    fn line(&self, extent: u32) -> usize {
        index(extent.wrapping_mul(0x9e37_79b1) >> 7) & (self.heads.len() - 1)
    }

    /// Joins the end of the line.
    pub(super) fn enter(&mut self, part: u32, parts: &mut [Part]) {
        let line = self.line(parts[index(part)].extent);
        let tail = std::mem::replace(&mut self.tails[line], part);
        parts[index(part)].before = tail;
        parts[index(part)].after = NONE;
        if tail == NONE {
            self.heads[line] = part;
        } else {
            parts[index(tail)].after = part;
        }
    }

    /// Whether anybody is in an extent's line, or in that of one which shares it.
    pub(super) fn is_taken(&self, extent: u32) -> bool {
        self.heads[self.line(extent)] != NONE
    }

    /// Whether somebody before it in the line touches the same blocks.
    pub(super) fn conflicts(&self, part: u32, parts: &[Part]) -> bool {
        if active(Mutation::NoRangeLock) {
            return false;
        }
        let own = &parts[index(part)];
        let mut other = own.before;
        while other != NONE {
            let before = &parts[index(other)];
            if overlap(own, before) {
                return true;
            }
            other = before.before;
        }
        false
    }

    /// Leaves the line; those behind it that it kept waiting are ready to try again.
    pub(super) fn leave(&mut self, part: u32, parts: &mut [Part], ready: &mut VecDeque<u32>) {
        let own = parts[index(part)];
        let line = self.line(own.extent);
        if own.before == NONE {
            self.heads[line] = own.after;
        } else {
            parts[index(own.before)].after = own.after;
        }
        if own.after == NONE {
            self.tails[line] = own.before;
        } else {
            parts[index(own.after)].before = own.before;
        }
        let mut other = own.after;
        while other != NONE {
            let behind = &mut parts[index(other)];
            if behind.step == Step::Lock && !behind.queued && overlap(behind, &own) {
                behind.queued = true;
                ready.push_back(other);
            }
            other = behind.after;
        }
        debug_assert!(to_u32(parts.len()) > part);
    }
}

fn overlap(one: &Part, other: &Part) -> bool {
    let (a, b) = (one.blocks(), other.blocks());
    one.extent == other.extent && one.kind.excludes(other.kind) && a.0 < b.1 && b.0 < a.1
}

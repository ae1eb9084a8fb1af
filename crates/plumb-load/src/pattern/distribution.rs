//! The ranges that random offsets are really drawn from (spec 6.6).

use super::bounds::Bounds;
use super::modulus::Modulus;
use super::{EffectiveDistribution, EffectiveRange};
use crate::profile::model::{Distribution, DistributionKind, DistributionRange};
use crate::rng::Rng;

/// The effective ranges of `distribution` inside `bounds`.
///
/// For a distribution that passed the checks of spec 3.7. An absolute one whose ranges all lie beyond
/// a small target leaves none: the result is then empty and the target too small for it.
#[must_use]
pub fn effective(distribution: &Distribution, bounds: &Bounds) -> EffectiveDistribution {
    match distribution.kind {
        DistributionKind::Percent => percent(&distribution.ranges, bounds),
        DistributionKind::Absolute => absolute(&distribution.ranges, bounds),
    }
}

/// Spec 6.6, "Effective ranges, Percent"; the rule numbers are the spec's.
fn percent(ranges: &[DistributionRange], bounds: &Bounds) -> EffectiveDistribution {
    let (whole, align) = (bounds.aligned, bounds.align);
    let share = |percent: u64| {
        let bytes = u128::from(percent) * u128::from(whole) / 100;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    };
    let down = |offset: u64| offset - offset % align;
    let mut output: Vec<EffectiveRange> = Vec::with_capacity(ranges.len());
    let mut carry = 0;
    let mut nearest = 0;
    let (mut io_base, mut target_base) = (0, 0_u64);
    for range in ranges {
        let (io, size) = (range.io, range.size);
        let (this_io_base, this_base) = (io_base, target_base);
        io_base += io;
        target_base = target_base.saturating_add(size);
        if io == 0 {
            continue;
        }
        // Rule 1.
        let mut begin = share(this_base);
        let end = if target_base == 100 { whole } else { begin.saturating_add(share(size)) };
        let end = down(end);
        // Rule 2: no aligned offset inside.
        if end < begin {
            match output.last_mut() {
                Some(last) if last.offset == end => last.io += io,
                _ => {
                    carry += io;
                    nearest = end;
                }
            }
            continue;
        }
        // Rule 3.
        begin = down(begin);
        // Rule 4: the last range was this very offset.
        if begin < end
            && let Some(last) = output.last_mut()
            && last.offset == begin
        {
            begin += align;
            last.length += align;
            if begin == whole {
                carry += io;
                continue;
            }
            if begin == end {
                last.io += io;
                continue;
            }
        }
        // Rule 5.
        if carry > 0
            && let Some(last) = output.last_mut()
            && last.io < io
        {
            last.io += carry;
            carry = 0;
        }
        // Rule 6.
        output.push(EffectiveRange {
            io_base: this_io_base - carry,
            io: io + carry,
            offset: begin,
            length: end - begin,
        });
        carry = 0;
    }
    if carry > 0 {
        match output.last_mut() {
            Some(last) => {
                last.io += carry;
                last.length = whole - last.offset;
            }
            // No range holds an aligned offset: the one just below the last of them (D-09).
            None => {
                output.push(EffectiveRange { io_base: 0, io: carry, offset: nearest, length: 0 });
            }
        }
    }
    EffectiveDistribution { io_total: 100, ranges: output }
}

/// Spec 6.6, "Effective ranges, Absolute".
fn absolute(ranges: &[DistributionRange], bounds: &Bounds) -> EffectiveDistribution {
    let mut output = Vec::with_capacity(ranges.len());
    let (mut io_base, mut base, mut io_total) = (0, 0_u64, 0);
    for range in ranges {
        let (this_io_base, this_base) = (io_base, base);
        io_base += range.io;
        base = base.saturating_add(range.size);
        if range.io == 0 {
            continue;
        }
        if this_base >= bounds.rel {
            break;
        }
        let mut length = range.size;
        if length == 0 || this_base.saturating_add(length) > bounds.rel {
            length = bounds.rel - this_base;
            if length < u64::from(bounds.block) {
                break;
            }
        }
        output.push(EffectiveRange {
            io_base: this_io_base,
            io: range.io,
            offset: this_base,
            length,
        });
        io_total += range.io;
    }
    EffectiveDistribution { io_total, ranges: output }
}

/// An effective distribution made ready for drawing.
#[derive(Debug, Clone)]
pub struct RangeDraw {
    total: Modulus,
    ranges: Box<[(u32, u64, Option<Modulus>)]>,
}

impl RangeDraw {
    /// `None` when there is no range to draw from.
    #[must_use]
    pub fn new(effective: &EffectiveDistribution) -> Option<Self> {
        let mut end = 0;
        let ranges = effective
            .ranges
            .iter()
            .map(|range| {
                end = range.io_base + range.io;
                (end, range.offset, (range.length > 0).then(|| Modulus::new(range.length)))
            })
            .collect::<Box<[_]>>();
        (!ranges.is_empty() && effective.io_total > 0)
            .then(|| Self { total: Modulus::new(effective.io_total.into()), ranges })
    }

    /// A random offset from `aligned_draw`, a random multiple of the alignment; draws once.
    ///
    /// A draw between two ranges (holes have no draws of their own, but shares may start above 0 when
    /// the first range was a hole) goes to the next range: every draw hits one (D-09).
    #[inline]
    pub fn offset(&self, aligned_draw: u64, rng: &mut Rng) -> u64 {
        let draw = self.total.of(rng.next64());
        let hit = self.ranges.iter().find(|(end, ..)| draw < u64::from(*end));
        let (_, offset, length) = hit.or(self.ranges.last()).expect("not empty: see new");
        match length {
            Some(length) => length.of(aligned_draw) + offset,
            None => *offset,
        }
    }
}

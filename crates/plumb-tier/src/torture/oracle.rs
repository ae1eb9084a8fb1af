//! What each sector may hold (T2). Knows the requests and the contract (C1–C4, C7), and nothing of the
//! engine.

/// Bytes of a unit: what is never torn.
pub(super) const UNIT_BYTES: usize = 512;

const ZEROS: [u8; UNIT_BYTES] = [0; UNIT_BYTES];

/// A write, counted from 1; 0 is the content before all: zeros.
pub(super) type WriteId = u32;

/// When something happened: the place in the order of all that the host saw.
type Time = u64;

#[derive(Debug, Clone, Copy)]
struct Write {
    first: u32,
    end: u32,
    zeros: bool,
    issued: Time,
    /// Answered, whatever the answer.
    ended: Option<Time>,
    acknowledged: bool,
    /// Some of it may be gone with a disk that was lost before all of it was done: it counts as acknowledged only when it is durable.
    forgotten: bool,
}

/// What died, for what must still be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    /// What was durable (C1, C2).
    Durable,
    /// What was acknowledged (C3).
    Acknowledged,
}

/// Writes whose value a unit may hold, in order of issue: mostly one, which needs no memory of its own, for
/// each crash state has an oracle of its own.
#[derive(Debug, Clone)]
enum Values {
    One(WriteId),
    More(Vec<WriteId>),
}

impl Values {
    fn as_slice(&self) -> &[WriteId] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::More(ids) => ids,
        }
    }

    fn push(&mut self, id: WriteId) {
        match self {
            Self::One(first) => *self = Self::More(vec![*first, id]),
            Self::More(ids) => ids.push(id),
        }
    }

    fn retain(&mut self, keeps: impl Fn(WriteId) -> bool) {
        if let Self::More(ids) = self {
            ids.retain(|id| keeps(*id));
            if let [id] = ids[..] {
                *self = Self::One(id);
            }
        }
    }
}

/// Every value that each unit may hold.
#[derive(Debug, Clone)]
pub(super) struct Oracle {
    now: Time,
    writes: Vec<Write>,
    /// By unit.
    units: Vec<Values>,
    /// Acknowledged and not known to be durable.
    cached: Vec<WriteId>,
    /// A disk forgot what a flush was for: what is acknowledged of these units from that time on counts when it is durable.
    forgetful: Vec<(std::ops::Range<u32>, Time)>,
}

impl Oracle {
    pub(super) fn new(units: usize) -> Self {
        let before = Write {
            first: 0,
            end: 0,
            zeros: true,
            issued: 0,
            ended: Some(0),
            acknowledged: true,
            forgotten: false,
        };
        Self {
            now: 1,
            writes: vec![before],
            units: vec![Values::One(0); units],
            cached: Vec::new(),
            forgetful: Vec::new(),
        }
    }

    fn tick(&mut self) -> Time {
        self.now += 1;
        self.now
    }

    /// A write of units `first..end` is handed in.
    pub(super) fn issue(&mut self, first: u32, end: u32, zeros: bool) -> WriteId {
        let issued = self.tick();
        let id = u32::try_from(self.writes.len()).unwrap_or(u32::MAX);
        self.writes.push(Write {
            first,
            end,
            zeros,
            issued,
            ended: None,
            acknowledged: false,
            forgotten: false,
        });
        for unit in first..end {
            self.units[at(unit)].push(id);
        }
        id
    }

    /// A write is answered; with `durable` it was FUA.
    pub(super) fn answer(&mut self, id: WriteId, good: bool, durable: bool) {
        let now = self.tick();
        let write = &mut self.writes[at(id)];
        write.ended = Some(now);
        write.forgotten |= self.forgetful.iter().any(|(of, _)| of.contains(&write.first));
        write.acknowledged = good && (durable || !write.forgotten);
        if good && durable {
            self.make_durable(id);
        } else if good {
            self.cached.push(id);
        }
    }

    /// A flush is handed in: its time.
    pub(super) fn flush_issued(&mut self) -> Time {
        self.tick()
    }

    /// A flush of those units that was handed in at `issued` is acknowledged.
    pub(super) fn flush_acknowledged(&mut self, issued: Time, of: std::ops::Range<u32>) {
        let before = |id: &WriteId| {
            let write = &self.writes[at(*id)];
            of.contains(&write.first) && write.ended.is_some_and(|ended| ended < issued)
        };
        self.forgetful.retain(|(own, since)| {
            !(of.start <= own.start && own.end <= of.end && *since < issued)
        });
        let (covered, rest): (Vec<_>, Vec<_>) = self.cached.iter().copied().partition(before);
        self.cached = rest;
        for id in covered {
            self.make_durable(id);
        }
    }

    /// What of these units was acknowledged and is not durable may be gone, as if the power had failed for it.
    pub(super) fn forget(&mut self, of: std::ops::Range<u32>) {
        for write in self.writes.iter_mut().filter(|write| of.contains(&write.first)) {
            write.acknowledged = false;
            write.forgotten |= write.ended.is_none();
        }
    }

    /// The same, and of what is acknowledged from now on until a flush is, for it may rest on what was forgotten.
    pub(super) fn forget_until_flushed(&mut self, of: std::ops::Range<u32>) {
        self.forget(of.clone());
        let now = self.tick();
        self.forgetful.push((of, now));
    }

    /// What ended before this write began is gone from its units for good.
    fn make_durable(&mut self, id: WriteId) {
        let Write { first, end, issued, .. } = self.writes[at(id)];
        for unit in first..end {
            let writes = &self.writes;
            let values = &mut self.units[at(unit)];
            // An observed value may have replaced it.
            if values.as_slice().contains(&id) {
                values.retain(|other| writes[at(other)].ended.is_none_or(|ended| ended >= issued));
            }
        }
    }

    /// Whether a unit may hold the value of a write, under a promise.
    fn may_hold(&self, unit: u32, id: WriteId, promise: Promise, since: Time) -> bool {
        let values = self.units[at(unit)].as_slice();
        let own = &self.writes[at(id)];
        let replaced = |other: &WriteId| {
            let other = &self.writes[at(*other)];
            other.acknowledged
                && own.ended.is_some_and(|ended| ended < other.issued)
                && other.ended.is_some_and(|ended| ended < since)
        };
        values.contains(&id) && (promise == Promise::Durable || !values.iter().any(replaced))
    }

    /// Which write the content of a unit is of, if it may be there; else what is wrong.
    pub(super) fn judge(
        &self,
        unit: u32,
        bytes: &[u8],
        promise: Promise,
    ) -> Result<WriteId, String> {
        self.judge_since(unit, bytes, promise, Time::MAX, &[])
    }

    /// The same for a read that began at `since`, when the unit could hold `then` as well.
    pub(super) fn judge_since(
        &self,
        unit: u32,
        bytes: &[u8],
        promise: Promise,
        since: Time,
        then: &[WriteId],
    ) -> Result<WriteId, String> {
        let values = self.units[at(unit)].as_slice();
        if bytes == ZEROS {
            let zero = |id: &&WriteId| self.writes[at(**id)].zeros;
            let held = |id: &&WriteId| self.may_hold(unit, **id, promise, since);
            let past = then.iter().find(|id| self.writes[at(**id)].zeros);
            return values
                .iter()
                .filter(zero)
                .rfind(held)
                .or(past)
                .copied()
                .ok_or_else(|| format!("unit {unit} is zero, but may hold {values:?} only"));
        }
        let id = header(bytes);
        let known = id > 0 && at(id) < self.writes.len() && !self.writes[at(id)].zeros;
        let mut wanted = [0; UNIT_BYTES];
        content(id, unit, &mut wanted);
        if !known || bytes != wanted {
            return Err(format!(
                "unit {unit} holds foreign or broken data ({id}), not one of {values:?}"
            ));
        }
        if self.may_hold(unit, id, promise, since) || then.contains(&id) {
            Ok(id)
        } else {
            Err(format!("unit {unit} holds write {id}, which is older than promised: {values:?}"))
        }
    }

    /// What a unit may hold now, for a read that begins.
    pub(super) fn values(&self, unit: u32) -> Vec<WriteId> {
        let held = |id: &&WriteId| self.may_hold(unit, **id, Promise::Acknowledged, Time::MAX);
        self.units[at(unit)].as_slice().iter().filter(held).copied().collect()
    }

    /// The write handed in last.
    pub(super) fn newest(&self) -> WriteId {
        u32::try_from(self.writes.len() - 1).unwrap_or(u32::MAX)
    }

    /// The time now.
    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// A unit was read after a recovery: that is what it holds from now on (C4).
    pub(super) fn observe(&mut self, unit: u32, id: WriteId) {
        self.units[at(unit)] = Values::One(id);
    }

    /// No request is under way any more: whatever was is gone. If the power failed, what was acknowledged
    /// and not durable may be gone as well, and need not be back after the next crash.
    pub(super) fn crash(&mut self, promise: Promise) {
        let now = self.tick();
        for write in &mut self.writes {
            write.ended.get_or_insert(now);
            write.acknowledged &= promise == Promise::Acknowledged;
        }
        self.cached.clear();
        self.forgetful.clear();
    }

    /// Whether the unit can hold one value only, and that is data.
    fn is_settled(&self, unit: u32, bytes: &[u8]) -> bool {
        let is = |id: WriteId| match bytes == ZEROS {
            true => self.writes.get(at(id)).is_some_and(|write| write.zeros),
            false => id == header(bytes),
        };
        let values = self.units.get(at(unit)).map(Values::as_slice);
        values.is_some_and(|values| matches!(values, [id] if is(*id)))
    }

    /// The first unit of a block, if this is all that it may hold (C8). Zeros do not say whose they are: one of its units must.
    pub(super) fn settled_block(&self, bytes: &[u8]) -> Option<u32> {
        let units = || (0_u32..).zip(bytes.chunks(UNIT_BYTES));
        let named = units().find(|(_, bytes)| *bytes != ZEROS);
        let first = named.and_then(|(nth, bytes)| claimed_unit(bytes).checked_sub(nth));
        let settled = |first: &u32| units().all(|(nth, bytes)| self.is_settled(first + nth, bytes));
        first.filter(settled)
    }
}

fn at(index: u32) -> usize {
    plumb_units::convert::index(index)
}

/// The write that data claims to be of.
fn header(bytes: &[u8]) -> WriteId {
    bytes.first_chunk::<4>().map_or(0, |head| u32::from_le_bytes(*head))
}

/// The unit that data claims to be of.
fn claimed_unit(bytes: &[u8]) -> u32 {
    bytes
        .get(4..8)
        .and_then(|part| part.first_chunk::<4>())
        .map_or(0, |head| u32::from_le_bytes(*head))
}

/// What a write puts into a unit: words that are different at each place, and do not wait for each other to be
/// computed.
pub(super) fn content(id: WriteId, unit: u32, into: &mut [u8]) {
    let base = (u64::from(id) << 32 | u64::from(unit)).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut place = base;
    for word in into.as_chunks_mut::<8>().0 {
        place = place.wrapping_add(0xd1b5_4a32_d192_ed03);
        *word = (place ^ place.rotate_left(23) ^ base >> 7).to_le_bytes();
    }
    if let Some(head) = into.first_chunk_mut::<8>() {
        head[..4].copy_from_slice(&id.to_le_bytes());
        head[4..].copy_from_slice(&unit.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(id: WriteId, unit: u32) -> [u8; UNIT_BYTES] {
        let mut bytes = [0; UNIT_BYTES];
        if id > 0 {
            content(id, unit, &mut bytes);
        }
        bytes
    }

    fn holds(oracle: &Oracle, promise: Promise) -> Vec<u32> {
        (0..4).filter(|id| oracle.judge(0, &sector(*id, 0), promise).is_ok()).collect()
    }

    #[test]
    fn a_unit_holds_the_last_durable_value_or_one_issued_later() {
        let mut oracle = Oracle::new(2);
        let one = oracle.issue(0, 1, false);
        oracle.answer(one, true, false);
        assert_eq!(holds(&oracle, Promise::Durable), [0, 1]);
        assert_eq!(holds(&oracle, Promise::Acknowledged), [1]);
        let two = oracle.issue(0, 1, false);
        let flush = oracle.flush_issued();
        oracle.answer(two, true, false);
        oracle.flush_acknowledged(flush, 0..24);
        assert_eq!(holds(&oracle, Promise::Durable), [1, 2], "2 ended after the flush began");
        let three = oracle.issue(0, 1, false);
        oracle.answer(three, true, true);
        assert_eq!(holds(&oracle, Promise::Durable), [3]);
        assert!(oracle.judge(1, &sector(3, 0), Promise::Durable).is_err(), "data of another unit");
    }

    #[test]
    fn a_block_is_settled_when_each_unit_is_zeros_or_not() {
        let mut oracle = Oracle::new(24);
        let block = |ids: [WriteId; 8]| {
            let units = (8..).zip(ids).map(|(unit, id)| sector(id, unit));
            units.collect::<Vec<_>>().concat()
        };
        let one = oracle.issue(8, 16, false);
        oracle.answer(one, true, true);
        assert_eq!(oracle.settled_block(&block([one; 8])), Some(8));
        assert_eq!(oracle.settled_block(&block([one, one, one, 0, one, one, one, one])), None);
        // Zeros from the second unit on: acknowledged, and not durable yet.
        let two = oracle.issue(9, 16, true);
        oracle.answer(two, true, false);
        let zeroed = block([one, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(oracle.settled_block(&zeroed), None, "it may hold what was there before");
        let flush = oracle.flush_issued();
        oracle.flush_acknowledged(flush, 0..24);
        assert_eq!(oracle.settled_block(&zeroed), Some(8));
        assert_eq!(oracle.settled_block(&block([one; 8])), None);
        assert_eq!(oracle.settled_block(&block([0; 8])), None, "zeros of whichever block");
    }

    #[test]
    fn overlapping_writes_may_end_in_either_order() {
        let mut oracle = Oracle::new(1);
        let (one, two) = (oracle.issue(0, 1, false), oracle.issue(0, 1, false));
        oracle.answer(two, true, true);
        oracle.answer(one, true, true);
        assert_eq!(holds(&oracle, Promise::Acknowledged), [1, 2]);
    }

    #[test]
    fn what_was_read_after_a_crash_stays() {
        let mut oracle = Oracle::new(1);
        let one = oracle.issue(0, 1, false);
        oracle.crash(Promise::Durable);
        assert_eq!(holds(&oracle, Promise::Durable), [0, 1]);
        oracle.observe(0, 0);
        assert_eq!(holds(&oracle, Promise::Durable), [0]);
        oracle.answer(one, true, true);
        assert_eq!(holds(&oracle, Promise::Durable), [0], "an answer that comes too late");
    }
}

//! Files in memory of which a block takes room only for what is in it: for disks far larger than memory.

use std::collections::HashMap;
use std::sync::Arc;

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64, to_usize};

use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Memory, Op, OpKind, OpenQueueError,
    QueueFacts, QueueSpec, Slot, SlotMemory,
};

const BLOCK: usize = 4096;
/// Bytes of a block that are kept where the rest is zero.
const TAG: usize = 8;
/// Blocks that get room together.
const GROUP: usize = 16;
/// The tag of a block that is kept as a whole.
const WHOLE: u64 = u64::MAX;
const ZEROS: [u8; BLOCK] = [0; BLOCK];
/// Words of eight bytes of a block.
const WORDS: usize = BLOCK / 8;

/// A block that is more than a tag: which of its words of eight bytes are not zero, and those.
#[derive(Debug, PartialEq, Eq)]
struct Packed {
    present: [u64; WORDS / 64],
    words: Box<[u64]>,
}

impl Packed {
    fn new(bytes: &[u8; BLOCK]) -> Self {
        let mut present = [0; WORDS / 64];
        let mut words = Vec::new();
        for (nth, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            if word != 0 {
                present[nth / 64] |= 1 << (nth % 64);
                words.push(word);
            }
        }
        Self { present, words: words.into() }
    }

    /// Puts it into a block of zeros.
    fn unpack(&self, into: &mut [u8; BLOCK]) {
        let mut words = self.words.iter();
        for (nth, word) in into.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            if self.present[nth / 64] >> (nth % 64) & 1 == 1 {
                *word = words.next().copied().unwrap_or(0).to_le_bytes();
            }
        }
    }
}

/// A file: tags of its blocks, and the blocks that are more than a tag.
#[derive(Debug)]
struct SparseFile {
    size: u64,
    groups: Vec<Option<Box<[u64; GROUP]>>>,
    whole: HashMap<u64, Arc<Packed>>,
}

impl SparseFile {
    fn new(size: u64) -> Self {
        let groups = to_usize(size.div_ceil(to_u64(BLOCK * GROUP)));
        Self { size, groups: vec![None; groups], whole: HashMap::new() }
    }

    fn read_block(&self, block: u64, into: &mut [u8; BLOCK]) {
        let (group, nth) = (to_usize(block) / GROUP, to_usize(block) % GROUP);
        let tag = self.groups[group].as_ref().map_or(0, |tags| tags[nth]);
        into.fill(0);
        match self.whole.get(&block).filter(|_| tag == WHOLE) {
            Some(packed) => packed.unpack(into),
            None => into[..TAG].copy_from_slice(&tag.to_le_bytes()),
        }
    }

    /// The tag that a block is, if it is no more than that.
    fn tag_of(bytes: &[u8; BLOCK]) -> Option<u64> {
        let mut tag = [0; TAG];
        tag.copy_from_slice(&bytes[..TAG]);
        let tag = u64::from_le_bytes(tag);
        (tag != WHOLE && bytes[TAG..] == ZEROS[TAG..]).then_some(tag)
    }

    fn set(&mut self, block: u64, tag: u64) -> u64 {
        let (group, nth) = (to_usize(block) / GROUP, to_usize(block) % GROUP);
        if tag == 0 && self.groups[group].is_none() {
            return 0;
        }
        let tags = self.groups[group].get_or_insert_with(|| Box::new([0; GROUP]));
        std::mem::replace(&mut tags[nth], tag)
    }

    fn write_tag(&mut self, block: u64, tag: u64) {
        if self.set(block, tag) == WHOLE {
            self.whole.remove(&block);
        }
    }

    fn write_whole(&mut self, block: u64, packed: Arc<Packed>) {
        self.set(block, WHOLE);
        self.whole.insert(block, packed);
    }
}

/// A queue to files in memory, zeroed at first, that answer at once as those of [`super::MemoryQueue`] do. A block of
/// 4 KiB that is zero but for its first eight bytes takes eight bytes, one that was never written next to none; any
/// other is kept as the words of it that are not zero, and once for all files that hold it at the same place, as
/// mirrored metadata does. So disks of many times the memory hold data that can be verified, as long as it is tags.
#[derive(Debug)]
pub struct SparseQueue {
    memory: SlotMemory,
    files: Vec<SparseFile>,
    block: Box<[u8; BLOCK]>,
}

impl SparseQueue {
    /// Buffers as `spec` says, and writable files of these sizes in bytes, whatever files `spec` has.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn of_sizes(spec: &QueueSpec, sizes: &[u64]) -> Result<Self, OpenQueueError> {
        let memory = SlotMemory::open(spec)?;
        let files = sizes.iter().map(|size| SparseFile::new(*size)).collect();
        Ok(Self { memory, files, block: Box::new(ZEROS) })
    }

    /// Blocks of the file that are more than eight bytes and zeros.
    ///
    /// # Panics
    /// When there is no such file.
    #[must_use]
    pub fn whole_blocks(&self, file: FileIndex) -> usize {
        self.files[index(file.0)].whole.len()
    }

    /// Blocks that are more than eight bytes and zeros, those that files share counted once, and the bytes they take.
    #[must_use]
    pub fn kept(&self) -> (usize, usize) {
        let all = self.files.iter().flat_map(|file| file.whole.values());
        let mut seen: Vec<(usize, usize)> =
            all.map(|packed| (Arc::as_ptr(packed).addr(), packed.words.len() * 8)).collect();
        seen.sort_unstable();
        seen.dedup();
        let bytes = seen.iter().map(|(_, words)| words + size_of::<Packed>()).sum();
        (seen.len(), bytes)
    }

    fn write_block(files: &mut [SparseFile], own: usize, block: u64, bytes: &[u8; BLOCK]) {
        if let Some(tag) = SparseFile::tag_of(bytes) {
            files[own].write_tag(block, tag);
            return;
        }
        let packed = Packed::new(bytes);
        let others = files.iter().filter_map(|file| file.whole.get(&block));
        let same = others.filter(|other| ***other == packed).map(Arc::clone).next();
        files[own].write_whole(block, same.unwrap_or_else(|| Arc::new(packed)));
    }

    fn perform(&mut self, op: &Op) -> i32 {
        let own = index(op.file.0);
        let file = &self.files[own];
        let end = file.size.min(op.offset.saturating_add(op.len.into()));
        let mut at = op.offset.min(end);
        let moved = to_usize(end - at);
        let mut done = 0;
        while at < end {
            let (block, skew) = (at / to_u64(BLOCK), to_usize(at % to_u64(BLOCK)));
            let len = (BLOCK - skew).min(moved - done);
            match (op.kind, op.memory) {
                (OpKind::Read, Memory::Lane(lane)) => {
                    self.files[own].read_block(block, &mut self.block);
                    let target = self.memory.buffer_mut(op.slot, lane);
                    target[done..done + len].copy_from_slice(&self.block[skew..skew + len]);
                }
                (OpKind::Read | OpKind::Write, _) => {
                    let source = &self.memory.bytes_of(op)[done..done + len];
                    if let Ok(bytes) = <&[u8; BLOCK]>::try_from(source) {
                        Self::write_block(&mut self.files, own, block, bytes);
                    } else {
                        self.files[own].read_block(block, &mut self.block);
                        self.block[skew..skew + len].copy_from_slice(source);
                        Self::write_block(&mut self.files, own, block, &self.block);
                    }
                }
            }
            at += to_u64(len);
            done += len;
        }
        i32::try_from(moved).unwrap_or(i32::MAX)
    }
}

impl IoQueue for SparseQueue {
    fn push(&mut self, op: Op) {
        self.memory.check(&op);
        let result = self.perform(&op);
        self.memory.begin(op.slot);
        self.memory.finish(op.slot, result);
    }

    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        if wanted > self.memory.waiting() {
            super::sleep(timeout);
        }
        Ok(())
    }

    fn look(&mut self) -> u32 {
        self.memory.look()
    }

    fn pop(&mut self) -> Option<Done> {
        self.memory.pop()
    }

    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.memory.buffer_mut(slot, lane)
    }

    fn facts(&self) -> QueueFacts {
        self.memory.facts("sparse memory")
    }
}

impl FlushQueue for SparseQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        assert!(index(file.0) < self.files.len(), "file {} does not exist", file.0);
        self.memory.begin(slot);
        self.memory.finish(slot, 0);
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.files.get(index(file.0)).map(|file| file.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::MemoryQueue;
    use crate::{LaneSpec, RegionSpec};

    const LANE: Memory = Memory::Lane(LaneIndex(0));

    fn spec() -> QueueSpec {
        let lanes = vec![LaneSpec { first_slot: 0, slots: 1, bytes: 32 << 10 }];
        QueueSpec { depth: 1, regions: vec![RegionSpec { lanes }], ..QueueSpec::default() }
    }

    fn ask(queue: &mut impl IoQueue, kind: OpKind, offset: u64, bytes: &mut [u8]) -> i32 {
        ask_file(queue, (kind, 0), offset, bytes)
    }

    fn ask_file(
        queue: &mut impl IoQueue,
        (kind, file): (OpKind, u32),
        offset: u64,
        bytes: &mut [u8],
    ) -> i32 {
        queue.buffer_mut(Slot(0), LaneIndex(0))[..bytes.len()].copy_from_slice(bytes);
        let len = u32::try_from(bytes.len()).expect("short");
        let file = FileIndex(file);
        queue.push(Op { kind, file, slot: Slot(0), len, offset, memory: LANE });
        queue.submit_and_wait(1, Nanos::NEVER).expect("at once");
        queue.look();
        let done = queue.pop().expect("it is done");
        bytes.copy_from_slice(&queue.buffer_mut(Slot(0), LaneIndex(0))[..bytes.len()]);
        done.result
    }

    /// Whatever is written, in whatever pieces, is read as from plain memory.
    #[test]
    fn it_holds_what_plain_memory_holds() {
        let size = 100 * 4096 + 512;
        let mut sparse = SparseQueue::of_sizes(&spec(), &[size]).expect("room");
        let mut plain = MemoryQueue::of_sizes(&spec(), &[size]).expect("room");
        let mut state = 1_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..20_000 {
            let whole = next(3) > 0;
            let unit = if whole { 4096 } else { 512 };
            let offset = next(size / unit + 3) * unit;
            let mut bytes = vec![0; to_usize((1 + next(8)) * unit)];
            for block in bytes.chunks_mut(4096) {
                match next(5) {
                    0 => {}
                    1 => block.fill(u8::try_from(next(256)).expect("a byte")),
                    2 => block[..8].fill(0xff),
                    3 => block[index(u32::try_from(next(512)).expect("small"))] = 7,
                    _ => block[..8].copy_from_slice(&next(1 << 30).to_le_bytes()),
                }
            }
            let kind = if next(2) == 0 { OpKind::Read } else { OpKind::Write };
            let mut other = bytes.clone();
            let results = (
                ask(&mut sparse, kind, offset, &mut bytes),
                ask(&mut plain, kind, offset, &mut other),
            );
            assert_eq!(results.0, results.1, "{kind:?} at {offset}");
            assert!(bytes == other, "{kind:?} at {offset}");
        }
    }

    /// Mirrored metadata takes the room of one copy, and of mostly empty pages next to none.
    #[test]
    fn what_files_hold_at_the_same_place_is_kept_once() {
        let mut queue = SparseQueue::of_sizes(&spec(), &[1 << 30; 4]).expect("room");
        let mut block = [0; 4096];
        block[4000] = 9;
        for file in 0..4 {
            ask_file(&mut queue, (OpKind::Write, file), 8192, &mut block);
        }
        assert_eq!(queue.kept(), (1, 8 + size_of::<Packed>()));
        block.fill(7);
        ask_file(&mut queue, (OpKind::Write, 2), 8192, &mut block);
        assert_eq!(queue.kept(), (2, 8 + 4096 + 2 * size_of::<Packed>()));
        for (file, at) in [(0, 9), (1, 9), (2, 7), (3, 9)] {
            ask_file(&mut queue, (OpKind::Read, file), 8192, &mut block);
            assert_eq!((block[4000], block[3999]), (at, if file == 2 { 7 } else { 0 }));
        }
    }

    #[test]
    fn a_terabyte_of_tags_fits_and_whole_blocks_come_and_go() {
        let mut queue = SparseQueue::of_sizes(&spec(), &[1 << 40]).expect("room");
        let mut block = [0; 4096];
        for nth in 0..1000_u64 {
            block[..8].copy_from_slice(&nth.to_le_bytes());
            assert_eq!(ask(&mut queue, OpKind::Write, nth << 30, &mut block), 4096);
        }
        assert_eq!(ask(&mut queue, OpKind::Read, 999 << 30, &mut block), 4096);
        assert_eq!((block[..8].to_vec(), block[8]), (999_u64.to_le_bytes().to_vec(), 0));
        assert_eq!(queue.whole_blocks(FileIndex(0)), 0);
        block[9] = 1;
        ask(&mut queue, OpKind::Write, 0, &mut block);
        assert_eq!(queue.whole_blocks(FileIndex(0)), 1);
        ask(&mut queue, OpKind::Write, 0, &mut [0; 4096]);
        assert_eq!(queue.whole_blocks(FileIndex(0)), 0);
    }
}

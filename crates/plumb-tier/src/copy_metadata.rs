//! Copies of journal, map and checksums for a disk that lacks them: nothing that does not verify is written over anything
//! (LAY-7).

use plumb_io::FlushQueue;

use crate::chain::{self, Gathered};
use crate::core::{Core, Halt};
use crate::events::Event;
use crate::format::page::{Checkpoint, PageName};
use crate::format::{BLOCK_BYTES, BLOCK_LEN};
use crate::io::Work;
use crate::mutation::{Mutation, active};
use crate::tree::Copied;

/// Bytes of the journal beyond which copying it takes longer than a checkpoint.
const LONG: u64 = 256 << 10;

impl<Q: FlushQueue> Core<Q> {
    /// Copies the live range of the journal, the checkpoint pages and all tree pages to a disk, durably; `false` when that
    /// failed. What no copy has as it should be memory has: a checkpoint writes it anew, and that is copied.
    pub(crate) fn copy_metadata(&mut self, disk: u16) -> Result<bool, Halt> {
        let copied = self.copy_what_verifies(disk);
        // Once a last copy could not be flushed nothing may be committed (C10).
        if copied != Copied::Damaged || self.flush_broken || self.has_unflushed() {
            return Ok(copied == Copied::Whole);
        }
        Ok(self.checkpoint(false)? && self.copy_what_verifies(disk) == Copied::Whole)
    }

    /// Whether a disk that takes part failed a flush and was not judged for it yet.
    fn has_unflushed(&self) -> bool {
        self.io.unflushed.iter().any(|disk| self.members.is_online(*disk))
    }

    fn copy_what_verifies(&mut self, disk: u16) -> Copied {
        if self.trees.have_grown && !active(Mutation::GrownTreesCopied) {
            // The page in force names index pages that memory does not have, and memory has none to name instead.
            return Copied::Damaged;
        }
        let sources = self.members.metadata();
        let journal = self.copy_journal(&sources, disk);
        if journal == Copied::Failed {
            return journal;
        }
        // All that must be written anew is met at once.
        let geometry = self.members.geometry;
        let (extents, between) = (&self.extents, (&sources[..], disk));
        let in_memory = |page: &PageName| extents.has_page(page);
        let trees = self.trees.copy_to(&mut self.io, &geometry, between, in_memory);
        if trees != Copied::Whole || journal != Copied::Whole {
            return if trees == Copied::Failed { trees } else { Copied::Damaged };
        }
        if self.copy_checkpoints(&sources, disk) && self.io.flush(&[disk]).is_empty() {
            Copied::Whole
        } else {
            Copied::Failed
        }
    }

    /// The frames since the last checkpoint, each from a copy of which it follows the one before, the disk's own old one
    /// included; those that lack it get it as well.
    fn copy_journal(&mut self, sources: &[u16], disk: u16) -> Copied {
        let geometry = self.members.geometry;
        let (start, end) = (self.journal.tail, self.journal.link);
        if active(Mutation::RotCopied) {
            return self.copy_unverified(sources, disk);
        }
        let all: Vec<u16> = sources.iter().copied().chain([disk]).collect();
        let Some(frames) = chain::gather(&mut self.io, &self.members, &all, (start, end)) else {
            for &disk in sources {
                self.io.events.note(Event::MetadataDamaged { disk, what: "journal" });
            }
            return Copied::Damaged;
        };
        // The frame after the last must not be one that was there before. Where the ring is full it is the first.
        let after = geometry.ring(end.position);
        let is_full = end.position - start.position >= geometry.ring_bytes();
        if !is_full && !self.io.write(&[disk], after, &[0; BLOCK_LEN]).is_empty() {
            return Copied::Failed;
        }
        for frame in &frames {
            let mut rotten = frame.lacking.clone();
            rotten.retain(|other| *other != disk);
            for &disk in &rotten {
                self.io.events.note(Event::MetadataDamaged { disk, what: "journal" });
            }
            // Who does not take it is noticed with the next frame.
            self.io.write(&rotten, geometry.ring(frame.position), &frame.bytes);
        }
        // Frames that lie behind each other go together.
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for Gathered { position, bytes, .. } in
            frames.iter().filter(|frame| frame.lacking.contains(&disk))
        {
            let offset = geometry.ring(*position);
            match runs.last_mut() {
                Some((from, run)) if *from + run.len() as u64 == offset => run.extend(bytes),
                _ => runs.push((offset, bytes.clone())),
            }
        }
        let work = runs.iter().map(|(offset, bytes)| Work::Write { disk, offset: *offset, bytes });
        match self.io.wait_for(work.collect()).is_empty() {
            true => Copied::Whole,
            false => Copied::Failed,
        }
    }

    /// The same without the rule.
    fn copy_unverified(&mut self, sources: &[u16], disk: u16) -> Copied {
        let live = self.journal.tail.position..=self.journal.link.position;
        let mut bytes = vec![0; BLOCK_LEN];
        for position in live.step_by(BLOCK_LEN) {
            let offset = self.members.geometry.ring(position);
            let read = sources.first().is_some_and(|one| self.io.read(*one, offset, &mut bytes));
            if !read || !self.io.write(&[disk], offset, &bytes).is_empty() {
                return Copied::Failed;
            }
        }
        Copied::Whole
    }

    /// The page in force as memory has it, and the one before it where a copy is whole; nothing else stays there.
    fn copy_checkpoints(&mut self, sources: &[u16], disk: u16) -> bool {
        let pool = self.members.config.pool;
        let sequence = self.journal.sequence;
        let page = Checkpoint { sequence, link: self.journal.tail, roots: self.trees.roots() };
        let at = |sequence: u64| self.members.geometry.journal() + sequence % 2 * BLOCK_BYTES;
        let (own, other) = (at(sequence), at(sequence + 1));
        let mut before = vec![0; BLOCK_LEN];
        let io = &mut self.io;
        let is_before = |source: &u16| {
            let page = io.read(*source, other, &mut before);
            let page = page.then(|| Checkpoint::decode(pool, &before)).flatten();
            page.is_some_and(|page| page.sequence.checked_add(1) == Some(sequence))
        };
        if !sources.iter().any(is_before) {
            before.fill(0);
        }
        self.io.write(&[disk], own, &page.encode(pool)).is_empty()
            && self.io.write(&[disk], other, &before).is_empty()
    }

    /// Whether journal and tree lack a copy that a disk which comes back, or gets its vote back, could have.
    pub(crate) fn lacks_metadata(&self, disk: u16) -> bool {
        self.members.metadata().len() < self.members.metadata_wanted(Some(disk))
    }

    /// Whether a disk that comes back is to get a copy of a journal that is long: a checkpoint shortens it.
    pub(crate) fn copies_much_to(&self, disk: u16) -> bool {
        let leaves = self.members.config.disks.get(usize::from(disk)).is_none_or(|own| own.leaving);
        !leaves && self.lacks_metadata(disk) && self.has_long_journal()
    }

    /// Whether a checkpoint is to come before the journal is copied.
    pub(crate) fn has_long_journal(&self) -> bool {
        self.journal.link.position - self.journal.tail.position > LONG
    }
}

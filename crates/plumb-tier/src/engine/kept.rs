//! Handing out what should survive the engine: heat maps and what optimizations go by (HEAT-6).

use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::view::Published;
use super::{Engine, Served, Tiering};

/// How often.
const EVERY: Nanos = Nanos(900_000_000_000);

/// What is kept of a virtual disk.
#[derive(Debug, Clone)]
pub struct Kept {
    /// Its id.
    pub vdisk: u128,
    /// Its heat map.
    pub heat: Vec<u8>,
    /// Its what-if curve.
    pub what_if: Vec<u8>,
    /// Who answered in the map's window.
    pub served: Served,
    /// Extents of the Performance tier in use, and those that data may use.
    pub performance: (u64, u64),
    /// The rest.
    pub tiering: Tiering,
    /// Where everything is, when somebody has asked for it.
    pub published: Option<Published>,
    /// Whether the engine counts no more host I/O after it.
    pub is_last: bool,
}

/// Whom an engine hands it to, and a thread that has to come to its end after that.
#[derive(Debug)]
pub struct KeepWith {
    sender: Option<SyncSender<Vec<Kept>>>,
    thread: Option<JoinHandle<()>>,
    last: Nanos,
}

impl KeepWith {
    /// That sender, and the thread behind it.
    #[must_use]
    pub fn new(sender: SyncSender<Vec<Kept>>, thread: Option<JoinHandle<()>>) -> Self {
        Self { sender: Some(sender), thread, last: Nanos::ZERO }
    }
}

impl Drop for KeepWith {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // If it panicked, heat is lost: that is allowed (C13).
            let _ = thread.join();
        }
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// From now on what should be kept is handed out every 15 minutes, and at a clean end.
    pub fn keep_with(&mut self, keeper: KeepWith) {
        self.keeper = Some(keeper);
        if let Some(keeper) = &mut self.keeper {
            keeper.last = self.now;
        }
    }

    /// What should be kept of a virtual disk.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    pub fn kept(&mut self, vdisk: u32) -> Kept {
        let (heat, what_if) = (self.save_heat(vdisk), self.save_what_if(vdisk));
        let id = self.core.members.config.vdisks[index(vdisk)].id;
        let (slots, free) = self.core.extents.room(index(vdisk), 0);
        Kept {
            vdisk: id,
            heat,
            what_if,
            served: self.served(vdisk),
            performance: (slots - free, slots),
            tiering: Tiering { measured: self.measured(vdisk), ..self.tiering(vdisk).clone() },
            published: None,
            is_last: true,
        }
    }

    /// Hands it out, if it is time.
    pub(super) fn hand_out(&mut self, at_once: bool) {
        let Some(keeper) = &mut self.keeper else { return };
        if !at_once && self.now.since(keeper.last) < EVERY {
            return;
        }
        keeper.last = self.now;
        self.hand_to_keeper(at_once, false);
    }

    /// Hands out what should be kept, and what programs need that want to report on this pool while it works. Nothing
    /// is done without a keeper, or while it has two of these to write.
    pub fn publish(&mut self) {
        self.hand_to_keeper(false, true);
    }

    fn hand_to_keeper(&mut self, waits: bool, publishes: bool) {
        if self.keeper.is_none() {
            return;
        }
        let count = to_u32(self.core.members.config.vdisks.len());
        let live = |vdisk: &u32| !self.core.members.config.vdisks[index(*vdisk)].is_removed();
        let all: Vec<u32> = (0..count).filter(live).collect();
        let own = |vdisk: u32| {
            let kept = self.kept(vdisk);
            let published = publishes.then(|| self.published(vdisk));
            Kept { published, is_last: waits, ..kept }
        };
        let kept: Vec<Kept> = all.into_iter().map(own).collect();
        let Some(sender) = self.keeper.as_ref().and_then(|keeper| keeper.sender.as_ref()) else {
            return;
        };
        // While requests go on nobody waits for a slow disk: the next time is soon enough.
        match waits {
            true => drop(sender.send(kept)),
            false => drop(sender.try_send(kept)),
        }
    }
}

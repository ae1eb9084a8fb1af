//! Where the data of requests lies: in buffers of the clients, or in the slots of a queue whose I/Os they are.
//!
//! In a queue's slots nothing has to be copied between the queue and the engine. A slot in flight belongs to
//! whoever performs its I/O, so its bytes cannot change under a checksum (WR-2).

use plumb_io::{FileIndex, LaneIndex, Memory, Op, OpKind, Slot, SlotMemory};
use plumb_units::convert::{index, to_u32};

/// The data of all clients.
#[derive(Debug)]
pub(crate) enum ClientMemory {
    /// A buffer of each client's own, from its first request on.
    Own { buffers: Vec<Vec<u8>>, bytes: usize },
    /// Client n is slot n of a queue; what its I/O under way is.
    Slots { memory: SlotMemory, ops: Vec<Op> },
}

impl ClientMemory {
    pub(super) fn new(clients: u32, bytes: u32) -> Self {
        Self::Own { buffers: vec![Vec::new(); index(clients)], bytes: index(bytes) }
    }

    pub(super) fn of_slots(memory: SlotMemory) -> Self {
        let (kind, file, memory_of_none) = (OpKind::Read, FileIndex(0), Memory::Lane(LaneIndex(0)));
        let none =
            |slot| Op { kind, file, slot: Slot(slot), len: 0, offset: 0, memory: memory_of_none };
        let ops = (0..memory.depth()).map(none).collect();
        Self::Slots { memory, ops }
    }

    /// Whether a request of that many bytes fits. What a queue's slots hold was checked when it was pushed.
    #[inline]
    pub(super) fn fits(&self, client: u32, len: u32) -> bool {
        match self {
            Self::Own { buffers, bytes } => match buffers[index(client)].len() {
                0 => index(len) <= *bytes,
                // Whoever has it may have made it longer.
                room => index(len) <= room,
            },
            Self::Slots { .. } => true,
        }
    }

    /// Copies what the client wrote, from byte `at` of its request on.
    #[inline]
    pub(super) fn read(&mut self, client: u32, at: u32, into: &mut [u8]) {
        let (from, len) = (index(at), into.len());
        match self {
            Self::Own { buffers, bytes } => {
                let own = made(&mut buffers[index(client)], *bytes);
                into.copy_from_slice(&own[from..from + len]);
            }
            Self::Slots { memory, ops } => {
                let copy = |bytes: &[u8]| into.copy_from_slice(&bytes[from..from + len]);
                memory.with_taken(&ops[index(client)], copy);
            }
        }
    }

    /// Puts what was read where the client wants it, from byte `at` of its request on.
    #[inline]
    pub(super) fn fill(&mut self, client: u32, at: u32, bytes: &[u8]) {
        let from = index(at);
        match self {
            Self::Own { buffers, bytes: room } => {
                let own = made(&mut buffers[index(client)], *room);
                own[from..from + bytes.len()].copy_from_slice(bytes);
            }
            Self::Slots { memory, ops } => {
                if let Memory::Lane(lane) = ops[index(client)].memory {
                    memory.fill_from(Slot(client), lane, from, bytes);
                }
            }
        }
    }

    /// Zeros, where nothing was ever written.
    pub(super) fn zero(&mut self, client: u32, at: u32, len: u32) {
        const ZEROS: [u8; 4096] = [0; 4096];
        let mut at = at;
        let end = at + len;
        while at < end {
            let step = (end - at).min(to_u32(ZEROS.len()));
            self.fill(client, at, &ZEROS[..index(step)]);
            at += step;
        }
    }

    /// A client's own buffer.
    ///
    /// # Panics
    /// When clients are slots of a queue.
    #[inline]
    pub(super) fn own_mut(&mut self, client: u32) -> &mut Vec<u8> {
        match self {
            Self::Own { buffers, bytes } => made(&mut buffers[index(client)], *bytes),
            Self::Slots { .. } => panic!("client {client} is a slot of a queue"),
        }
    }
}

/// A buffer, made if it was not.
#[inline]
fn made(buffer: &mut Vec<u8>, bytes: usize) -> &mut Vec<u8> {
    if buffer.is_empty() {
        *buffer = vec![0; bytes];
    }
    buffer
}

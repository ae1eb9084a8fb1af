//! Since when requests are under way, and when their answers were seen: what is told of how long they took.

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::Engine;

/// Requests and parts that began since the last poll: when that was, the next one says.
#[derive(Debug)]
pub(super) struct BeganSince {
    clients: Vec<u32>,
    parts: Vec<u32>,
}

impl BeganSince {
    pub(super) fn with_room(clients: u32, parts: u32) -> Self {
        let (clients, parts) = (index(clients), index(parts));
        Self { clients: Vec::with_capacity(clients), parts: Vec::with_capacity(parts) }
    }

    #[inline]
    pub(super) fn note_client(&mut self, client: u32) {
        note_within(&mut self.clients, client);
    }

    #[inline]
    pub(super) fn note_part(&mut self, part: u32) {
        note_within(&mut self.parts, part);
    }
}

/// Into a list that is made once: what finds no room in it is left out.
#[inline]
fn note_within(list: &mut Vec<u32>, one: u32) {
    if list.len() < list.capacity() {
        list.push(one);
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// What was handed in since the last poll began when this one does: before that nothing was asked of a disk.
    pub(super) fn begin_times(&mut self) {
        let now = self.now;
        for client in self.began_since.clients.drain(..) {
            self.clients[index(client)].begun = now;
        }
        for part in self.began_since.parts.drain(..) {
            self.parts[index(part)].begun = now;
        }
    }

    /// Hands in what was pushed, and waits if it may. What is timed by the devices goes on meanwhile, what the engine
    /// decides by does not: it has one time in a poll.
    pub(super) fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) {
        let queue = &mut self.core.io.queue;
        let began = (wanted > 0 && timeout > Nanos::ZERO).then(|| queue.time());
        // Submission fails only when the kernel has no memory: what is in line goes with the next one.
        let _ = queue.submit_and_wait(wanted, timeout);
        let waited = began.map_or(Nanos::ZERO, |began| queue.time().since(began));
        self.seen = self.seen.max(Nanos(self.now.0.saturating_add(waited.0)));
        self.core.io.set_time(self.seen);
    }
}

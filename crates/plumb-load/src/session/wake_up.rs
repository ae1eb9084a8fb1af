//! What a thread's wake-up takes on this machine, now.

use std::io;
use std::time::Duration;

use plumb_io::clock::Clock;
use plumb_units::{Nanos, convert};
use rustix::event::{EventfdFlags, eventfd};

/// Wake-ups per measurement. The median stands; the first few pay for cold caches.
const ROUNDS: usize = 31;
/// Long enough for the other thread to fall asleep.
const SETTLE: Duration = Duration::from_micros(80);

/// The median time from an event to the stamp of a thread that slept until it, measured between two
/// threads of this process that use no processor in particular. Takes about 5 ms.
///
/// # Errors
/// When the system gives no event descriptor or no thread.
pub(super) fn measure<C: Clock>(clock: &C) -> io::Result<Nanos> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
    let (heard, hears) = std::sync::mpsc::sync_channel::<Nanos>(1);
    std::thread::scope(|scope| {
        let (bell, clock) = (&bell, clock);
        let sleeper = move || -> io::Result<()> {
            let mut word = [0; 8];
            for _ in 0..ROUNDS {
                while rustix::io::retry_on_intr(|| rustix::io::read(bell, &mut word))? == 0 {}
                if heard.send(clock.now()).is_err() {
                    break;
                }
            }
            Ok(())
        };
        let name = "plumb-wake-up".to_owned();
        let sleeper = std::thread::Builder::new().name(name).spawn_scoped(scope, sleeper)?;
        let mut times = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            std::thread::sleep(SETTLE);
            let rung = clock.now();
            rustix::io::retry_on_intr(|| rustix::io::write(bell, &1_u64.to_ne_bytes()))?;
            let Ok(seen) = hears.recv() else { break };
            times.push(seen.since(rung));
        }
        sleeper.join().expect("it reads a descriptor and a clock")?;
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied();
        median.ok_or_else(|| io::Error::other(format!("{} wake-ups", convert::to_u64(times.len()))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_io::clock::StampClock;

    #[test]
    fn a_wake_up_takes_time_but_less_than_a_tenth_of_a_second() {
        let (clock, _) = StampClock::new();
        let time = measure(&clock).expect("descriptors and threads");
        assert!(time > Nanos(100) && time < Nanos(100_000_000), "{time:?}");
    }
}

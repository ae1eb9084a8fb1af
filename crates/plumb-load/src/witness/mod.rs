//! `--truth`: every I/O of the measurement beside the request that the block device made of it.
//!
//! A latency of ours runs from the start stamp to the look that saw the completion; the device's from the
//! issue to its driver to the driver's completion. Both are on the time stamp counter. The difference is
//! the front (the kernel's way down and, with gathering, the I/Os before) and the reap lag (how late the
//! completion was seen), which the error bar claims to bound.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;

use plumb_io::block_stack::{BlockStack, DeviceNumber};
use plumb_io::block_trace::{BlockRequest, BlockRequests};
use plumb_io::system_tree::SystemTree;
use plumb_units::{Nanos, convert};

use crate::result::stamp_error::WakeUp;
use crate::run_loop::WitnessedIo;
use crate::tally::Histogram;

mod evidence;

pub(crate) use evidence::evidence;

/// Bytes of a sector of the kernel's events.
const SECTOR: u64 = 512;
/// What two stamps on different processors may be apart.
const SLACK: Nanos = Nanos(1000);
/// A smaller share of the I/Os says nothing of the others: which are found is no chance (the page cache, merged
/// requests, lost events).
const MATCHED_MIN: f64 = 0.5;

/// Where a target's bytes are on a disk.
#[derive(Debug, Clone)]
pub struct Placement {
    disk: DeviceNumber,
    /// Whether a flush follows each write (O_DSYNC): the device's request is not the end of such an I/O.
    flushes: bool,
    /// Pieces in the order of the target: (first byte in the target, first byte on the disk, bytes).
    pieces: Vec<(u64, u64, u64)>,
}

impl Placement {
    /// Finds out where a target lies.
    ///
    /// # Errors
    /// In words, where it is on no single block device, or its file system does not tell.
    pub fn of(
        target: BorrowedFd<'_>,
        (path, size, is_device, flushes): (&str, u64, bool, bool),
        stack: &BlockStack,
        tree: &SystemTree,
    ) -> Result<Self, String> {
        let [device] = &stack.devices[..] else {
            return Err(format!(
                "'{path}' lies on {} block devices; --truth follows exactly one",
                stack.devices.len()
            ));
        };
        let file = format!("/sys/dev/block/{}/start", device.number);
        let start = tree.number(file).unwrap_or(0).saturating_mul(SECTOR);
        let mut pieces = Vec::new();
        if is_device {
            pieces.push((0, start, size));
        } else {
            // What was written a moment ago has no place before it is on the disk.
            rustix::fs::fsync(target)
                .map_err(|errno| format!("'{path}' cannot be written out (fsync): {errno}"))?;
            let mut untold = false;
            plumb_sys::device::extents(target, |extent| {
                match extent.physical {
                    Some(at) => pieces.push((extent.start, start.saturating_add(at), extent.len)),
                    None => untold = true,
                }
                true
            })
            .map_err(|errno| {
                format!("the file system of '{path}' does not say where it lies: {errno}")
            })?;
            if !untold && pieces.is_empty() {
                return Err(format!(
                    "nothing of '{path}' was ever written, so it lies nowhere on its disk and reads of it never get there: \
                     fill it first (-w100)"
                ));
            }
            if untold {
                return Err(format!(
                    "the file system of '{path}' does not say where all of it lies"
                ));
            }
        }
        Ok(Self { disk: device.disk, flushes, pieces })
    }

    /// First sector and sectors of a range that lies in one piece.
    fn sectors(&self, offset: u64, len: u64) -> Option<(u64, u64)> {
        let after = self.pieces.partition_point(|(start, _, _)| *start <= offset);
        let (start, at, bytes) = *self.pieces.get(after.checked_sub(1)?)?;
        let inside = offset - start;
        (inside + len <= bytes).then(|| ((at + inside) / SECTOR, len.div_ceil(SECTOR)))
    }
}

/// What came of the comparison.
#[derive(Debug, Clone)]
pub struct Truth {
    /// Requests that the drivers of the targets' disks issued, ours or not.
    pub requests: u64,
    /// I/Os that were kept for it.
    pub kept: u64,
    /// I/Os of the measurement that found no room to be kept.
    pub not_kept: u64,
    /// Of those kept, how many were found among the device's requests.
    pub matched: u64,
    /// Events that the kernel's buffers had no room for.
    pub lost_events: u64,
    /// The device's latencies of the matched ones: driver to completion.
    pub device: Histogram,
    /// The reported latencies of the same I/Os.
    pub reported: Histogram,
    /// From the start stamp to the issue to the driver.
    pub front: Histogram,
    /// From the device's completion to the look that saw it.
    pub reap_lag: Histogram,
    /// How much later than their bound the matched ones were seen, with nothing allowed for a wake-up; 0 within it.
    pub beyond_bound: Histogram,
    /// Matched I/Os whose reap lag is within their bound and what is allowed for a wake-up.
    pub within_bound: u64,
    /// The same with the median wake-up.
    pub within_usual: u64,
    /// What was allowed for a wake-up beside the bound.
    pub wake_up: WakeUp,
}

impl Default for Truth {
    fn default() -> Self {
        let none = Histogram::new;
        let (kept, not_kept, matched, lost_events, within_bound) = (0, 0, 0, 0, 0);
        let (device, reported, front, reap_lag) = (none(), none(), none(), none());
        Self {
            requests: 0,
            kept,
            not_kept,
            matched,
            lost_events,
            device,
            reported,
            front,
            reap_lag,
            beyond_bound: none(),
            within_bound,
            within_usual: 0,
            wake_up: WakeUp::default(),
        }
    }
}

/// The device's requests, ready to be looked up.
#[derive(Debug)]
pub struct Requests {
    /// By length, a class per power of two: a few long ones do not make the search for short ones long.
    classes: Vec<LengthClass>,
    lost: u64,
}

/// Requests of like length.
#[derive(Debug)]
struct LengthClass {
    /// Sectors of the longest.
    longest: u64,
    /// By [`order`].
    sorted: Vec<BlockRequest>,
}

/// Disk, direction, sector, time of completion.
fn order(request: &BlockRequest) -> (DeviceNumber, bool, u64, Nanos) {
    (request.device, request.is_write, request.sector, request.completed)
}

impl Requests {
    /// Takes what was traced.
    #[must_use]
    pub fn new(found: BlockRequests) -> Self {
        let BlockRequests { requests, lost } = found;
        let mut by_length: BTreeMap<u64, Vec<BlockRequest>> = BTreeMap::new();
        for request in requests {
            by_length.entry(request.sectors.next_power_of_two()).or_default().push(request);
        }
        let class = |(longest, mut sorted): (u64, Vec<BlockRequest>)| {
            sorted.sort_by_key(order);
            LengthClass { longest, sorted }
        };
        Self { classes: by_length.into_iter().map(class).collect(), lost }
    }

    /// When the device began and ended an I/O: the first issue and the last completion of the requests
    /// that cover it, of its direction and within its time.
    fn covering(
        &self,
        disk: DeviceNumber,
        (first, sectors): (u64, u64),
        io: &WitnessedIo,
    ) -> Option<(Nanos, Nanos)> {
        let mut covered = 0;
        let mut span: Option<(Nanos, Nanos)> = None;
        for request in self.classes.iter().flat_map(|class| class.near(disk, (first, sectors), io))
        {
            let end = first + sectors;
            let overlap =
                end.min(request.sector + request.sectors).saturating_sub(first.max(request.sector));
            if request.issued + SLACK < io.start || overlap == 0 {
                continue;
            }
            // The same sectors twice within the time of one I/O: the last one is the one that was seen.
            if overlap == sectors {
                span = Some((request.issued, request.completed));
                covered = sectors;
                continue;
            }
            covered += overlap;
            let (issued, completed) = span.unwrap_or((request.issued, request.completed));
            span = Some((issued.min(request.issued), completed.max(request.completed)));
        }
        span.filter(|_| covered >= sectors)
    }
}

impl LengthClass {
    /// Requests of the I/O's disk and direction that may touch its sectors and completed in its time.
    /// Goes from sector to sector by search: a block that is read a thousand times is looked at once.
    fn near(
        &self,
        disk: DeviceNumber,
        (first, sectors): (u64, u64),
        io: &WitnessedIo,
    ) -> impl Iterator<Item = &BlockRequest> {
        let earliest = Nanos(io.start.0.saturating_sub(SLACK.0));
        let (is_write, latest) = (io.is_write, io.seen + SLACK);
        let from = move |at: usize, sector: u64, time: Nanos| {
            let key = (disk, is_write, sector, time);
            at + self.sorted[at..].partition_point(|request| order(request) < key)
        };
        let mut at = from(0, first.saturating_sub(self.longest), Nanos::ZERO);
        std::iter::from_fn(move || {
            loop {
                let request = self.sorted.get(at)?;
                if (request.device, request.is_write) != (disk, is_write)
                    || request.sector >= first + sectors
                {
                    return None;
                }
                if request.completed < earliest {
                    at = from(at, request.sector, earliest);
                } else if request.completed > latest {
                    at = from(at, request.sector + 1, Nanos::ZERO);
                } else {
                    at += 1;
                    return Some(request);
                }
            }
        })
    }
}

impl Requests {
    /// How many went to one of `disks`.
    fn of_disks(&self, disks: &BTreeSet<DeviceNumber>) -> u64 {
        let all = self.classes.iter().flat_map(|class| &class.sorted);
        convert::to_u64(all.filter(|request| disks.contains(&request.device)).count())
    }
}

impl Truth {
    /// What two stamps on different processors may be apart.
    pub(crate) const SLACK: Nanos = SLACK;

    /// Of the I/Os that were kept, how many were found; 0 where none was kept.
    fn matched_share(&self) -> f64 {
        self.matched as f64 / self.kept.max(1) as f64
    }

    /// Whether so many of the I/Os were found that they say something of the others.
    pub(crate) fn has_enough(&self) -> bool {
        self.matched_share() >= MATCHED_MIN
    }

    /// Compares the I/Os of one thread, `placements` by target of the thread, `wake_up` the time that the
    /// error bar leaves to a wake-up.
    pub fn compare(
        &mut self,
        (ios, not_kept): (&[WitnessedIo], u64),
        placements: &[&Placement],
        requests: &Requests,
        wake_up: WakeUp,
    ) {
        self.lost_events = requests.lost;
        self.wake_up = wake_up;
        let disks = placements.iter().map(|placement| placement.disk);
        self.requests = self.requests.max(requests.of_disks(&disks.collect()));
        self.not_kept += not_kept;
        for io in ios {
            let placement = placements[convert::index(io.target)];
            if io.is_write && placement.flushes {
                continue;
            }
            self.kept += 1;
            let Some(sectors) = placement.sectors(io.offset, io.len.into()) else { continue };
            let Some((issued, completed)) = requests.covering(placement.disk, sectors, io) else {
                continue;
            };
            let lag = io.seen.since(completed);
            self.matched += 1;
            self.device.record(completed.since(issued).0);
            self.reported.record(io.seen.since(io.start).0);
            self.front.record(issued.since(io.start).0);
            self.reap_lag.record(lag.0);
            // Only what came with the end of a sleep may be late by the wake-up; else the gap is all.
            let is_within = |wake_up: Nanos| {
                let allowed = if io.woken { io.bound + wake_up } else { io.bound };
                u64::from(lag <= allowed + SLACK)
            };
            self.beyond_bound.record(lag.since(io.bound + SLACK).0);
            self.within_bound += is_within(wake_up.allowed());
            self.within_usual += is_within(wake_up.median);
        }
    }

    /// Reported median over the device's median; `None` without matches.
    #[must_use]
    pub fn median_ratio(&self) -> Option<f64> {
        let median = |of: &Histogram| of.value_at_rank(of.count().div_ceil(2).max(1));
        let (reported, device) = (median(&self.reported)?, median(&self.device)?);
        (device > 0).then(|| reported as f64 / device as f64)
    }

    /// How much later than their bound 99 % of the matched I/Os were seen at most, whether a sleep ended with them or not.
    /// `None` without matches.
    #[must_use]
    pub fn beyond_bound_p99(&self) -> Option<Nanos> {
        let rank = (self.beyond_bound.count() * 99).div_ceil(100).max(1);
        self.beyond_bound.value_at_rank(rank).map(Nanos)
    }

    /// Share of the matched I/Os whose reap lag is within the bound, what a wake-up is allowed included; `None`
    /// without matches.
    #[must_use]
    pub fn within_bound_share(&self) -> Option<f64> {
        self.share(self.within_bound)
    }

    /// The same with the median wake-up allowed.
    #[must_use]
    pub fn within_usual_share(&self) -> Option<f64> {
        self.share(self.within_usual)
    }

    fn share(&self, of: u64) -> Option<f64> {
        (self.matched > 0).then(|| of as f64 / self.matched as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;
    use crate::result::model::Plausibility;

    const DISK: DeviceNumber = DeviceNumber { major: 254, minor: 0 };

    fn request(sector: u64, sectors: u64, issued: u64, completed: u64) -> BlockRequest {
        let (issued, completed) = (Nanos(issued), Nanos(completed));
        BlockRequest { device: DISK, sector, sectors, is_write: false, issued, completed }
    }

    fn io(offset: u64, start: u64, seen: u64, bound: u64) -> WitnessedIo {
        let (start, seen, bound) = (Nanos(start), Nanos(seen), Nanos(bound));
        let woken = bound == Nanos::ZERO;
        WitnessedIo { start, seen, offset, len: 4096, target: 0, is_write: false, bound, woken }
    }

    fn compare(requests: Vec<BlockRequest>, ios: &[WitnessedIo]) -> Truth {
        // The target's first MiB lies at 10 MiB, its second at 50 MiB.
        let pieces = vec![(0, 10 << 20, 1 << 20), (1 << 20, 50 << 20, 1 << 20)];
        let placement = Placement { disk: DISK, flushes: true, pieces };
        let requests = Requests::new(BlockRequests { requests, lost: 3 });
        let mut truth = Truth::default();
        truth.compare(
            (ios, 0),
            &[&placement],
            &requests,
            WakeUp { median: Nanos(100), high: Nanos(100), max: Nanos(900), count: 1024 },
        );
        truth
    }

    #[test]
    fn a_file_of_holes_is_told_from_a_file_system_that_does_not_tell() {
        let file = tempfile::tempfile_in(".").expect("a file");
        file.set_len(1 << 20).expect("room");
        let device =
            plumb_io::block_stack::BlockDevice { number: DISK, name: "disk".into(), disk: DISK };
        let stack = BlockStack { devices: vec![device], ..BlockStack::default() };
        let told = |file: &std::fs::File| {
            let target = ("f", 1 << 20, false, false);
            Placement::of(file.as_fd(), target, &stack, &SystemTree::default())
        };
        let holes = told(&file).expect_err("it lies nowhere");
        if holes.contains("does not say") {
            println!(
                "skipped a_file_of_holes_is_told_from_a_file_system_that_does_not_tell: {holes}"
            );
            return;
        }
        assert!(holes.contains("nothing of 'f' was ever written"), "{holes}");
        std::os::unix::fs::FileExt::write_all_at(&file, &[7; 8192], 65_536).expect("written");
        let placed = told(&file).expect("a part of it lies somewhere");
        let bytes: u64 = placed.pieces.iter().map(|piece| piece.2).sum();
        assert!((8192..1 << 20).contains(&bytes), "{placed:?}");
    }

    #[test]
    fn each_io_finds_its_request() {
        let (first, second) = ((10 << 20) / 512, (50 << 20) / 512);
        let truth = compare(
            vec![
                request(first + 8, 8, 20_000, 90_000),
                request(second, 8, 30_000, 100_000),
                // The same block later, and another disk's.
                request(first + 8, 8, 200_000, 300_000),
                BlockRequest {
                    device: DeviceNumber { major: 7, minor: 0 },
                    ..request(first + 16, 8, 20_000, 90_000)
                },
            ],
            &[
                io(4096, 10_000, 95_000, 6_000),
                io(1 << 20, 10_000, 110_000, 5_000),
                io(8192, 10_000, 95_000, 6_000),
            ],
        );
        assert_eq!((truth.kept, truth.matched, truth.lost_events), (3, 2, 3));
        assert_eq!((truth.device.min(), truth.device.max()), (Some(70_000), Some(70_000)));
        assert_eq!((truth.reap_lag.min(), truth.reap_lag.max()), (Some(5_000), Some(10_000)));
        assert_eq!((truth.front.min(), truth.front.max()), (Some(10_000), Some(20_000)));
        // 5 µs are within 6; 10 are not within 5.
        assert_eq!(truth.within_bound_share(), Some(0.5));
    }

    #[test]
    fn a_wake_up_comes_on_top_of_the_bound_of_what_was_there_then() {
        let first = (10 << 20) / 512;
        let share = |lag: u64, bound: u64, woken: bool| {
            let seen = WitnessedIo { woken, ..io(4096, 10_000, 90_000 + lag, bound) };
            compare(vec![request(first + 8, 8, 20_000, 90_000)], &[seen]).within_bound_share()
        };
        // The wake-up is 0.1 µs here, twice that is allowed, and stamps of two processors may be 1 µs apart.
        assert_eq!((share(6_200, 5_000, true), share(6_201, 5_000, true)), (Some(1.0), Some(0.0)));
        assert_eq!(
            (share(6_000, 5_000, false), share(6_001, 5_000, false)),
            (Some(1.0), Some(0.0))
        );
    }

    #[test]
    fn a_block_that_is_read_over_and_over_finds_each_of_its_requests() {
        let first = (10 << 20) / 512;
        let times = (0..1000_u64).map(|nth| 100_000 + nth * 100_000);
        let mut requests: Vec<_> =
            times.clone().map(|at| request(first + 8, 8, at + 10_000, at + 60_000)).collect();
        // Somebody's long requests around it, all the time, but for the sectors and the direction.
        requests.extend(times.clone().flat_map(|at| {
            let write = BlockRequest { is_write: true, ..request(first, 4096, at, at + 50_000) };
            [write, request(first - 4096, 4096, at, at + 50_000)]
        }));
        let ios: Vec<_> = times.map(|at| io(4096, at, at + 70_000, 20_000)).collect();
        let truth = compare(requests, &ios);
        assert_eq!((truth.matched, truth.within_bound), (1000, 1000));
        assert_eq!((truth.device.min(), truth.device.max()), (Some(50_000), Some(50_000)));
        assert_eq!((truth.front.min(), truth.reap_lag.max()), (Some(10_000), Some(10_000)));
    }

    #[test]
    fn few_matches_or_a_far_median_are_not_called_right() {
        let first = (10 << 20) / 512;
        let verdicts = |truth: &Truth| -> Vec<Plausibility> {
            evidence(truth).into_iter().map(|item| item.verdict).collect()
        };
        let found = |latency: u64| vec![request(first, 8, 20_000, 20_000 + latency)];
        let one = [io(0, 10_000, 90_000, 20_000)];
        let near = compare(found(64_000), &one);
        assert_eq!(verdicts(&near), [Plausibility::Ok, Plausibility::Ok, Plausibility::Ok]);
        let far = compare(found(60_000), &one);
        assert_eq!(verdicts(&far)[2], Plausibility::Suspicious, "more than 1.3 times");
        let half = compare(found(60_000), &[one[0], io(4096, 10_000, 90_000, 20_000)]);
        assert_eq!(verdicts(&half)[1..], [Plausibility::Unknown, Plausibility::Unknown]);
        assert_eq!(verdicts(&compare(found(1), &[])), [Plausibility::Unknown]);
    }

    #[test]
    fn split_and_merged_requests_count_as_a_whole() {
        let first = (10 << 20) / 512;
        let split = [request(first, 4, 20_000, 60_000), request(first + 4, 4, 25_000, 80_000)];
        let truth = compare(split.to_vec(), &[io(0, 10_000, 90_000, 0)]);
        assert_eq!((truth.matched, truth.device.max()), (1, Some(60_000)));
        let half = compare(split[..1].to_vec(), &[io(0, 10_000, 90_000, 0)]);
        assert_eq!(half.matched, 0, "half of it is not it");
        let merged = vec![request(first - 8, 32, 20_000, 60_000)];
        let truth = compare(merged, &[io(0, 10_000, 90_000, 0)]);
        assert_eq!((truth.matched, truth.device.max()), (1, Some(40_000)));
    }

    #[test]
    fn writes_that_a_flush_follows_are_left_out() {
        let first = (10 << 20) / 512;
        let write = BlockRequest { is_write: true, ..request(first, 8, 20_000, 60_000) };
        let io = WitnessedIo { is_write: true, ..io(0, 10_000, 900_000, 0) };
        let truth = compare(vec![write], &[io]);
        assert_eq!((truth.kept, truth.matched), (0, 0));
    }

    #[test]
    fn an_error_bar_that_does_not_hold_is_said() {
        let first = (10 << 20) / 512;
        let requests = vec![request(first, 8, 20_000, 60_000)];
        let held = compare(requests.clone(), &[io(0, 10_000, 65_000, 5_000)]);
        let broken = compare(requests, &[io(0, 10_000, 65_000, 1_000)]);
        let verdict = |truth: &Truth| evidence(truth)[0].verdict;
        assert_eq!(verdict(&held), Plausibility::Ok);
        assert_eq!(verdict(&broken), Plausibility::Suspicious);
        for truth in [&held, &broken] {
            let told = |kept| {
                let few = Truth { kept, matched: 1, ..truth.clone() };
                let items = evidence(&few);
                let first = &items[0];
                assert_eq!(first.key, "truth_within_bound_share");
                assert!(first.sentence.starts_with("Truth: 99 % of"), "{}", first.sentence);
                (first.verdict, first.sentence.contains("less than half of the I/Os"))
            };
            assert_eq!(told(2), (verdict(truth), false));
            assert_eq!(told(3), (Plausibility::Unknown, true));
        }
        assert_eq!(held.beyond_bound_p99(), Some(Nanos::ZERO));
        assert_eq!(broken.beyond_bound_p99(), Some(Nanos(3_000)), "4 µs, and 1 µs between stamps");
        assert_eq!(evidence(&Truth::default()).len(), 1, "nothing was found");
    }

    #[test]
    fn an_error_bar_that_needs_half_of_what_is_measured_proves_nothing() {
        let first = (10 << 20) / 512;
        let verdict = |lag: u64| {
            let requests =
                BlockRequests { requests: vec![request(first, 8, 20_000, 60_000)], lost: 0 };
            let placement =
                Placement { disk: DISK, flushes: true, pieces: vec![(0, 10 << 20, 1 << 20)] };
            let mut truth = Truth::default();
            let wake_up =
                WakeUp { median: Nanos(100), high: Nanos(50_000), max: Nanos(90_000), count: 1024 };
            let ios = [io(0, 10_000, 60_000 + lag, 0)];
            truth.compare((&ios, 0), &[&placement], &Requests::new(requests), wake_up);
            evidence(&truth)[0].verdict
        };
        // A wide allowance is no harm where little of it was needed.
        assert_eq!(verdict(20_000), Plausibility::Ok);
        assert_eq!(verdict(80_000), Plausibility::Unknown, "79 of 130 µs");
        assert_eq!(verdict(102_000), Plausibility::Suspicious);
    }
}

//! What happened in each interval of a time span (`-D`): one series per target for all threads in memory, and what
//! each thread counted in a scratch file, where XML results get it from.
//!
//! The file holds records of one thread and target each, all numbers little endian: the place of the record of the
//! same thread and target before it u64 (all ones: there is none), entries u64, and per entry the interval's number
//! u64, then for reads and for writes: count, bytes, sum u64, sum of squares u128, min, max u64.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use plumb_units::{Nanos, convert};

use super::{IntervalCell, IopsMoments, IopsSeries, scratch};

/// Where there is no record before.
const NONE: u64 = u64::MAX;
/// Entries of a record: this many are in memory per thread and target.
const ENTRIES: usize = 16;
/// Bytes of an entry in the file.
const ENTRY_BYTES: usize = 8 + 2 * CELL_BYTES;
const CELL_BYTES: usize = 7 * 8;
const HEAD_BYTES: usize = 16;

/// What one thread counted for one of its targets in one interval that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedInterval {
    /// Interval number from 0.
    pub number: u64,
    /// Place of the target among the thread's.
    pub place: u32,
    /// Reads.
    pub read: IntervalCell,
    /// Writes.
    pub write: IntervalCell,
}

/// The series of a target over all threads.
#[derive(Debug, Clone)]
pub struct TargetSeries {
    /// Place of the target in the time span.
    pub index: u32,
    /// Reads.
    pub read: IopsSeries,
    /// Writes.
    pub write: IopsSeries,
}

/// What one thread counted by interval for one target.
#[derive(Debug, Clone)]
pub struct ThreadSeries {
    /// Reads.
    pub read: IopsMoments,
    /// Writes.
    pub write: IopsMoments,
    /// Reads and writes.
    pub total: IopsMoments,
    empty: IopsSeriesShape,
    file: Option<Arc<File>>,
    /// Place of the last record.
    last: u64,
    /// What is in no record.
    kept: Arc<[EndedInterval]>,
}

/// What series of a time span have in common.
#[derive(Debug, Clone, Copy)]
struct IopsSeriesShape {
    interval_ms: u32,
    duration_s: u32,
}

impl IopsSeriesShape {
    fn series(self) -> IopsSeries {
        IopsSeries::new(self.interval_ms, self.duration_s)
    }

    fn moments(self) -> IopsMoments {
        let capacity = IopsSeries::capacity(self.interval_ms, self.duration_s);
        IopsMoments::new(Nanos::from_millis(self.interval_ms.max(1).into()), capacity)
    }
}

/// Collects the intervals of a time span while it goes on.
#[derive(Debug)]
pub struct SpanSeries {
    shape: IopsSeriesShape,
    targets: BTreeMap<u32, TargetSeries>,
    threads: Vec<Vec<Row>>,
    file: Arc<File>,
    end: u64,
    /// Whether the file cannot be written: what would go there stays in memory.
    is_stuck: bool,
}

/// One thread and target.
#[derive(Debug)]
struct Row {
    index: u32,
    read: IopsMoments,
    write: IopsMoments,
    total: IopsMoments,
    last: u64,
    kept: Vec<EndedInterval>,
}

impl SpanSeries {
    /// For intervals of `interval_ms` milliseconds in `duration_s` seconds; `threads` names the targets that each thread
    /// works on, in its order, by their places in the time span.
    ///
    /// # Errors
    /// When there can be no scratch file.
    pub fn new(interval_ms: u32, duration_s: u32, threads: &[Vec<u32>]) -> io::Result<Self> {
        let shape = IopsSeriesShape { interval_ms, duration_s };
        let target = |index: &u32| {
            (*index, TargetSeries { index: *index, read: shape.series(), write: shape.series() })
        };
        let moments = shape.moments();
        let row = |index: &u32| Row {
            index: *index,
            read: moments,
            write: moments,
            total: moments,
            last: NONE,
            kept: Vec::with_capacity(ENTRIES),
        };
        let indices: std::collections::BTreeSet<u32> = threads.iter().flatten().copied().collect();
        Ok(Self {
            shape,
            targets: indices.iter().map(target).collect(),
            threads: threads.iter().map(|indices| indices.iter().map(row).collect()).collect(),
            file: Arc::new(scratch::file()?),
            end: 0,
            is_stuck: false,
        })
    }

    /// Adds what `thread` (from 0) counted in an interval. Each interval of a thread and target comes once.
    ///
    /// # Panics
    /// When there is no such thread, or it has no such target.
    pub fn add(&mut self, thread: usize, ended: &EndedInterval) {
        let row = &mut self.threads[thread][convert::index(ended.place)];
        let number = ended.number;
        row.read.add(number, ended.read.count);
        row.write.add(number, ended.write.count);
        row.total.add(number, ended.read.count + ended.write.count);
        if let Some(target) = self.targets.get_mut(&row.index) {
            target.read.add(number, &ended.read);
            target.write.add(number, &ended.write);
        }
        row.kept.push(*ended);
        if row.kept.len() >= ENTRIES && !self.is_stuck {
            let record = record(row.last, &row.kept);
            if self.file.write_all_at(&record, self.end).is_ok() {
                row.last = self.end;
                row.kept.clear();
                self.end += convert::to_u64(record.len());
            } else {
                self.is_stuck = true;
            }
        }
    }

    /// Intervals that are in memory: those of targets, and those of threads on their way to the file.
    #[must_use]
    pub fn cells_in_memory(&self) -> usize {
        let of_target =
            |target: &TargetSeries| target.read.cells().len() + target.write.cells().len();
        let of_row = |row: &Row| 2 * row.kept.capacity();
        self.targets.values().map(of_target).sum::<usize>()
            + self.threads.iter().flatten().map(of_row).sum::<usize>()
    }

    /// The series of all targets, ascending, and those of each thread's targets in its order.
    #[must_use]
    pub fn finish(self) -> (Vec<TargetSeries>, Vec<Vec<ThreadSeries>>) {
        let series = |row: Row| ThreadSeries {
            read: row.read,
            write: row.write,
            total: row.total,
            empty: self.shape,
            file: (row.last != NONE).then(|| Arc::clone(&self.file)),
            last: row.last,
            kept: row.kept.into(),
        };
        let threads = self.threads.into_iter();
        let threads = threads.map(|rows| rows.into_iter().map(series).collect()).collect();
        (self.targets.into_values().collect(), threads)
    }
}

impl ThreadSeries {
    /// The intervals of reads and of writes, read back; they take as much memory as the measurement has intervals.
    ///
    /// # Errors
    /// When the scratch file cannot be read.
    pub fn read_back(&self) -> io::Result<(IopsSeries, IopsSeries)> {
        let (mut read, mut write) = (self.empty.series(), self.empty.series());
        let mut take = |ended: &EndedInterval| {
            read.add(ended.number, &ended.read);
            write.add(ended.number, &ended.write);
        };
        self.kept.iter().for_each(&mut take);
        let mut place = self.last;
        if let Some(file) = &self.file {
            while place != NONE {
                let mut head = [0; HEAD_BYTES];
                file.read_exact_at(&mut head, place)?;
                let mut words = Words(&head);
                let (before, entries) = (words.u64(), words.u64());
                // Each lies before the one that names it: no chain has an end in itself.
                if entries > convert::to_u64(ENTRIES) || (before != NONE && before >= place) {
                    return Err(changed());
                }
                let mut bytes = vec![0; convert::to_usize(entries) * ENTRY_BYTES];
                file.read_exact_at(&mut bytes, place + convert::to_u64(HEAD_BYTES))?;
                bytes.chunks_exact(ENTRY_BYTES).for_each(|bytes| take(&entry(bytes)));
                place = before;
            }
        }
        Ok((read, write))
    }
}

fn changed() -> io::Error {
    io::Error::other("the scratch file of -D was changed by someone else")
}

fn record(before: u64, entries: &[EndedInterval]) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEAD_BYTES + entries.len() * ENTRY_BYTES);
    record.extend_from_slice(&before.to_le_bytes());
    record.extend_from_slice(&convert::to_u64(entries.len()).to_le_bytes());
    for ended in entries {
        record.extend_from_slice(&ended.number.to_le_bytes());
        for cell in [&ended.read, &ended.write] {
            for word in [cell.count, cell.bytes, cell.sum] {
                record.extend_from_slice(&word.to_le_bytes());
            }
            record.extend_from_slice(&cell.sum_of_squares.to_le_bytes());
            record.extend_from_slice(&cell.min.to_le_bytes());
            record.extend_from_slice(&cell.max.to_le_bytes());
        }
    }
    record
}

/// An entry of `ENTRY_BYTES` bytes; its place is the record's.
fn entry(bytes: &[u8]) -> EndedInterval {
    let mut words = Words(bytes);
    let number = words.u64();
    let mut cell = || IntervalCell {
        count: words.u64(),
        bytes: words.u64(),
        sum: words.u64(),
        sum_of_squares: u128::from(words.u64()) | u128::from(words.u64()) << 64,
        min: words.u64(),
        max: words.u64(),
    };
    let (read, write) = (cell(), cell());
    EndedInterval { number, place: 0, read, write }
}

/// What is left to read.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn u64(&mut self) -> u64 {
        let (word, rest) = self.0.split_first_chunk().expect("sized by the caller");
        self.0 = rest;
        u64::from_le_bytes(*word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_MS: u32 = 10;

    fn ended(number: u64, place: u32, latencies: (&[u64], &[u64])) -> EndedInterval {
        let cell = |latencies: &[u64]| {
            let mut cell = IntervalCell::EMPTY;
            latencies.iter().for_each(|latency| cell.record(4096, Nanos(*latency)));
            cell
        };
        EndedInterval { number, place, read: cell(latencies.0), write: cell(latencies.1) }
    }

    #[test]
    fn memory_does_not_grow_with_threads_and_intervals() {
        let cells = |threads: usize, seconds: u32| {
            let mut series = SpanSeries::new(INTERVAL_MS, seconds, &vec![vec![0]; threads]);
            let series = series.as_mut().expect("a scratch file");
            for number in 0..u64::from(seconds) * 100 {
                (0..threads).for_each(|thread| series.add(thread, &ended(number, 0, (&[5], &[7]))));
            }
            series.cells_in_memory()
        };
        let entries = 2 * ENTRIES;
        for (threads, seconds) in [(1, 1), (1, 20), (64, 1), (64, 20)] {
            let intervals = 2 * 100 * convert::index(seconds);
            assert_eq!(cells(threads, seconds), intervals + threads * entries);
        }
        // 19 s more of 64 threads take what 19 s more of one take.
        assert_eq!(cells(64, 20) - cells(64, 1), cells(1, 20) - cells(1, 1));
    }

    #[test]
    fn what_cannot_be_written_stays_in_memory() {
        let mut series = SpanSeries::new(INTERVAL_MS, 1, &[vec![3]]).expect("a scratch file");
        // Opened for reading only: every write fails.
        series.file = Arc::new(File::open("/dev/null").expect("there is one"));
        for number in 0..60 {
            series.add(0, &ended(number, 0, (&[number + 1], &[])));
        }
        let (targets, threads) = series.finish();
        let (read, write) = threads[0][0].read_back().expect("in memory");
        assert_eq!((&read, &write), (&targets[0].read, &targets[0].write));
        assert_eq!((read.valid_intervals(), write.last(), targets[0].index), (60, None, 3));
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_endless_chain() {
        let mut series = SpanSeries::new(INTERVAL_MS, 1, &[vec![0]]).expect("a scratch file");
        for number in 0..80 {
            series.add(0, &ended(number, 0, (&[1], &[2])));
        }
        let file = Arc::clone(&series.file);
        let (_, threads) = series.finish();
        let read_back = || threads[0][0].read_back();
        assert_eq!(read_back().expect("whole").0.valid_intervals(), 80);
        let last = threads[0][0].last;
        file.write_all_at(&last.to_le_bytes(), last).expect("written");
        assert!(read_back().is_err(), "a record before itself");
        file.set_len(last + 8).expect("shorter");
        assert!(read_back().is_err(), "a record cut off");
    }
}

//! Latency histograms of intervals that have ended: in a scratch file, not in memory.
//!
//! A record, all numbers little endian: number u64, the place of the record of the same interval before it u64
//! (all ones: there is none), then for reads and for writes: sum u128, sum of
//! squares u128, min u64, max u64, buckets u64, and (lowest value u64, count u64) per bucket.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use super::{Histogram, scratch};
use crate::result::model::IntervalLatency;
use crate::run_loop::intervals::IntervalPair;

/// Intervals by number, merged over threads; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct IntervalLog {
    file: Option<Arc<File>>,
    /// Place of the last record of each interval: a thread that stalled hands in late.
    places: Arc<BTreeMap<u64, u64>>,
}

/// Where there is no record before.
const NONE: u64 = u64::MAX;

impl IntervalLog {
    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// How many intervals had a completion.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Reads the intervals back, ascending.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<IntervalLatency>> + '_ {
        self.places.iter().map(|(number, last)| {
            let mut merged = IntervalLatency {
                number: *number,
                read: Histogram::new(),
                write: Histogram::new(),
            };
            let Some(file) = &self.file else { return Ok(merged) };
            let mut place = *last;
            while place != NONE {
                let mut reader = BufReader::new(&**file);
                reader.seek(SeekFrom::Start(place))?;
                let before = (read_u64(&mut reader)?, read_u64(&mut reader)?);
                place = match before {
                    // Each lies before the one that names it: no chain has an end in itself.
                    (own, next) if own == *number && (next == NONE || next < place) => next,
                    _ => return Err(changed()),
                };
                merged.read.merge(&read_histogram(&mut reader)?);
                merged.write.merge(&read_histogram(&mut reader)?);
            }
            Ok(merged)
        })
    }
}

/// Writes an [`IntervalLog`] while the run goes on.
#[derive(Debug)]
pub struct IntervalLogWriter {
    file: BufWriter<File>,
    at: u64,
    places: BTreeMap<u64, u64>,
}

impl IntervalLogWriter {
    /// An empty log in a nameless file of the directory for temporary files.
    ///
    /// # Errors
    /// When no such file can be made.
    pub fn new() -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(scratch::file()?), at: 0, places: BTreeMap::new() })
    }

    /// Adds one thread's latencies of one interval.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&mut self, pair: &IntervalPair) -> io::Result<()> {
        let mut record = Vec::with_capacity(4096);
        let before = self.places.get(&pair.number).copied().unwrap_or(NONE);
        record.extend_from_slice(&pair.number.to_le_bytes());
        record.extend_from_slice(&before.to_le_bytes());
        write_histogram(&mut record, &pair.read);
        write_histogram(&mut record, &pair.write);
        self.file.write_all(&record)?;
        self.places.insert(pair.number, self.at);
        self.at += plumb_units::convert::to_u64(record.len());
        Ok(())
    }

    /// Closes the log.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish(self) -> io::Result<IntervalLog> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(IntervalLog { file: Some(Arc::new(file)), places: Arc::new(self.places) })
    }
}

fn write_histogram(record: &mut Vec<u8>, histogram: &Histogram) {
    record.extend_from_slice(&histogram.sum().to_le_bytes());
    record.extend_from_slice(&histogram.sum_of_squares().to_le_bytes());
    record.extend_from_slice(&histogram.min().unwrap_or(u64::MAX).to_le_bytes());
    record.extend_from_slice(&histogram.max().unwrap_or(0).to_le_bytes());
    let buckets = histogram.buckets().count();
    record.extend_from_slice(&plumb_units::convert::to_u64(buckets).to_le_bytes());
    for (low, _, count) in histogram.buckets() {
        record.extend_from_slice(&low.to_le_bytes());
        record.extend_from_slice(&count.to_le_bytes());
    }
}

fn read_histogram(reader: &mut impl Read) -> io::Result<Histogram> {
    let sum = read_u128(reader)?;
    let sum_of_squares = read_u128(reader)?;
    let (min, max) = (read_u64(reader)?, read_u64(reader)?);
    let mut buckets = Vec::new();
    for _ in 0..read_u64(reader)? {
        buckets.push((read_u64(reader)?, read_u64(reader)?));
    }
    Histogram::from_parts(buckets, (sum, sum_of_squares), (min, max)).ok_or_else(changed)
}

fn changed() -> io::Error {
    io::Error::other("the interval log was changed by someone else")
}

fn read_u64(reader: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_u128(reader: &mut impl Read) -> io::Result<u128> {
    let mut bytes = [0; 16];
    reader.read_exact(&mut bytes)?;
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_records_join_their_interval() {
        let mut writer = IntervalLogWriter::new().expect("a scratch file");
        for (number, latency) in [(0, 100), (2, 5_000_000), (0, 300), (1, 7)] {
            let mut pair = IntervalPair { number, ..IntervalPair::default() };
            pair.read.record(latency);
            pair.write.record(latency * 2);
            writer.add(&pair).expect("written");
        }
        let log = writer.finish().expect("flushed");
        let seen: Vec<_> = log
            .iter()
            .map(|interval| {
                let interval = interval.expect("readable");
                (interval.number, interval.read.count(), interval.read.sum(), interval.write.max())
            })
            .collect();
        assert_eq!(
            seen,
            [(0, 2, 400, Some(600)), (1, 1, 7, Some(14)), (2, 1, 5_000_000, Some(10_000_000))]
        );
    }
}

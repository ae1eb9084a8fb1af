//! A trace as a stream of I/Os; what is wrong is told with file, line and remedy.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use plumb_units::Nanos;

use super::binary::{self, RECORD};
use super::line::{self, Line, Volume};
use super::{Capacities, TraceFormat, TraceIo};

/// A longer line is no line.
const LINE_LONGEST: u64 = 16 << 10;
/// What may come before the first line of a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// A whole second in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// A trace is of one time: what comes after a longer pause has another clock, or none.
const PAUSE_MOST_DAYS: u64 = 366;
/// So many I/Os of a whole second are spread over it; those beyond come at its end.
const SPREAD_MAX: usize = 1 << 20;
/// So many faults are kept word by word in lenient mode.
const FAULTS_KEPT: usize = 5;

/// Lines of every format have so many words at least.
const FIELDS_LEAST: usize = 4;

/// Whether a first line that is no I/O has the names of columns: words without digits, no fewer than an I/O has in any format.
fn names_columns(text: &str) -> bool {
    let is_apart = |letter: char| letter == ',' || letter == ';' || letter.is_whitespace();
    let words = text.split(is_apart).filter(|word| !word.is_empty()).count();
    words >= FIELDS_LEAST && !text.bytes().any(|byte| byte.is_ascii_digit())
}

/// What becomes of a bad line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It ends the trace with an error.
    Strict,
    /// It is counted and left out.
    Lenient,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum TraceError {
    /// The file fails.
    #[error("cannot read {}", path.display())]
    #[diagnostic(code(plumb::trace::read), help("name a trace that you may read"))]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line, or a record of a binary trace, is bad.
    #[error("{}, line {line}: {what}", path.display())]
    #[diagnostic(code(plumb::trace::line))]
    Line {
        /// Which file.
        path: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong.
        what: String,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// No I/O is in it.
    #[error("{} has no I/O {}", path.display(), of.as_ref().map_or("in it".to_owned(), |volume| format!("on volume '{volume}'")))]
    #[diagnostic(code(plumb::trace::empty))]
    Empty {
        /// Which file.
        path: PathBuf,
        /// The volume that was asked for.
        of: Option<String>,
        /// What to do.
        #[help]
        remedy: String,
    },
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceSummary {
    /// I/Os.
    pub ios: u64,
    /// Lines, or records of a binary trace, with those that are no I/Os.
    pub lines: u64,
    /// Lines left out as bad (lenient mode).
    pub bad: u64,
    /// The first of them, with their numbers.
    pub faults: Vec<String>,
    /// I/Os earlier than the one before; they count as being at its time.
    pub out_of_order: u64,
    /// Names of the volumes in the order of their numbers.
    pub volumes: Vec<String>,
    /// I/Os of whole seconds that were spread over them: their times within a second are not those of the trace.
    pub spread: u64,
    /// Time of the last I/O.
    pub duration: Nanos,
    /// Made by a generator.
    pub synthetic: bool,
}

/// A trace being read: an iterator that ends after an error.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    path: PathBuf,
    format: TraceFormat,
    strictness: Strictness,
    only: Option<String>,
    capacities: Option<Capacities>,
    line: Vec<u8>,
    numbers: HashMap<String, u32>,
    first: Option<u64>,
    /// The latest time that a line had.
    latest: Nanos,
    /// Lines about I/Os that do not count as one.
    steps: u64,
    /// I/Os of the whole second that is being read, and of one that is over.
    second: Vec<TraceIo>,
    ready: VecDeque<TraceIo>,
    /// The latest time that one was spread to.
    spread_to: Nanos,
    summary: TraceSummary,
    over: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads `input`, which messages call `path`; with `only` the I/Os of that volume alone.
    pub fn new(
        input: R,
        path: &Path,
        format: TraceFormat,
        strictness: Strictness,
        only: Option<String>,
    ) -> Self {
        Self {
            input,
            path: path.to_owned(),
            format,
            strictness,
            only,
            capacities: None,
            line: Vec::new(),
            numbers: HashMap::new(),
            first: None,
            latest: Nanos::ZERO,
            steps: 0,
            second: Vec::new(),
            ready: VecDeque::new(),
            spread_to: Nanos::ZERO,
            summary: TraceSummary::default(),
            over: false,
        }
    }

    /// I/Os of devices that are not among these, or beyond their ends, are bad lines.
    #[must_use]
    pub fn with_capacities(self, capacities: Option<Capacities>) -> Self {
        Self { capacities, ..self }
    }

    /// What was read so far.
    #[must_use]
    pub fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    /// What was read, or why that is nothing.
    ///
    /// # Errors
    /// Without any I/O.
    pub fn end(self) -> Result<TraceSummary, TraceError> {
        if self.summary.ios > 0 {
            return Ok(self.summary);
        }
        let remedy = match &self.only {
            _ if self.steps > 0 && self.summary.volumes.is_empty() => format!(
                "its {} lines about I/Os are of later steps (D: issued, C: completed, ...), and only Q, an I/O that is queued, \
                 counts: record it with `blktrace -d DEVICE -a queue`, or without -a, and print it with blkparse without -a",
                self.steps
            ),
            Some(_) if self.summary.volumes.is_empty() => {
                "the trace has no volume at all".to_owned()
            }
            Some(_) => format!("name one that the trace has: {}", self.summary.volumes.join(", ")),
            None => format!("a line of format {} is: {}", self.format.name(), self.format.shape()),
        };
        // A wrong format is told by what the first line lacks, in lenient mode, too.
        let remedy = match self.summary.faults.first() {
            Some(first) => {
                format!(
                    "{} bad lines were left out, the first: {first}; {remedy}",
                    self.summary.bad
                )
            }
            None => remedy,
        };
        Err(TraceError::Empty { path: self.path, of: self.only, remedy })
    }

    fn read_error(&mut self, source: io::Error) -> TraceError {
        self.over = true;
        TraceError::Read { path: self.path.clone(), source }
    }

    /// A bad line: an error, or counted.
    fn fault(&mut self, what: String) -> Result<(), TraceError> {
        let line = self.summary.lines;
        if self.strictness == Strictness::Strict {
            self.over = true;
            let (name, shape) = (self.format.name(), self.format.shape());
            let remedy = format!(
                "a line of format {name} is: {shape}. Correct the line, name the right --format, or leave bad \
                 lines out with --lenient"
            );
            return Err(TraceError::Line { path: self.path.clone(), line, what, remedy });
        }
        self.summary.bad += 1;
        if self.summary.faults.len() < FAULTS_KEPT {
            self.summary.faults.push(format!("line {line}: {what}"));
        }
        Ok(())
    }

    /// The next I/O; `None` at the end.
    fn next_io(&mut self) -> Result<Option<TraceIo>, TraceError> {
        match self.format.has_whole_seconds() {
            true => self.next_spread(),
            false => self.next_as_told(),
        }
    }

    /// The same, with the I/Os of a whole second spread evenly over it, in the order of the file.
    fn next_spread(&mut self) -> Result<Option<TraceIo>, TraceError> {
        while self.ready.is_empty() {
            // Nothing comes after an error.
            let next = self.next_as_told().inspect_err(|_| self.second.clear())?;
            let begins = self.second.first().map(|first| first.at);
            let is_full = self.second.len() >= SPREAD_MAX;
            match (next, begins) {
                (Some(io), Some(at)) if io.at > at || is_full => {
                    let over = if io.at > at { io.at.since(at).0.min(SECOND) } else { SECOND };
                    self.spread(over);
                    self.second.push(io);
                }
                (Some(io), _) => self.second.push(io),
                (None, Some(_)) => self.spread(SECOND),
                (None, None) => return Ok(None),
            }
        }
        let io = self.ready.pop_front();
        self.summary.duration = io.map_or(self.summary.duration, |io| io.at);
        Ok(io)
    }

    /// Spreads what was read of a second over so many nanoseconds, unless the trace has fractions of seconds.
    fn spread(&mut self, over: u64) {
        let count = plumb_units::convert::to_u64(self.second.len());
        let first = self.first.unwrap_or(0);
        for (nth, mut io) in (0_u64..).zip(self.second.drain(..)) {
            if (first + io.at.0).is_multiple_of(SECOND) && count > 1 {
                // Fewer than a million times a second at most.
                io.at += Nanos(nth * over / count);
                self.summary.spread += 1;
            }
            io.at = io.at.max(self.spread_to);
            self.spread_to = io.at;
            self.ready.push_back(io);
        }
    }

    /// The next I/O at the time that the trace has it at.
    fn next_as_told(&mut self) -> Result<Option<TraceIo>, TraceError> {
        while !self.over {
            let found = match self.format {
                TraceFormat::Plumb => self.next_record()?,
                _ => self.next_line()?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn next_record(&mut self) -> Result<Option<TraceIo>, TraceError> {
        let mut bytes = [0; RECORD];
        let mut filled = 0;
        while filled < RECORD {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
        if filled == 0 {
            self.over = true;
            return Ok(None);
        }
        self.summary.lines += 1;
        if filled < RECORD {
            self.over = true;
            self.fault(format!("the file ends within a record, after {filled} of {RECORD} bytes"))?;
            return Ok(None);
        }
        if self.summary.lines == 1 {
            match binary::header(&bytes) {
                Ok(synthetic) => self.summary.synthetic = synthetic,
                Err(what) => {
                    // Without a header nothing is known about what follows.
                    self.strictness = Strictness::Strict;
                    self.fault(what)?;
                }
            }
            return Ok(None);
        }
        match binary::record(&bytes) {
            Ok(found) => {
                let volume = found.volume.to_string();
                self.accept(found.at.0, &volume, found.io)
            }
            Err(what) => self.fault(what).map(|()| None),
        }
    }

    fn next_line(&mut self) -> Result<Option<TraceIo>, TraceError> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let read = self.input.by_ref().take(LINE_LONGEST).read_until(b'\n', &mut line);
        let found = match read {
            Ok(0) => {
                self.over = true;
                Ok(None)
            }
            Ok(_) => self.look_at(&line),
            Err(error) => Err(self.read_error(error)),
        };
        self.line = line;
        found
    }

    fn look_at(&mut self, line: &[u8]) -> Result<Option<TraceIo>, TraceError> {
        self.summary.lines += 1;
        // Spreadsheets begin a text with it.
        let is_first = self.summary.lines == 1;
        let line = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| is_first).unwrap_or(line);
        if plumb_units::convert::to_u64(line.len()) == LINE_LONGEST && !line.ends_with(b"\n") {
            self.strictness = Strictness::Strict;
            return self
                .fault("it is longer than 16 KiB: this is no text".to_owned())
                .map(|()| None);
        }
        let Ok(text) = std::str::from_utf8(line) else {
            return self.fault("it is not UTF-8".to_owned()).map(|()| None);
        };
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        match line::parse(self.format, text) {
            Ok(Line::Io { at, volume: Volume::One(name), io }) => self.fit(at, name, io),
            Ok(Line::Io { at, volume: Volume::Two(one, two), io }) => {
                let name = match self.format {
                    TraceFormat::Msr => format!("{one}.{two}"),
                    _ => format!("{one}:{two}"),
                };
                self.fit(at, &name, io)
            }
            Ok(Line::Other) => Ok(None),
            Ok(Line::Step) => {
                self.steps += 1;
                Ok(None)
            }
            Ok(Line::End) => {
                self.over = true;
                Ok(None)
            }
            Err(_) if self.summary.lines == 1 && names_columns(text) => Ok(None),
            Err(what) => self.fault(what).map(|()| None),
        }
    }

    /// Takes an I/O that is on its device.
    fn fit(
        &mut self,
        at: u64,
        volume: &str,
        io: crate::heat::HostIo,
    ) -> Result<Option<TraceIo>, TraceError> {
        let Some(capacities) = &self.capacities else { return self.accept(at, volume, io) };
        let end = io.offset.saturating_add(io.len);
        match capacities.of(volume) {
            Some(bytes) if end <= bytes => self.accept(at, volume, io),
            Some(bytes) => {
                let what = format!("it ends at {end}, beyond the {bytes} bytes of device {volume}");
                self.fault(what).map(|()| None)
            }
            None => self.fault(format!("device {volume} has no capacity")).map(|()| None),
        }
    }

    fn accept(
        &mut self,
        at: u64,
        volume: &str,
        io: crate::heat::HostIo,
    ) -> Result<Option<TraceIo>, TraceError> {
        let volume = match self.numbers.get(volume) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
                self.numbers.insert(volume.to_owned(), number);
                self.summary.volumes.push(volume.to_owned());
                number
            }
        };
        if let Some(only) = &self.only
            && self.summary.volumes.get(plumb_units::convert::index(volume)) != Some(only)
        {
            return Ok(None);
        }
        let first = *self.first.get_or_insert(at);
        let mut since = Nanos(at.saturating_sub(first));
        if since < self.latest || at < first {
            self.summary.out_of_order += 1;
            since = self.latest;
        }
        let days = since.since(self.latest).0 / SECOND / 86_400;
        if days > PAUSE_MOST_DAYS {
            let what = format!("its time is {days} days after that of the I/O before");
            return self.fault(what).map(|()| None);
        }
        self.latest = since;
        self.summary.duration = since;
        self.summary.ios += 1;
        Ok(Some(TraceIo { at: since, volume, io }))
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceIo, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_io().transpose()
    }
}

/// Reads any bytes as a trace of every format, both ways; for fuzzing. The first byte picks the way.
pub fn fuzz_trace(bytes: &[u8]) {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let strictness = if first % 2 == 0 { Strictness::Strict } else { Strictness::Lenient };
    for format in TraceFormat::ALL {
        let companion = Capacities::read(rest, Path::new("fuzz")).ok().filter(|_| first % 4 > 1);
        let reader = TraceReader::new(rest, Path::new("fuzz"), format, strictness, None);
        let mut reader = reader.with_capacities(companion);
        let mut last = Nanos::ZERO;
        for io in reader.by_ref().map_while(Result::ok) {
            assert!(io.at >= last && io.io.len > 0, "time does not go back");
            last = io.at;
        }
        assert!(reader.summary.faults.len() <= FAULTS_KEPT, "few are kept");
    }
}

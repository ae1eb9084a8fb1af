//! What a pool's engine says while it runs, beside the list of pools: events, a line each, and the newest counters.
//! Whoever asks reads files; the engine waits for nobody, and loses nothing but these lines if they cannot be
//! written (C13).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use plumb_io::FlushQueue;

use super::answers::Answers;
use super::asks;
use super::findings::{self, Findings};
use super::full::full_below;
use super::jobs::JobTeller;
use super::live::now_ms;
use super::registry::Registry;
use super::scans::ScanTeller;
use crate::engine::{Counter, Engine};
use crate::events::{Event, Severity};
use crate::format::Config;

/// A file of events begins anew beyond that many bytes; the one before it is kept.
const EVENTS_MAX: u64 = 1 << 20;
/// How often counters are written.
const PERF_EVERY: Duration = Duration::from_secs(1);
/// How often a command looks for wishes.
const ASKS_EVERY: Duration = Duration::from_millis(100);
/// What the event of a refused wish is called.
const WISH_REFUSED: &str = "wish-refused";
/// What the event of a start that is refused is called.
const START_REFUSED: &str = "start-refused";
/// What the event of a start without a quorum, to read, is called.
const READ_ONLY: &str = "read-only";
/// The longest file of counters that is read.
const PERF_MAX: u64 = 16 << 20;

/// An event as it was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedEvent {
    /// When: milliseconds since 1970.
    pub unix_ms: u64,
    /// How much it matters, in one word.
    pub severity: String,
    /// What, in one word.
    pub name: String,
    /// What, in words.
    pub text: String,
}

/// Counters as they were written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedCounters {
    /// When: milliseconds since 1970.
    pub unix_ms: u64,
    /// How long the pool had run then, in milliseconds.
    pub uptime_ms: u64,
    /// Process that wrote them.
    pub process: u32,
    /// Whether the pool was still running then.
    pub running: bool,
    /// Set, instance, name, unit and value of each.
    pub counters: Vec<(String, String, String, String, u64)>,
}

/// Writes down what an engine says.
#[derive(Debug)]
pub struct Chronicle {
    events: PathBuf,
    perf: PathBuf,
    asks: PathBuf,
    began: Instant,
    written: Option<Instant>,
    looked: Option<Instant>,
    /// Where findings are kept, and of which pool.
    kept: (PathBuf, String),
    findings: Findings,
    /// They changed since they were written.
    changed: bool,
    /// When a scan that is under way began, in milliseconds since 1970.
    scan_began: Option<u64>,
    /// How scans go.
    scans: ScanTeller,
    /// What work is left.
    jobs: JobTeller,
    /// What wishes were answered.
    answers: Answers,
    /// Blocks healed so far, by disk.
    healed: Vec<u64>,
}

impl Chronicle {
    /// Of that pool.
    #[must_use]
    pub fn of(registry: &Registry, pool: &str) -> Self {
        let [events, _, perf] = paths(registry, pool);
        let asks = asks::place(registry, pool);
        Self {
            events,
            perf,
            asks,
            began: Instant::now(),
            written: None,
            looked: None,
            kept: (registry.folder().to_owned(), pool.to_owned()),
            findings: Findings::of_a_started(registry, pool),
            changed: false,
            scan_began: None,
            scans: ScanTeller::new(registry, pool),
            jobs: JobTeller::new(registry, pool),
            answers: Answers::new(registry, pool),
            healed: Vec::new(),
        }
    }

    /// The same, of a use that begins: what was asked of the one before is forgotten.
    #[must_use]
    pub fn begin(registry: &Registry, pool: &str) -> Self {
        asks::forget(registry, pool);
        Self::of(registry, pool)
    }

    /// Where it is written down.
    #[must_use]
    pub(super) fn registry(&self) -> Registry {
        Registry::at(&self.kept.0)
    }

    /// Hands the engine what other programs asked of it.
    pub fn take_asks<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>) {
        for asked in asks::take(&self.asks) {
            if let Ok(ask @ asks::Ask::OfflineIfSpared(disk, number)) = asked
                && let Err(why) = ask.judge(engine)
            {
                // That has an event of its own.
                engine.tell(Event::DiskNeeded(disk));
                self.answers.tell(number, Err(why));
                continue;
            }
            if let Ok(ask @ asks::Ask::Cancel(..)) = asked {
                self.cancel(engine, ask);
                continue;
            }
            let judged = asked.and_then(|ask| match ask.judge(engine) {
                Ok(()) => Ok(ask),
                Err(why) => Err(asks::Refused { number: ask.number(), why }),
            });
            let ask = match judged {
                Ok(ask) => ask,
                Err(refused) => {
                    self.refuse(refused);
                    continue;
                }
            };
            if matches!(ask, asks::Ask::Scan | asks::Ask::ScanAccepting) {
                self.scans.asked();
            }
            if ask == asks::Ask::Jobs {
                self.jobs.tell(engine, self.began.elapsed());
            }
            if let Some(number) = ask.number() {
                self.answers.tell(number, Ok(()));
            }
            ask.apply(engine);
        }
    }

    /// Says why a wish is refused: to whoever asked, and for whoever reads the events.
    fn refuse(&mut self, refused: asks::Refused) {
        let text = format!("an optimization that was asked for was refused: {}", refused.why);
        self.note_line(&format!(
            "{}\t{}\t{WISH_REFUSED}\t{}\n",
            now_ms(),
            Severity::Warning.name(),
            plain(&text)
        ));
        if let Some(number) = refused.number {
            self.answers.tell(number, Err(refused.why));
        }
    }

    /// Ends an optimization, if one is under way, and answers.
    fn cancel<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>, ask: asks::Ask) {
        let judged = ask.judge(engine);
        if judged.is_ok() {
            ask.apply(engine);
        }
        if let Some(number) = ask.number() {
            self.answers.tell(number, judged);
        }
    }

    /// The same of a command's own work, ten times a second: it hands out what reports are told from, says what work is left, ends
    /// its optimization, and does nothing else for others.
    pub(super) fn serve_if_asked<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>) {
        if self.looked.is_none_or(|at| at.elapsed() >= ASKS_EVERY) {
            self.looked = Some(Instant::now());
            let is = |ask: &asks::Ask| {
                matches!(ask, asks::Ask::Publish | asks::Ask::Jobs | asks::Ask::Cancel(..))
            };
            let mut wishes = asks::take_if_all(&self.asks, is);
            wishes.dedup();
            for ask in wishes {
                match ask {
                    asks::Ask::Publish => engine.publish(),
                    asks::Ask::Jobs => self.jobs.tell(engine, self.began.elapsed()),
                    other => self.cancel(engine, other),
                }
            }
        }
    }

    /// Writes down what happened since, and now and then the counters.
    pub fn watch<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>) {
        if engine.is_scanning() {
            self.scan_began.get_or_insert_with(now_ms);
        }
        self.note_events(engine);
        if self.scans.is_over(engine) {
            // Whoever waits for the scan may read what came of it as soon as they hear of its end.
            self.note_healed(engine);
            self.write_findings();
        }
        self.scans.watch(engine, false);
        if self.written.is_none_or(|at| at.elapsed() >= PERF_EVERY) {
            self.written = Some(Instant::now());
            self.note_healed(engine);
            self.note_detached(engine);
            self.write_findings();
            self.write_counters(&engine.perf(), true);
        }
    }

    /// Writes down what a start met that is followed by one change and the end: it is told as if the pool had been used.
    pub(super) fn note_start<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>) {
        self.note_events(engine);
        self.note_healed(engine);
        self.note_detached(engine);
        self.write_findings();
    }

    fn note_events<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>) {
        while let Some(event) = engine.next_event() {
            self.note(&event, engine.config());
            if matches!(event, Event::Halted(_)) {
                self.note_full();
            }
            if matches!(event, Event::DiskCleared(_)) {
                // What was healed before is forgotten with the rest.
                self.note_healed(engine);
            }
            self.changed |= self.findings.note(&event, engine.config());
            if matches!(event, Event::Scanned | Event::ScannedInPart { .. })
                && let Some(began) = self.scan_began.take()
            {
                let of = |id: u128| engine.config().vdisks.iter().find(|own| own.id == id);
                let read = |id: u128, extent: u32| {
                    of(id).is_none_or(|own| engine.was_scanned(own.first_extent + extent))
                };
                self.changed |= self.findings.scanned(began, read);
            }
        }
        if !engine.is_unchanging() && self.findings.note_config(engine.config()) {
            self.changed = true;
            // Before much is done by it: a program may end at any moment.
            self.write_findings();
        }
    }

    /// Writes down the last of it: the engine is about to end.
    pub fn end<Q: FlushQueue>(&mut self, engine: &mut Engine<Q>) {
        self.watch(engine);
        self.scans.watch(engine, true);
        self.note_healed(engine);
        self.note_detached(engine);
        self.write_findings();
        self.write_counters(&engine.perf(), false);
    }

    fn note_healed<Q: FlushQueue>(&mut self, engine: &Engine<Q>) {
        self.healed.resize(engine.config().disks.len(), 0);
        for ((nth, disk), before) in (0..).zip(&engine.config().disks).zip(&mut self.healed) {
            let now = engine.disk_use(nth).healed;
            let more = now - std::mem::replace(before, now);
            if more > 0 {
                self.findings.note_healed(disk.id, more);
                self.changed = true;
            }
        }
    }

    fn note_detached<Q: FlushQueue>(&mut self, engine: &Engine<Q>) {
        let vdisks = (0_u32..).zip(&engine.config().vdisks);
        let detached = vdisks.filter(|(nth, own)| !own.is_removed() && engine.is_detached(*nth));
        self.changed |= self.findings.note_detached(detached.map(|(_, own)| own.id).collect());
    }

    /// A pool stopped: where a file system below it has no room, that is why.
    fn note_full(&self) {
        let registry = self.registry();
        let Ok(pool) = registry.find(&self.kept.1) else { return };
        if let Some(path) = full_below(&pool.disks).first() {
            findings::note_full(&registry, &pool.name, path);
        }
    }

    fn write_findings(&mut self) {
        if std::mem::take(&mut self.changed) {
            let (folder, pool) = &self.kept;
            self.findings.take_full_of(Findings::of(&Registry::at(folder), pool));
            // Best effort, as for counters; what is wrong is found again.
            let _ = self.findings.write(folder, pool);
        }
    }

    /// Writes down one event.
    pub fn note(&self, event: &Event, config: &Config) {
        self.note_line(&event_line(now_ms(), event, config));
    }

    fn note_line(&self, line: &str) {
        append(&self.events, line);
    }

    fn write_counters(&self, counters: &[Counter], running: bool) {
        let mut text = format!(
            "plumb-perf 1\t{}\t{}\t{}\t{running}\n",
            now_ms(),
            self.began.elapsed().as_millis(),
            std::process::id()
        );
        for one in counters {
            let instance = plain(&one.instance);
            let line =
                format!("{}\t{instance}\t{}\t{}\t{}\n", one.set, one.name, one.unit, one.value);
            text.push_str(&line);
        }
        let beside = self.perf.with_extension("perf-new");
        // Best effort, as above.
        let _ = File::create(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&beside, &self.perf));
    }
}

/// Writes down one event of a pool whose engine has no chronicle.
pub(super) fn note_event(registry: &Registry, pool: &str, event: &Event, config: &Config) {
    let [events, ..] = paths(registry, pool);
    append(&events, &event_line(now_ms(), event, config));
}

/// Writes down that a pool was refused.
pub(super) fn note_refused(registry: &Registry, pool: &str, why: &str) {
    note_once(registry, pool, START_REFUSED, &format!("the pool was not started: {why}"));
}

/// Writes down that a pool was started to be read only.
pub(super) fn note_read_only(registry: &Registry, pool: &str, why: &str) {
    note_once(registry, pool, READ_ONLY, &format!("the pool was started to be read only: {why}"));
}

/// Once for as long as nothing else is told of the pool.
fn note_once(registry: &Registry, pool: &str, name: &str, text: &str) {
    let text = plain(text);
    let last = events(registry, pool).pop();
    if last.is_some_and(|last| last.name == name && last.text == text) {
        return;
    }
    let [events, ..] = paths(registry, pool);
    let severity = Severity::Error.name();
    append(&events, &format!("{}\t{severity}\t{name}\t{text}\n", now_ms()));
}

fn append(events: &PathBuf, line: &str) {
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(events)?;
        if file.metadata()?.len() > EVENTS_MAX {
            std::fs::rename(events, events.with_extension("events-before"))?;
            file = OpenOptions::new().create(true).append(true).open(events)?;
        }
        // One write: lines of two programs never mix.
        file.write_all(line.as_bytes())
    };
    // Best effort: data does not wait for what is said about it.
    let _ = write();
}

fn paths(registry: &Registry, pool: &str) -> [PathBuf; 3] {
    let path = |extension: &str| registry.folder().join(format!("{pool}.{extension}"));
    [path("events"), path("events-before"), path("perf")]
}

pub(super) fn plain(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

fn event_line(unix_ms: u64, event: &Event, config: &Config) -> String {
    let (severity, name) = (event.severity().name(), event.name());
    format!("{unix_ms}\t{severity}\t{name}\t{}\n", plain(&event.tell(config)))
}

fn parse_event(line: &str) -> Option<LoggedEvent> {
    let mut fields = line.splitn(4, '\t');
    let unix_ms = fields.next()?.parse().ok()?;
    let [severity, name, text] = [fields.next()?, fields.next()?, fields.next()?];
    let known = [Severity::Information, Severity::Warning, Severity::Error];
    known.iter().any(|one| one.name() == severity).then(|| LoggedEvent {
        unix_ms,
        severity: severity.to_owned(),
        name: name.to_owned(),
        text: text.to_owned(),
    })
}

pub(super) fn read(path: &PathBuf, most: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The events of a pool that were written down, oldest first: at least the last few thousand. Lines that are none
/// are left out.
#[must_use]
pub fn events(registry: &Registry, pool: &str) -> Vec<LoggedEvent> {
    let [newer, older, _] = paths(registry, pool);
    let texts = [older, newer].into_iter().filter_map(|path| read(&path, 2 * EVENTS_MAX));
    texts.flat_map(|text| text.lines().filter_map(parse_event).collect::<Vec<_>>()).collect()
}

/// The newest counters of a pool, if any were written down.
#[must_use]
pub fn counters(registry: &Registry, pool: &str) -> Option<LoggedCounters> {
    let [_, _, path] = paths(registry, pool);
    parse_counters(&read(&path, PERF_MAX)?)
}

/// Reads any text as events and as counters.
pub(super) fn fuzz(text: &str) {
    let _ = parse_counters(text);
    assert!(text.lines().filter_map(parse_event).count() <= text.lines().count());
}

fn parse_counters(text: &str) -> Option<LoggedCounters> {
    let mut lines = text.lines();
    let mut head = lines.next()?.split('\t');
    if head.next()? != "plumb-perf 1" {
        return None;
    }
    let unix_ms = head.next()?.parse().ok()?;
    let uptime_ms = head.next()?.parse().ok()?;
    let process = head.next()?.parse().ok()?;
    let running = head.next()? == "true";
    let one = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [set, instance, name, unit, value] = fields[..] else { return None };
        let text = |field: &str| field.to_owned();
        Some((text(set), text(instance), text(name), text(unit), value.parse().ok()?))
    };
    let counters = lines.map(one).collect::<Option<Vec<_>>>()?;
    Some(LoggedCounters { unix_ms, uptime_ms, process, running, counters })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool that is refused says so once, and again when something else was told meanwhile or it is refused for something else.
    #[test]
    fn a_refused_start_is_told_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        let names = || -> Vec<(String, String)> {
            events(&registry, "p").into_iter().map(|event| (event.name, event.text)).collect()
        };
        note_refused(&registry, "p", "two\tparts");
        note_refused(&registry, "p", "two\tparts");
        let refused =
            ("start-refused".to_owned(), "the pool was not started: two parts".to_owned());
        assert_eq!(names(), std::slice::from_ref(&refused));
        note_read_only(&registry, "p", "1 of 3");
        note_refused(&registry, "p", "two\tparts");
        let read_only =
            ("read-only".to_owned(), "the pool was started to be read only: 1 of 3".to_owned());
        assert_eq!(names(), [refused.clone(), read_only, refused]);
        assert!(events(&registry, "p").iter().all(|event| event.severity == "error"));
    }

    #[test]
    fn what_is_written_down_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        assert_eq!((events(&registry, "p"), counters(&registry, "p")), (Vec::new(), None));
        let chronicle = Chronicle::of(&registry, "p");
        for disk in 0..3 {
            chronicle.note(&Event::DiskLost(disk), &Config::default());
        }
        let found = events(&registry, "p");
        let names: Vec<&str> = found.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(names.len(), 3);
        assert!(names[2].contains("number 2"), "{names:?}");
        assert_eq!((found[0].name.as_str(), found[0].severity.as_str()), ("disk-lost", "warning"));
        let one = |instance: &str| Counter {
            set: "Pool",
            instance: instance.to_owned(),
            name: "Reads",
            unit: "n",
            value: 7,
        };
        chronicle.write_counters(&[one("a\tb"), one("c")], true);
        let found = counters(&registry, "p").expect("written");
        assert!(found.running && found.process == std::process::id());
        assert_eq!(found.counters[0].1, "a b");
        assert_eq!(found.counters[1].4, 7);
    }

    #[test]
    fn no_file_of_events_grows_without_bound() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        let chronicle = Chronicle::of(&registry, "p");
        std::fs::write(&chronicle.events, vec![b'x'; (1 << 20) + 1]).expect("written");
        chronicle.note(&Event::DiskLost(1), &Config::default());
        assert!(std::fs::metadata(&chronicle.events).expect("there").len() < 1000);
        chronicle.note(&Event::DiskBack(1), &Config::default());
        let names: Vec<String> =
            events(&registry, "p").into_iter().map(|event| event.name).collect();
        assert_eq!(names, ["disk-lost", "disk-back"], "what is no event is left out");
    }

    #[test]
    fn damaged_files_are_read_or_left_out() {
        let whole =
            "plumb-perf 1\t5\t6\t7\ttrue\nPool\tp\tReads\tn\t7\n1\twarning\tdisk-lost\twords\n";
        let mut random = crate::random::Random::new(4);
        for _ in 0..20_000 {
            let mut bytes = whole.as_bytes().to_vec();
            for _ in 0..=random.below(4) {
                let at = usize::try_from(random.below(bytes.len() as u64)).expect("small");
                bytes[at] = b"\t\n 9x\xff"[usize::try_from(random.below(6)).expect("small")];
            }
            let text = String::from_utf8_lossy(&bytes);
            fuzz(&text);
        }
    }
}

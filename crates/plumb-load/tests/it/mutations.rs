//! Profiles and results that were damaged at random: reading them ends soon and never panics.
//!
//! The bodies are the ones that `fuzz/` runs with coverage; a failure prints its seed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_load::convert::fuzz_result;
use plumb_load::profile::xml::fuzz_profile;

use crate::accepted;

/// Inputs per kind.
const INPUTS: u64 = 20_000;

/// Inputs whose time spans run.
const RUN_INPUTS: u64 = 4000;

/// Longer inputs say nothing that shorter ones do not.
const LENGTH_MAX: usize = 1 << 17;

/// Processor time that no input of that length needs, by far.
const TIME_MAX: Duration = Duration::from_secs(10);

#[test]
fn damaged_profiles_are_read_or_refused() {
    let words: &[&[u8]] = &[
        b"<Target>",
        b"</Target>",
        b"<Path>",
        b"</Path>",
        b"<TimeSpan>",
        b"</TimeSpan>",
        b"<Random>4096</Random>",
        b"<StrideSize>0</StrideSize>",
        b"<IoRing/>",
        b"<Affinity>",
        b"<Group Group=\"1\" Mask=\"0x3\"/>",
        b"<AffinityAssignment>300</AffinityAssignment>",
        b"<Range IO=\"50\">50</Range>",
        b"<ThreadCount>3</ThreadCount>",
        b"</Profile>",
        b"<RandomRatio>7</RandomRatio>",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b"&amp;",
        b"&#13;",
        b"&#x0;",
        b"&x;",
        b" xmlns=\"u\"",
        b"<!DOCTYPE a>",
        b"<?x?>",
        b" unit=\"IOPS\"",
        b"true",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\0",
        b"\r",
        b"18446744073709551615",
        b"4294967296",
        b"-1",
    ];
    run(&corpus("profiles", &["xml"]), words, fuzz_profile);
}

#[test]
fn damaged_results_are_read_or_refused() {
    let words: &[&[u8]] = &[
        b"Results for timespan 1:\n",
        b"Total IO\n",
        b"Read IO\n",
        b"Write IO\n",
        b"total:",
        b"Command Line: x\n",
        b"Input parameters:\n",
        b"System information:\n",
        b"Totals:\n",
        b"Total latency distribution:\n",
        b"Latency distribution: f\n",
        b"Wait Statistics\n",
        b"    min |",
        b"9-nines |",
        b"100-nines |",
        b"avg.|",
        b" | ",
        b"|",
        b"----------",
        b"%",
        b"\tpath: '",
        b"affinity (group/cpu): 0/0-255,0-255",
        b"\ttimespan:   9\n",
        b"  timespan:",
        b"N/A",
        b"-nan(ind)",
        b"-1.#IND",
        b"1e400",
        b"99999999999999999999",
        b"(1.99PiB)",
        b"(",
        b"<Results>",
        b"</Results>",
        b"<TimeSpan>",
        b"<Thread>",
        b"<Bucket>",
        b"\"<unknown>\"",
        b"<Error>",
        b"&",
        b"&#9999999;",
        b"<",
        b">",
        b"\"",
        b"\r\n",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ];
    run(&corpus("results/reports", &["txt", "xml"]), words, fuzz_result);
}

/// What is accepted can be planned and issued: every time span's threads on a queue that completes at once.
#[test]
fn damaged_profiles_that_are_accepted_run() {
    let words: &[&[u8]] = &[
        b"<Random>4096</Random>",
        b"<StrideSize>8192</StrideSize>",
        b"<BaseFileOffset>1048576</BaseFileOffset>",
        b"<MaxFileSize>2097152</MaxFileSize>",
        b"<ThreadStride>65536</ThreadStride>",
        b"<InterlockedSequential>true</InterlockedSequential>",
        b"<ParallelAsyncIO>true</ParallelAsyncIO>",
        b"<RandomRatio>7</RandomRatio>",
        b"<WriteRatio>50</WriteRatio>",
        b"<RequestCount>17</RequestCount>",
        b"<BlockSize>12288</BlockSize>",
        b"<ThreadCount>3</ThreadCount>",
        b"<Throughput>1000</Throughput>",
        b"<BurstSize>3</BurstSize><ThinkTime>2</ThinkTime>",
        b"<CompletionRoutines>true</CompletionRoutines>",
        b"<Weight>5</Weight>",
        b"<ThreadsPerFile>4</ThreadsPerFile>",
    ];
    let mut corpus = corpus("profiles", &["xml"]);
    corpus.retain(|case| accepted::run(case) > 0);
    assert!(corpus.len() > 20, "{} accepted profiles", corpus.len());
    let mut ios = 0;
    for seed in 0..RUN_INPUTS {
        let mut draws = Draws(seed);
        let mut input = draws.of(&corpus).clone();
        for _ in 0..draws.below(4) {
            damage(&mut input, &mut draws, &corpus, words);
            input.truncate(LENGTH_MAX);
        }
        let start = thread_time();
        match std::panic::catch_unwind(|| accepted::run(&input)) {
            Ok(issued) => ios += issued,
            Err(_) => panic!("seed {seed}: {}", String::from_utf8_lossy(&input)),
        }
        assert!(thread_time() - start < TIME_MAX, "seed {seed}: {:?}", thread_time() - start);
    }
    assert!(ios > 50 * RUN_INPUTS, "only {ios} I/Os were issued");
}

/// The files of a folder of cases.
fn corpus(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance");
    let entries = std::fs::read_dir(data.join(folder)).expect("the folder of the cases");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|own| extensions.iter().any(|e| own == *e)));
    paths.sort();
    assert!(!paths.is_empty(), "no case in {folder}");
    paths.iter().map(|path| std::fs::read(path).expect("a case")).collect()
}

fn run(corpus: &[Vec<u8>], words: &[&[u8]], body: fn(&[u8])) {
    for seed in 0..INPUTS {
        let mut draws = Draws(seed);
        let mut input = draws.of(corpus).clone();
        for _ in 0..=draws.below(4) {
            damage(&mut input, &mut draws, corpus, words);
            input.truncate(LENGTH_MAX);
        }
        let start = thread_time();
        if std::panic::catch_unwind(|| body(&input)).is_err() {
            panic!("seed {seed}: {}", String::from_utf8_lossy(&input));
        }
        assert!(thread_time() - start < TIME_MAX, "seed {seed}: {:?}", thread_time() - start);
    }
}

/// One change of some kind.
fn damage(input: &mut Vec<u8>, draws: &mut Draws, corpus: &[Vec<u8>], words: &[&[u8]]) {
    let at = draws.below(input.len() + 1);
    let end = (at + draws.below(64)).min(input.len());
    match draws.below(8) {
        0 if at < input.len() => input[at] ^= 1 << draws.below(8),
        1 => drop(input.drain(at..end)),
        2 => {
            let copy = input[at..end].to_vec();
            let times = 1 + draws.below(300);
            input.splice(at..at, copy.repeat(times));
        }
        3 => insert(input, at, draws.of::<&[u8]>(words)),
        4 => {
            // Another number in the place of one.
            let start = input[at..].iter().position(u8::is_ascii_digit).map(|found| at + found);
            if let Some(start) = start {
                let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let numbers =
                    ["0", "1", "255", "65536", "4294967295", "18446744073709551615", "1e9"];
                let number = draws.of(&numbers).bytes();
                input.splice(start..start + length, number);
            }
        }
        5 => {
            let other = draws.of(corpus);
            let from = draws.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        6 => input.truncate(at),
        _ => {
            // A line once more, somewhere else.
            let line = input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let length = input[line..].iter().position(|byte| *byte == b'\n');
            let copy = input[line..].iter().take(length.map_or(0, |end| end + 1)).copied();
            let copy: Vec<u8> = copy.collect();
            let at = draws.below(input.len() + 1);
            insert(input, at, &copy);
        }
    }
}

/// What this thread has had of a processor.
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

/// A small generator of even draws (SplitMix64).
struct Draws(u64);

impl Draws {
    /// Below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(end).expect("64 bits"))
            .expect("below a usize")
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

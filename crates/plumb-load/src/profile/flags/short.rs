//! Short options: one token, a letter or two, and the value (spec 3.1).

use super::line::Given;
use super::table::Id;

/// The option that token `index`, with a sign of `sign` bytes, is; [`Id::Unknown`] if it is none.
pub(super) fn read(line: &[String], index: usize, sign: usize) -> Given<'_> {
    let token = &line[index];
    let rest = &token[sign..];
    let (id, letters) = option(rest);
    let name = format!("-{}", &rest[..letters]);
    let value = &rest[letters..];
    Given::new(line, index, (id, name), value, Some((index, sign + letters)))
}

/// What it does, and the bytes of its name.
fn option(text: &str) -> (Id, usize) {
    let Some(letter) = text.chars().next() else { return (Id::Unknown, 0) };
    let value = &text[letter.len_utf8()..];
    let second = value.chars().next();
    let id = match (letter, second) {
        ('?', _) => Id::Help,
        (':', _) => Id::ExperimentFlags,
        ('a', _) if value.is_empty() || value == "g" => Id::AffinityDefault,
        ('a', Some('c' | 's' | 'p' | 'P' | 'e' | 'E' | 'u')) => Id::AffinityOrder,
        ('a', _) => Id::Affinity,
        ('b', Some('s')) => return (Id::BufferSeparation, 2),
        ('b', _) => Id::BlockSize,
        ('B', _) => Id::BaseOffset,
        ('c', _) => Id::Create,
        ('C', _) => Id::Cooldown,
        ('d', _) => Id::Duration,
        ('D', _) => Id::IopsInterval,
        ('e', _) => Id::Trace,
        ('f', Some('0'..='9') | None) => Id::MaxOffset,
        ('f', _) => Id::OpenHint,
        ('F', _) => Id::PoolThreads,
        ('g', _) => Id::Throughput,
        ('h', _) => Id::DisableAllCache,
        ('i', _) => Id::BurstSize,
        ('I', _) => Id::IoPriority,
        ('j', _) => Id::ThinkTime,
        ('l', _) => Id::LargePages,
        ('L', _) => Id::Latency,
        ('n', _) => Id::NoAffinity,
        ('N', _) => Id::MmapFlush,
        ('o', Some('c')) => return (Id::CompletionDepth, 2),
        ('o', _) => Id::Outstanding,
        ('O', _) => Id::ThreadOutstanding,
        ('p', _) => Id::ParallelAsync,
        ('P', _) => Id::Progress,
        ('r', Some('s')) => return (Id::RandomPercent, 2),
        ('r', Some('d')) => return (Id::Distribution, 2),
        ('r', _) => Id::Random,
        ('R', Some('s')) => return (Id::SystemInfo, 2),
        ('R', Some('p')) if value.starts_with("ps") => return (Id::SystemInfo, 3),
        ('R', Some('p')) => return (Id::ProfileOnly, 2),
        ('R', _) => Id::ResultFormat,
        ('s', Some('i')) => return (Id::Interlocked, 2),
        ('s', _) => Id::Sequential,
        ('S', _) => Id::Cache,
        ('t', _) => Id::Threads,
        ('T', _) => Id::ThreadStride,
        ('u', Some('n')) => return (Id::IoRingUnregistered, 2),
        ('u', _) => Id::IoRing,
        ('v', Some('s')) if value == "s" => return (Id::VerboseStats, 2),
        ('v', _) => Id::Verbose,
        ('w', _) => Id::WritePercent,
        ('W', _) => Id::Warmup,
        ('x', _) => Id::CompletionRoutines,
        ('X', _) => Id::Profile,
        ('y', Some('s')) => return (Id::SignalStart, 2),
        ('y', Some('f')) => return (Id::SignalFinish, 2),
        ('y', Some('r')) => return (Id::WaitStart, 2),
        ('y', Some('p')) => return (Id::StopEvent, 2),
        ('y', Some('e')) => return (Id::SignalEvent, 2),
        ('y', _) => Id::UnknownEvent,
        ('z', _) => Id::Seed,
        ('Z', None) => Id::ZeroBuffers,
        ('Z', Some('r')) if value == "r" => return (Id::RandomWriteData, 2),
        ('Z', _) => Id::WriteSource,
        _ => Id::Unknown,
    };
    (id, letter.len_utf8())
}

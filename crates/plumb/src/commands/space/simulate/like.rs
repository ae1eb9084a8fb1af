//! The load that a result of DISKSPD or Plumb tells of, as a workload to generate (spec 20: diskspd XML and text for
//! parameters).

use std::io;
use std::path::{Path, PathBuf};

use plumb_load::convert::{self, ImportError, ImportedResult, ImportedSpan};
use plumb_load::profile::model::{DistributionKind, Target};
use plumb_tier::trace::{WorkloadError, WorkloadSpec};
use plumb_units::Bytes;

use crate::commands::sources::read_bounded;

/// Bytes of an extent of a generated space.
const EXTENT: u64 = 1 << 20;

/// Why no workload comes of a result.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum LikeError {
    #[error("cannot read {}", path.display())]
    #[diagnostic(code(plumb::simulate::like_read), help("name a result that you may read"))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    #[diagnostic(
        code(plumb::simulate::like_result),
        help("name what DISKSPD or `plumb run` printed, as text or with -Rxml")
    )]
    Result { path: PathBuf, source: ImportError },
    #[error("{}: {what}", path.display())]
    #[diagnostic(code(plumb::simulate::like_load))]
    Load {
        path: PathBuf,
        what: String,
        #[help]
        remedy: String,
    },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(#[from] WorkloadError),
}

/// What keeps a load from being generated, and what to do.
type Refusal = (String, &'static str);

/// The workload of the first result in a file, going on for so many hours.
pub(super) fn workload(path: &Path, hours: f64) -> Result<WorkloadSpec, LikeError> {
    let bytes =
        read_bounded(path).map_err(|source| LikeError::Read { path: path.to_owned(), source })?;
    let results = convert::read(&bytes)
        .map_err(|source| LikeError::Result { path: path.to_owned(), source })?;
    let text = results
        .first()
        .ok_or_else(|| ("there is no result in it".to_owned(), "name another file"))
        .and_then(|result| parameters(result, hours));
    let text = text.map_err(|(what, remedy)| LikeError::Load {
        path: path.to_owned(),
        what,
        remedy: remedy.to_owned(),
    })?;
    Ok(WorkloadSpec::parse(&text)?)
}

/// What a generator takes for the load of the first time span.
fn parameters(result: &ImportedResult, hours: f64) -> Result<String, Refusal> {
    let spans = result.profile.as_ref().map(|profile| &profile.time_spans[..]).unwrap_or_default();
    let (Some(asked), Some(measured)) = (spans.first(), result.time_spans.first()) else {
        return Err((
            "it does not say what was run".to_owned(),
            "name a whole result, with its input parameters",
        ));
    };
    let Some((target, others)) = asked.targets.split_first() else {
        return Err(("no target is in it".to_owned(), "name a result with a target"));
    };
    let same = |other: &Target| {
        (other.block_size, other.random_ratio, other.write_ratio, &other.distribution)
            == (target.block_size, target.random_ratio, target.write_ratio, &target.distribution)
    };
    if !others.iter().all(same) {
        return Err((
            "its targets have different loads".to_owned(),
            "name a result of one target, or say the load with --generate",
        ));
    }
    let ios = measured.reads().1 + measured.writes().1;
    if measured.seconds <= 0.0 || ios == 0 {
        return Err((
            "nothing was measured in it".to_owned(),
            "name a result of a run that was not interrupted",
        ));
    }
    let bytes: u64 =
        asked.targets.iter().map(|target| range(target, measured)).sum::<Option<u64>>().ok_or((
            "it does not tell how large a target is".to_owned(),
            "name a result that has all threads' figures",
        ))?;
    let place = place(target, bytes)?;
    let extents = bytes.div_ceil(EXTENT);
    if !(64..=1 << 26).contains(&extents) {
        return Err((
            format!("its targets are {} in all", Bytes(bytes)),
            "workloads are of 64 MiB to 64 TiB: say another with --generate",
        ));
    }
    if !target.block_size.is_power_of_two() || !(512..=1 << 20).contains(&target.block_size) {
        return Err((
            format!("its blocks are {} bytes long", target.block_size),
            "workloads have blocks of 512 bytes to 1 MiB, a power of two: say one with --generate",
        ));
    }
    Ok(format!(
        "{place},extents={extents},rate={},hours={hours},writes={},block={}",
        ios as f64 / measured.seconds,
        target.write_ratio,
        target.block_size,
    ))
}

/// Bytes of a target that the load went to.
fn range(target: &Target, measured: &ImportedSpan) -> Option<u64> {
    let mut found = measured.threads.iter().flat_map(|thread| &thread.targets);
    let known = found.find(|one| one.path == target.path).map(|one| one.file_size.bytes);
    let end = known.or(target.file_size).filter(|bytes| *bytes > 0);
    let end = match target.max_file_size {
        0 => end?,
        most => end.unwrap_or(most).min(most),
    };
    Some(end.saturating_sub(target.base_file_offset))
}

/// The kind of workload, with what it is told of places.
fn place(target: &Target, bytes: u64) -> Result<String, Refusal> {
    let Some(distribution) = &target.distribution else {
        return Ok(match target.random_ratio {
            100 => "uniform:".to_owned(),
            percent => format!("sequential:random={percent}"),
        });
    };
    let whole = match distribution.kind {
        DistributionKind::Percent => 100.0,
        DistributionKind::Absolute => bytes as f64,
    };
    let given: f64 = distribution.ranges.iter().map(|range| range.size as f64).sum();
    // Without I/O: as cold as can be. A size of 0 is that of the rest.
    let parts: Vec<(f64, f64)> = distribution
        .ranges
        .iter()
        .map(|range| match range.size {
            0 => (f64::from(range.io), (whole - given).max(0.0)),
            size => (f64::from(range.io), size as f64),
        })
        .collect();
    // Generators know two classes of extents: the hottest range, and all others together if these are alike.
    let density = |part: &(f64, f64)| part.0 / part.1.max(f64::MIN_POSITIVE);
    let hottest = parts.iter().map(density).fold(0.0, f64::max);
    let (hot, cold): (Vec<_>, Vec<_>) =
        parts.iter().partition(|part| density(part) > hottest * 0.999);
    let alike = |one: &(f64, f64), other: &(f64, f64)| {
        let (one, other) = (density(one), density(other));
        (one - other).abs() <= 0.001 * one.max(other)
    };
    if cold.windows(2).any(|pair| !alike(&pair[0], &pair[1])) {
        return Err((
            format!("its -rd has {} ranges of different heat", parts.len()),
            "workloads have a hot range and a cold one: say them with --generate hotcold",
        ));
    }
    let sum = |parts: &[(f64, f64)]| {
        parts.iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    };
    let (hot, cold) = (sum(&hot), sum(&cold));
    if target.random_ratio != 100 {
        return Err((
            format!(
                "its -rd is for {} % of its I/Os, the others are in order",
                target.random_ratio
            ),
            "workloads are one or the other: say one with --generate",
        ));
    }
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    Ok(format!(
        "hotcold:space={},io={}",
        percent(hot.1, hot.1 + cold.1),
        percent(hot.0, hot.0 + cold.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
Command Line: diskspd -b8K -t1 -o4 -r -w25 -rdpct90/10 -f512M x.dat

Input parameters:

\ttimespan:   1
\t-------------
\tduration: 4s
\twarm up time: 5s
\tcool down time: 0s
\trandom seed: 0
\tpath: 'x.dat'
\t\tthink time: 0ms
\t\tburst size: 0
\t\tsoftware cache disabled
\t\tusing hardware write cache, writethrough off
\t\tperforming mix test (read/write ratio: 75/25)
\t\tblock size: 8KiB
\t\tusing random I/O (alignment: 8KiB)
\t\tmax file size: 512MiB
\t\tnumber of outstanding I/O operations per thread: 4
\t\tthreads per file: 1
\t\tusing I/O Completion Ports
\t\tIO priority: normal

System information:

\tcomputer name: host1
\tstart time: 2025/03/04 09:08:07 UTC

Results for timespan 1:
*******************************************************************************

actual test time:\t4.00s
thread count:\t\t1

Total IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  file
------------------------------------------------------------------------------
     0 |         3276800 |          400 |       0.78 |     100.00 | x.dat (1GiB)
------------------------------------------------------------------------------
total:         3276800 |          400 |       0.78 |     100.00

Read IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  file
------------------------------------------------------------------------------
     0 |         2457600 |          300 |       0.59 |      75.00 | x.dat (1GiB)
------------------------------------------------------------------------------
total:         2457600 |          300 |       0.59 |      75.00

Write IO
thread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  file
------------------------------------------------------------------------------
     0 |          819200 |          100 |       0.20 |      25.00 | x.dat (1GiB)
------------------------------------------------------------------------------
total:          819200 |          100 |       0.20 |      25.00
";

    fn found(bytes: &[u8]) -> Result<String, Refusal> {
        let results = convert::read(bytes).map_err(|error| (error.to_string(), "other"))?;
        parameters(&results[0], 2.0)
    }

    /// Ranges of `-rd` and what comes of them, for a random load on 1000 bytes.
    fn of_ranges(kind: DistributionKind, ranges: &[(u32, u64)]) -> Result<String, Refusal> {
        let ranges = ranges
            .iter()
            .map(|(io, size)| plumb_load::profile::model::DistributionRange {
                io: *io,
                size: *size,
            })
            .collect();
        let distribution = Some(plumb_load::profile::model::Distribution { kind, ranges });
        place(&Target { random_ratio: 100, distribution, ..Target::default() }, 1000)
    }

    #[test]
    fn a_report_becomes_the_workload_that_it_tells_of() {
        let wanted = "uniform:,extents=512,rate=100,hours=2,writes=25,block=8192";
        assert_eq!(found(SAMPLE.as_bytes()).as_deref(), Ok(wanted));
        let in_order = SAMPLE.replace("random I/O (alignment", "sequential I/O (stride");
        let in_order = found(in_order.as_bytes()).expect("a workload");
        assert!(in_order.starts_with("sequential:random=0,extents=512"), "{in_order}");
        assert!(WorkloadSpec::parse(wanted).is_ok() && WorkloadSpec::parse(&in_order).is_ok());
    }

    #[test]
    fn ranges_become_a_hot_and_a_cold_part() {
        use DistributionKind::{Absolute, Percent};
        let of = |kind, ranges: &[(u32, u64)]| of_ranges(kind, ranges);
        assert_eq!(of(Percent, &[(90, 10), (10, 90)]).as_deref(), Ok("hotcold:space=10,io=90"));
        assert_eq!(of(Absolute, &[(90, 100), (10, 0)]).as_deref(), Ok("hotcold:space=10,io=90"));
        // A hot part in two, and one of three that nothing goes to.
        let parts = [(40, 5), (40, 5), (20, 90)];
        assert_eq!(of(Percent, &parts).as_deref(), Ok("hotcold:space=10,io=80"));
        assert_eq!(of(Percent, &[(100, 20), (0, 80)]).as_deref(), Ok("hotcold:space=20,io=100"));
        assert!(of(Percent, &[(60, 10), (30, 10), (10, 80)]).is_err());
    }

    #[test]
    fn what_is_no_load_of_a_generator_is_refused() {
        for (from, to, words) in [
            ("block size: 8KiB", "block size: 12KiB", "12288 bytes"),
            ("max file size: 512MiB", "max file size: 32MiB", "32MiB in all"),
            ("actual test time:\t4.00s", "actual test time:\t0.00s", "nothing was measured"),
        ] {
            let text = SAMPLE.replace(from, to);
            assert_ne!(text, SAMPLE);
            let (what, remedy) = found(text.as_bytes()).expect_err(to);
            assert!(what.contains(words) && !remedy.is_empty(), "{what}");
        }
    }

    #[test]
    fn damaged_reports_never_panic() {
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % below
        };
        for _ in 0..3000 {
            let mut bytes = SAMPLE.as_bytes().to_vec();
            for _ in 0..=next(4) {
                let at = next(bytes.len());
                match next(3) {
                    0 => bytes[at] = b"0189kKMGTiB-.\n\t"[next(15)],
                    1 => bytes.insert(at, b"0123456789"[next(10)]),
                    _ => drop(bytes.remove(at)),
                }
            }
            if let Ok(text) = found(&bytes) {
                let spec = WorkloadSpec::parse(&text);
                assert!(
                    spec.is_ok_and(|spec| spec.bytes() >= 64 << 20) || text.contains("rate="),
                    "{text}"
                );
            }
        }
    }
}

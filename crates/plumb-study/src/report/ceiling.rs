//! Whether a single run stands at a limit that somebody declared (method, 2.11).

use super::run_view::{RunView, SpanView};
use crate::identities::MIB;
use crate::knee::name_cap;
use crate::reading::Spread;

/// What a rate that is held varies by from second to second, at most.
const CALM: f64 = 0.015;
/// Intervals that tell how calm a rate is.
const INTERVALS_LEAST: usize = 5;

/// The declared limit that holds a run, with its evidence; `None` where none does, where the run is not calm, or where it limits
/// itself.
pub(super) fn ceiling(view: &RunView, span: &SpanView) -> Option<String> {
    let iops = span.total.iops;
    if span.workload.limited || iops <= 0.0 {
        return None;
    }
    let block = match span.workload.is_mixed {
        false => span.workload.block_bytes,
        true => Some(span.total.mib_per_s * MIB / iops),
    };
    let cap = name_cap(iops, block, &view.caps)?;
    let series = span.series();
    let spread = Spread::of(&series).filter(|_| series.len() >= INTERVALS_LEAST);
    if spread.is_some_and(|spread| spread.variation > CALM) {
        return None;
    }
    let calm = spread.map_or(String::new(), |spread| {
        format!(", {:.1} % from interval to interval", spread.variation * 100.0)
    });
    let waiting = span.outstanding().map_or(String::new(), |outstanding| {
        format!(
            "; {outstanding:.0} outstanding at that rate take {:.2} ms",
            outstanding / cap.iops * 1e3
        )
    });
    Some(format!(
        "{}, {:.0} I/Os per second, of which {iops:.0} are {:+.1} %{calm}{waiting}",
        cap.name,
        cap.iops,
        cap.distance * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knee::DeclaredCap;
    use crate::report::run_view::{IntervalView, SideView, Workload};

    /// The published run: t2 o32 of 4 KiB, 1953.30 ± 17.72 I/Os per second.
    fn says(caps: &[&str], change: impl Fn(&mut SpanView)) -> Option<String> {
        let view = RunView {
            caps: caps.iter().map(|cap| DeclaredCap::parse(cap).expect("a limit")).collect(),
            ..RunView::default()
        };
        let second = |iops| IntervalView { iops, ..IntervalView::default() };
        let mut span = SpanView {
            workload: Workload { block_bytes: Some(4096.0), ..Workload::default() },
            total: SideView { count: 234_408, iops: 1953.30, ..SideView::default() },
            intervals: [0.0, 17.72, -17.72, 22.0, -22.0, 0.0]
                .map(|off| second(1953.30 + off))
                .to_vec(),
            law: (Some(64.0), None, None),
            ..SpanView::default()
        };
        change(&mut span);
        ceiling(&view, &span)
    }

    #[test]
    fn a_single_run_is_held_against_what_was_declared() {
        let published = ["VM limit=1920iops", "disk=5000iops", "four disks=20000iops"];
        let found = says(&published, |_| {}).expect("the limit of the VM");
        for part in ["VM limit, 1920", "+1.7 %", "0.9 % from", "64 outstanding", "33.33 ms"] {
            assert!(found.contains(part), "{part}: {found}");
        }
        assert_eq!(says(&published[1..], |_| {}), None, "nothing near");
        assert_eq!(says(&[], |_| {}), None, "nothing declared");
        // 7.63 MiB/s.
        let by_bytes = says(&["link=7.5MiB/s"], |_| {}).expect("a bandwidth");
        assert!(by_bytes.contains("link, 1920"), "{by_bytes}");
        assert_eq!(says(&published, |span| span.workload.limited = true), None, "its own limit");
        let restless = |span: &mut SpanView| span.intervals[3].iops *= 1.1;
        assert_eq!(says(&published, restless), None, "nothing holds what jumps");
        assert!(
            says(&published, |span| span.intervals.clear()).is_some(),
            "no intervals, no doubt"
        );
    }
}

//! A report for programs.

use serde_json::{Value, json};

use super::{HeatGap, MoveLimits, PinnedFigures, SizeRow, TierReport, percent};
use crate::optimizer::MoveTimes;
use crate::what_if::WhatIfPoint;

/// The version of this shape: raised where a member is removed or renamed, or changes its meaning or unit. Reports before the second
/// did not say which they are.
const SCHEMA_VERSION: u32 = 2;
/// How far the share that was served may be off, among what is told of its quality; and as the first version called it.
const HALF_WIDTH: &str = "serviced_half_width_points";
const HALF_WIDTH_1: &str = "confidence_percent";

/// A report that a program before this one kept, in the names of today.
pub(crate) fn in_present_names(mut report: Value) -> Value {
    let quality = report.get_mut("quality").and_then(Value::as_object_mut);
    if let Some(quality) = quality
        && let Some(found) = quality.remove(HALF_WIDTH_1)
    {
        quality.insert(HALF_WIDTH.to_owned(), found);
        report["schema_version"] = SCHEMA_VERSION.into();
    }
    report
}

pub(super) fn render(report: &TierReport) -> Value {
    let TierReport { facts, advice, .. } = report;
    let rows = |rows: &[SizeRow]| -> Vec<Value> {
        let row = |row: &SizeRow| json!({ "ios_percent": row.percent, "extents": row.extents, "bytes": row.bytes });
        rows.iter().map(row).collect()
    };
    let pinned = |figures: &PinnedFigures| json!({ "bytes": figures.bytes, "ios_percent": percent(figures.ios, report.ios) });
    let sizes: Vec<Value> = advice
        .sizes
        .iter()
        .map(|(share, bytes)| json!({ "ios_percent": share, "bytes": bytes }))
        .collect();
    let weak: Vec<Value> = advice
        .weak_pins
        .iter()
        .map(|weak| json!({ "pin": weak.pin.0, "ios_percent_per_gib": weak.percent_per_gib }))
        .collect();
    let point =
        |point: &WhatIfPoint| json!({ "hit_share": point.share, "standard_error": point.error });
    let what_if = |(extents, blocks): &(WhatIfPoint, WhatIfPoint)| json!({ "bytes": extents.bytes, "by_extents": point(extents), "by_blocks": point(blocks) });
    json!({
        "schema_version": SCHEMA_VERSION,
        "vdisk": facts.name,
        "window_start_s": facts.window_start_s,
        "window_end_s": facts.window_end_s,
        "host_ios": facts.answered,
        "host_ios_never_written": facts.answered_zeros,
        "host_bytes": facts.bytes.map(|bytes| json!({ "read": bytes.read, "written": bytes.written })),
        "write_cache": facts.bytes.map(|bytes| json!({
            "read_bytes": bytes.cache_read,
            "written_bytes": bytes.cache_written,
            "bypass_bytes": bytes.bypassed,
            "times_full": bytes.times_full,
        })),
        "table": rows(&report.rows),
        "table_unpinned": rows(&report.rows_unpinned),
        "what_if_lru": facts.what_if.iter().map(what_if).collect::<Vec<Value>>(),
        "performance_tier_bytes": report.performance_bytes(),
        "serviced_percent": report.serviced_percent(),
        "serviced_by_cache_percent": percent(facts.answered_cache, facts.answered_by_devices()),
        "expected_percent": facts.expected_share.map(|share| 100.0 * share),
        "pinned_performance": pinned(&report.pinned_performance),
        "pinned_without_room_bytes": facts.pins_refused.saturating_mul(facts.extent_bytes),
        "pinned_capacity": pinned(&report.pinned_capacity),
        "moves": {
            "up_requested": facts.moves.up_requested,
            "up": facts.moves.up,
            "down_requested": facts.moves.down_requested,
            "down": facts.moves.down,
            "bytes": facts.moves.bytes,
            "seconds": facts.moves.seconds,
            "put_off": facts.waits.put_off,
            "put_off_ios_percent": percent(facts.waits.put_off_ios, report.ios),
            "sure_swaps_gained_percent": facts.waits.gained_percent,
            "taking_turns": facts.waits.turns,
            "taking_turns_ios_percent": percent(facts.waits.turns_ios, report.ios),
            "stop": facts.moves.stop.name(),
            "limits": facts.moves.limits.as_ref().map(limits),
            "break_even_ios": facts.worth.break_even(),
            "break_even_basis": facts.worth.basis.name(),
            "device_times": times(&facts.worth.times),
        },
        "advice": {
            "sizes": sizes,
            "working_set_bytes": advice.working_set_bytes,
            "working_set_change_percent": advice.working_set_change,
            "thrash_percent": advice.thrash_percent,
            "bar_doubled": facts.thrash.guarded,
            "weak_pins": weak,
            "suggestions": advice.suggestions,
        },
        "quality": {
            "extents_counted": report.working_set,
            "ios_counted": report.ios,
            "ios_lost": report.ios_lost,
            HALF_WIDTH: report.half_width_points(),
            "heat_counted_anew": facts.heat_gap == Some(HeatGap::All),
            "heat_pages_lost": match facts.heat_gap {
                Some(HeatGap::Pages(pages)) => pages,
                _ => 0,
            },
            "heat_uncounted_s": facts.uncounted_s,
        },
    })
}

/// What an optimization was to keep to.
fn limits(of: &MoveLimits) -> Value {
    json!({
        "run_limit_s": of.seconds,
        "movers": of.movers,
        "bytes_per_s": of.bytes_per_s,
        "ios_per_s": of.ios_per_s,
        "priority": of.priority(),
        "moved_bytes": of.moved_bytes,
        "promoted_bytes": of.promoted_bytes,
        "reserve_bytes": of.reserve_bytes,
    })
}

/// What the bar is made of.
fn times(of: &MoveTimes) -> Value {
    json!({
        "io_performance_ns": of.io_performance.0,
        "io_capacity_ns": of.io_capacity.0,
        "move_performance_ns": of.move_performance.0,
        "move_capacity_ns": of.move_capacity.0,
    })
}

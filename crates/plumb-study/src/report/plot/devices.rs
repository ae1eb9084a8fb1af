//! Plot 5: what each device did per second, stacked, and dirty memory below.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Layer};
use super::super::page::cell;
use super::super::run_view::SpanView;
use super::{Data, Plot};
use crate::stats::describe::mean;

const MIB: f64 = 1_048_576.0;
/// Bars at most: more seconds are joined.
const BARS_MOST: usize = 120;
/// Devices with a tone of their own.
const DEVICES_MOST: usize = 6;

/// A second: its end, MiB/s of each device, dirty and written-back memory in MiB.
type Second = (f64, Vec<f64>, f64);

/// The plot; `None` where devices were not watched for three seconds or did nothing.
pub(in super::super) fn plot(span: &SpanView, id: &str) -> Option<Plot> {
    let names: Vec<&str> = span.counters["devices"]
        .as_array()?
        .iter()
        .map(|device| device["name"].as_str().unwrap_or("?"))
        .collect();
    let lowest = lowest(span, &names);
    let rows = span.counters["series"].as_array()?;
    let seconds: Vec<Second> = rows.iter().filter_map(|row| second(row, &lowest)).collect();
    if seconds.len() < 3 || lowest.is_empty() {
        return None;
    }
    let joined = seconds.len().div_ceil(BARS_MOST);
    let seconds: Vec<Second> = seconds.chunks(joined).map(together).collect();
    let sums: Vec<f64> = seconds.iter().map(|(_, rates, _)| rates.iter().sum()).collect();
    if sums.iter().all(|sum| *sum <= 0.0) {
        return None;
    }
    let shown: Vec<&str> = lowest.iter().map(|index| names[*index]).collect();
    let mut columns = vec!["end_s".to_owned()];
    columns.extend(shown.iter().map(|name| format!("{name}_mib_per_s")));
    columns.push("dirty_mib".to_owned());
    let row = |(end_s, rates, dirty): &Second| {
        let rates = rates.iter().map(|rate| cell(Some(*rate)));
        std::iter::once(cell(Some(*end_s))).chain(rates).chain([cell(Some(*dirty))]).collect()
    };
    let data = Data { columns, rows: seconds.iter().map(row).collect() };
    let parts = (1_u8..).zip(&shown).map(|(tone, name)| ((*name).to_owned(), tone)).collect();
    let bars = seconds.iter().map(|(end_s, rates, _)| (*end_s, rates.clone())).collect();
    let mut layers = vec![Layer::Bars { parts, bars }];
    let fill = seconds.iter().map(|(.., dirty)| *dirty).filter(|dirty| dirty.is_finite());
    let fill = fill.fold(0.0, f64::max);
    if fill >= 1.0 {
        layers.push(Layer::Strip {
            name: format!("dirty memory: the strip is {fill:.0} MiB"),
            tone: 6,
            full: fill,
            points: seconds.iter().map(|(end_s, _, dirty)| (*end_s, *dirty)).collect(),
        });
    }
    let mut sentence = format!("The devices moved {:.1} MiB/s together on average", mean(&sums));
    if shown.len() > 1 {
        let share = |place: usize| {
            let own: f64 = seconds.iter().map(|(_, rates, _)| rates[place]).sum();
            own / sums.iter().sum::<f64>() * 100.0
        };
        let told: Vec<String> = shown
            .iter()
            .enumerate()
            .map(|(at, name)| format!("{name} {:.0} %", share(at)))
            .collect();
        sentence.push_str(&format!(": {}", told.join(", ")));
    }
    sentence.push_str(&match fill {
        fill if fill >= 1.0 => format!("; at most {fill:.0} MiB waited in memory to be written."),
        _ => "; nothing waited in memory to be written.".to_owned(),
    });
    Some(Plot {
        id: format!("{id}-stack"),
        title: "What the devices moved".into(),
        sentence,
        chart: Chart {
            x: Axis::linear("seconds since the measurement began"),
            left: Axis::from_zero("MiB/s, reads and writes"),
            right: None,
            layers,
        },
        data,
    })
}

/// The devices that are stacked: without those whose I/O is another's again. A device on top of others, and a
/// partition of a disk, does what they do; its name then comes first and its disk's after it.
fn lowest(span: &SpanView, names: &[&str]) -> Vec<usize> {
    let of_others = |index: usize| {
        let given = &span.counters["devices"][index]["over"];
        let is_told = given.as_array().is_some_and(|over| !over.is_empty());
        let name = names[index];
        let is_partition = names.iter().any(|disk| {
            let rest = name.strip_prefix(*disk).map(|rest| rest.trim_start_matches('p'));
            rest.is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            })
        });
        is_told || is_partition || ["dm-", "md"].iter().any(|kind| name.starts_with(kind))
    };
    let alone: Vec<usize> = (0..names.len()).filter(|index| !of_others(*index)).collect();
    // Where nothing but layers can be seen, the uppermost stands for all.
    let alone = if alone.is_empty() { (0..names.len().min(1)).collect() } else { alone };
    alone.into_iter().take(DEVICES_MOST).collect()
}

fn second(row: &Value, devices: &[usize]) -> Option<Second> {
    let rate = |index: &usize| {
        let device = &row["devices"][*index];
        let of = |key: &str| device[key].as_f64().unwrap_or(0.0);
        (of("read_bytes_per_s") + of("written_bytes_per_s")) / MIB
    };
    let memory = |key: &str| row["memory"][key].as_f64();
    let dirty = memory("dirty_bytes").map(|dirty| dirty + memory("writeback_bytes").unwrap_or(0.0));
    let end_s = row["end_ns"].as_f64()? / 1e9;
    Some((end_s, devices.iter().map(rate).collect(), dirty.unwrap_or(f64::NAN) / MIB))
}

/// Several seconds as one: means.
fn together(seconds: &[Second]) -> Second {
    let (end_s, first, _) = &seconds[seconds.len() - 1];
    let of =
        |place: usize| mean(&seconds.iter().map(|(_, rates, _)| rates[place]).collect::<Vec<_>>());
    let dirty: Vec<f64> = seconds.iter().map(|(.., dirty)| *dirty).collect();
    (*end_s, (0..first.len()).map(of).collect(), mean(&dirty))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn span(names: &[&str]) -> SpanView {
        let device = |bytes: f64| json!({ "read_bytes_per_s": bytes, "written_bytes_per_s": 0.0 });
        let row = |second: u64| {
            let devices: Vec<Value> = (1..=names.len()).map(|n| device(n as f64 * MIB)).collect();
            json!({ "end_ns": second * 1_000_000_000, "devices": devices,
                    "memory": { "dirty_bytes": second * (8 << 20), "writeback_bytes": 0 } })
        };
        let devices: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        let counters =
            json!({ "devices": devices, "series": (1..=5).map(row).collect::<Vec<_>>() });
        SpanView { counters, ..SpanView::default() }
    }

    #[test]
    fn what_is_the_same_io_is_stacked_once() {
        let plot =
            plot(&span(&["md0", "sda1", "sda", "nvme0n1", "nvme0n1p2"]), "x").expect("a plot");
        let columns: Vec<&str> = plot.data.columns.iter().map(String::as_str).collect();
        assert_eq!(columns, ["end_s", "sda_mib_per_s", "nvme0n1_mib_per_s", "dirty_mib"]);
        assert!(plot.sentence.contains("7.0 MiB/s together"), "{}", plot.sentence);
        assert!(
            plot.sentence.contains("sda 43 %, nvme0n1 57 %; at most 40 MiB"),
            "{}",
            plot.sentence
        );
        let alone = super::plot(&span(&["dm-0"]), "x").expect("a plot");
        assert_eq!(alone.data.columns[1], "dm-0_mib_per_s");
        assert!(super::plot(&SpanView::default(), "x").is_none());
    }
}

//! Plot 6: processors.

use super::super::chart::{Axis, Chart, Layer};
use super::super::page::cell;
use super::super::run_view::SpanView;
use super::{Data, Plot};
use crate::stats::describe::median;

/// The plot; `None` where processors were not measured.
pub(in super::super) fn plot(span: &SpanView, id: &str) -> Option<Plot> {
    let measured: Vec<_> =
        span.cores.iter().filter(|core| core.user + core.kernel + core.idle >= 50.0).collect();
    if measured.is_empty() {
        return None;
    }
    let mut data = Data::new(&["processor", "user_percent", "kernel_percent", "idle_percent"]);
    for core in &measured {
        data.add([
            core.name.clone(),
            cell(Some(core.user)),
            cell(Some(core.kernel)),
            cell(Some(core.idle)),
        ]);
    }
    let busy: Vec<f64> = measured.iter().map(|core| core.user + core.kernel).collect();
    let (mut place, mut most) = (0, 0.0);
    for (index, value) in busy.iter().enumerate() {
        if *value > most {
            (place, most) = (index, *value);
        }
    }
    let cost = span.cpu_us_per_io.map_or_else(String::new, |micros| {
        format!(" An I/O costs {micros:.1} µs of processor time of the whole machine.")
    });
    let few = measured.len() <= 32;
    let names: Vec<(f64, String)> = match few {
        true => {
            measured.iter().enumerate().map(|(i, core)| (i as f64, core.name.clone())).collect()
        }
        false => Vec::new(),
    };
    Some(Plot {
        id: format!("{id}-cores"),
        title: "Processors".into(),
        sentence: format!(
            "The busiest processor, {}, was busy {most:.0} % of the time, the middle one {:.0} %.{cost}",
            measured[place].name,
            median(&busy)
        ),
        chart: Chart {
            x: Axis::named("processor", names),
            left: Axis::from_zero("busy, %"),
            right: None,
            layers: vec![Layer::Bars {
                parts: vec![("kernel".into(), 2), ("user".into(), 1)],
                bars: measured
                    .iter()
                    .enumerate()
                    .map(|(index, core)| (index as f64, vec![core.kernel, core.user]))
                    .collect(),
            }],
        },
        data,
    })
}

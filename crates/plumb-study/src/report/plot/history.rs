//! Plot 9: a series of results and where it changes its level.

use plumb_units::convert::to_u64;
use plumb_units::words::number_of;

use super::super::chart::{Axis, Chart, Dot, Layer, Side};
use super::super::page::{cell, rate};
use super::{Data, Plot};
use crate::history;

/// The plot of rates, oldest first, each with a name; `None` with fewer than eight.
pub(in super::super) fn plot(values: &[(String, f64)], id: &str) -> Option<Plot> {
    let series: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    let changes = history::change_points(&series)?;
    let outliers = history::outliers(&series);
    let mut data = Data::new(&["run", "iops", "new_level", "outlier"]);
    for (index, (name, value)) in values.iter().enumerate() {
        let yes = |is: bool| if is { "yes" } else { "" }.to_owned();
        data.add([
            name.clone(),
            cell(Some(*value)),
            yes(changes.iter().any(|change| change.index == index)),
            yes(outliers.contains(&index)),
        ]);
    }
    let dots = values.iter().enumerate().map(|(index, (name, value))| Dot {
        x: index as f64,
        y: *value,
        hollow: outliers.contains(&index),
        name: format!("{name}: {} I/Os per second", rate(*value)),
        bar: None,
    });
    let mut layers = vec![
        Layer::Line {
            name: "in order".into(),
            side: Side::Left,
            tone: 1,
            points: series
                .iter()
                .enumerate()
                .map(|(index, value)| (index as f64, *value))
                .collect(),
        },
        Layer::Dots { name: "runs".into(), side: Side::Left, tone: 1, dots: dots.collect() },
    ];
    for change in &changes {
        layers.push(Layer::Mark {
            name: format!("{:+.1} %", change.step() * 100.0),
            x: change.index as f64,
        });
    }
    let sentence = match changes.as_slice() {
        [] => format!("{}, one level: no change.", number_of(to_u64(values.len()), "run")),
        some => {
            let told: Vec<String> = some
                .iter()
                .map(|change| {
                    format!("{:+.1} % from {} on", change.step() * 100.0, values[change.index].0)
                })
                .collect();
            format!("The level changes: {}.", told.join("; "))
        }
    };
    Some(Plot {
        id: format!("{id}-history"),
        title: "History".into(),
        sentence,
        chart: Chart {
            x: Axis::linear("run, oldest first"),
            left: Axis::from_zero("I/Os per second"),
            right: None,
            layers,
        },
        data,
    })
}

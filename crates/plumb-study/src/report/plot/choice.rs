//! Plot 7: settings side by side, those that are as good as the best told apart.

use super::super::chart::{Axis, Chart, Dot, Layer, Side};
use super::super::page::{cell, rate};
use super::{Data, Plot};
use crate::stats::describe::{deviation, mean};
use crate::stats::distribution::t_95;

/// A setting with its runs.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Tested {
    /// What it is called on the axis.
    pub(in super::super) label: String,
    /// I/Os per second of each run; all positive, one or more.
    pub(in super::super) iops: Vec<f64>,
    /// Whether it is in the best set.
    pub(in super::super) is_best: bool,
    /// Whether it is the one to use.
    pub(in super::super) is_chosen: bool,
}

/// Settings that a plot shows; of more, those with most throughput.
const SETTINGS_MOST: usize = 32;

/// The plot, settings in the order given; `None` with fewer than two. `spread` is the SD of ln X between runs
/// that single runs are shown with.
pub(in super::super) fn plot(
    tested: &[Tested],
    spread: Option<f64>,
    id: &str,
    title: &str,
) -> Option<Plot> {
    let level =
        |tested: &Tested| mean(&tested.iops.iter().map(|iops| iops.ln()).collect::<Vec<_>>()).exp();
    let tested: Vec<&Tested> = tested.iter().filter(|tested| !tested.iops.is_empty()).collect();
    if tested.len() < 2 {
        return None;
    }
    let mut least: Vec<f64> = tested.iter().map(|tested| level(tested)).collect();
    least.sort_by(|a, b| b.total_cmp(a));
    let most = least[0];
    let least = least[least.len().min(SETTINGS_MOST) - 1];
    let shown: Vec<&Tested> = tested
        .iter()
        .copied()
        .filter(|tested| level(tested) >= least)
        .take(SETTINGS_MOST)
        .collect();
    let mut data =
        Data::new(&["setting", "runs", "iops", "iops_low", "iops_high", "in_best_set", "chosen"]);
    let (mut as_good, mut others) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    let mut marks = Vec::new();
    for (place, setting) in shown.iter().enumerate() {
        let x = place as f64;
        let bar = bar(&setting.iops, spread);
        let yes = |is: bool| if is { "yes" } else { "" }.to_owned();
        data.add([
            setting.label.clone(),
            setting.iops.len().to_string(),
            cell(Some(level(setting))),
            cell(bar.map(|bar| bar.0)),
            cell(bar.map(|bar| bar.1)),
            yes(setting.is_best),
            yes(setting.is_chosen),
        ]);
        names.push((x, setting.label.clone()));
        let dot = Dot {
            x,
            y: level(setting),
            bar,
            hollow: false,
            name: format!("{}: {} I/Os per second", setting.label, rate(level(setting))),
        };
        if setting.is_best {
            as_good.push(dot);
        } else {
            others.push(dot);
        }
        if setting.is_chosen {
            marks.push(Layer::Mark { name: format!("use {}", setting.label), x });
        }
    }
    let best = shown.iter().filter(|setting| setting.is_best).count();
    let left = tested.len() - shown.len();
    let chosen = shown.iter().find(|setting| setting.is_chosen);
    let sentence = format!(
        "{} settings{}; {best} of them give the same throughput as the best within what the data can tell, {} I/Os per second{}.",
        tested.len(),
        if left > 0 { format!(", the {} with most are shown", shown.len()) } else { String::new() },
        rate(most),
        chosen.map_or_else(String::new, |chosen| format!(
            ", and {} is the cheapest of these",
            chosen.label
        ))
    );
    let dots = |name: &str, tone: u8, dots: Vec<Dot>| Layer::Dots {
        name: name.into(),
        side: Side::Left,
        tone,
        dots,
    };
    let mut layers =
        vec![dots("as good as the best, with 95 % interval", 3, as_good), dots("worse", 4, others)];
    layers.retain(|layer| !matches!(layer, Layer::Dots { dots, .. } if dots.is_empty()));
    layers.extend(marks);
    Some(Plot {
        id: format!("{id}-settings"),
        title: format!("{title}: settings side by side"),
        sentence,
        chart: Chart {
            x: Axis::named("", names),
            left: Axis::linear("I/Os per second"),
            right: None,
            layers,
        },
        data,
    })
}

/// The 95 % interval of a setting, from ln X: of its repetitions, or with a spread known from elsewhere.
fn bar(iops: &[f64], spread: Option<f64>) -> Option<(f64, f64)> {
    let logs: Vec<f64> = iops.iter().map(|iops| iops.ln()).collect();
    let count = logs.len() as f64;
    let reach = match (logs.len(), spread) {
        (2.., _) => t_95(count - 1.0) * deviation(&logs) / count.sqrt(),
        (_, Some(spread)) => 1.96 * spread,
        _ => return None,
    };
    let middle = mean(&logs);
    Some(((middle - reach).exp(), (middle + reach).exp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tested(label: &str, iops: &[f64], is_best: bool) -> Tested {
        let is_chosen = label == "t2 o60";
        Tested { label: label.into(), iops: iops.to_vec(), is_best, is_chosen }
    }

    #[test]
    fn each_setting_has_its_interval() {
        let all = [
            tested("t1 o120", &[57_500.0], false),
            tested("t2 o60", &[62_619.0, 62_400.0, 62_800.0], true),
            tested("t3 o40", &[], false),
        ];
        let plot = plot(&all, Some(0.0069), "x", "Threads").expect("two settings");
        assert_eq!(plot.data.rows.len(), 2);
        assert_eq!(plot.data.rows[1][5..], ["yes", "yes"]);
        let number = |row: usize, column: usize| -> f64 {
            plot.data.rows[row][column].parse().expect("a number")
        };
        assert!((number(0, 4) / 57_500.0 - (1.96_f64 * 0.0069).exp()).abs() < 1e-4);
        assert!(number(1, 3) < 62_607.0 && number(1, 4) > 62_607.0);
        assert!(plot.sentence.contains("t2 o60 is the cheapest"), "{}", plot.sentence);
        assert!(super::plot(&all[..1], None, "x", "Threads").is_none());
    }

    #[test]
    fn of_many_settings_the_best_are_shown_in_order() {
        let all: Vec<Tested> = (0..100_u32)
            .map(|n| tested(&format!("o{n}"), &[1000.0 + f64::from(n)], n == 99))
            .collect();
        let plot = plot(&all, None, "x", "A sweep").expect("many");
        let labels: Vec<&str> = plot.data.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!((labels.len(), labels[0], labels[31]), (SETTINGS_MOST, "o68", "o99"));
        assert!(plot.sentence.contains("100 settings, the 32 with most"), "{}", plot.sentence);
    }
}

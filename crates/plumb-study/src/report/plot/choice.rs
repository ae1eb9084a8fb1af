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

/// What runs of one setting differ by, as the choice was made with it.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Between {
    /// SD of ln X.
    pub(in super::super) deviation: f64,
    /// Degrees of freedom that it was estimated with; `None` where nobody said.
    pub(in super::super) freedom: Option<f64>,
    /// Where it comes from, in words.
    pub(in super::super) told: String,
}

/// Settings that a plot shows; of more, those with most throughput.
const SETTINGS_MOST: usize = 32;
/// Letters that have room below it.
const LETTERS_MOST: usize = 160;

/// The plot, settings in the order given; `None` with fewer than two. All intervals are told in one way: with `between`
/// if it is known, else by each setting's own repetitions.
pub(in super::super) fn plot(
    tested: &[Tested],
    between: Option<&Between>,
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
    let longest = shown.iter().map(|setting| setting.label.chars().count()).max().unwrap_or(0);
    for (place, setting) in shown.iter().enumerate() {
        let x = place as f64;
        let bar = bar(&setting.iops, between);
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
        // Of many, as many as have room; the table and each dot name all.
        if place.is_multiple_of((shown.len() * longest).div_ceil(LETTERS_MOST).max(1)) {
            names.push((x, setting.label.clone()));
        }
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
    let mut sentence = format!(
        "{} settings{}; {best} of them give the same throughput as the best within what the data can tell, {} I/Os per second{}.",
        tested.len(),
        if left > 0 { format!(", the {} with most are shown", shown.len()) } else { String::new() },
        rate(most),
        chosen.map_or_else(String::new, |chosen| format!(
            ", and {} is the cheapest of these",
            chosen.label
        ))
    );
    sentence.push_str(&covers(&shown, between));
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

/// What the bars are, as a sentence.
fn covers(shown: &[&Tested], between: Option<&Between>) -> String {
    match between {
        Some(between) => format!(
            " The bars are 95 % intervals of each mean, all with what runs of one setting differ by ({:.2} %, {}), also \
             where a setting was run once.",
            between.deviation * 100.0,
            between.told
        ),
        None if shown.iter().all(|setting| setting.iops.len() < 2) => String::new(),
        None => " The bars are 95 % intervals of each mean by the setting's own repetitions; what was run once has none."
            .to_owned(),
    }
}

/// The 95 % interval of a setting's mean ln X, between runs.
fn bar(iops: &[f64], between: Option<&Between>) -> Option<(f64, f64)> {
    let logs: Vec<f64> = iops.iter().map(|iops| iops.ln()).collect();
    let count = logs.len() as f64;
    let (factor, deviation) = match between {
        Some(between) => (between.freedom.map_or(1.96, t_95), between.deviation),
        None if logs.len() > 1 => (t_95(count - 1.0), deviation(&logs)),
        None => return None,
    };
    let reach = factor * deviation / count.sqrt();
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

    /// Names of 128 settings below an axis would lie on each other.
    #[test]
    fn of_many_settings_some_are_named() {
        let all = |count: u32, of: &str| -> Vec<Tested> {
            (1..=count).map(|o| tested(&format!("{of}o{o}"), &[100.0], true)).collect()
        };
        let named = |all: &[Tested]| {
            let plot = plot(all, None, "x", "Depth").expect("settings");
            (plot.data.rows.len(), plot.chart.x.names.len())
        };
        assert_eq!(named(&all(9, "t4 ")), (9, 9));
        assert_eq!(named(&all(128, "")), (32, 32));
        let (shown, names) = named(&all(128, "t4 b8K r w30 "));
        assert!(shown == 32 && (6..=10).contains(&names), "{names} of {shown}");
    }

    #[test]
    fn each_setting_has_its_interval() {
        let all = [
            tested("t1 o120", &[57_500.0], false),
            tested("t2 o60", &[62_619.0, 62_400.0, 62_800.0], true),
            tested("t3 o40", &[], false),
        ];
        let between =
            Between { deviation: 0.0069, freedom: None, told: "SD of ln X, pooled".into() };
        let plot = plot(&all, Some(&between), "x", "Threads").expect("two settings");
        assert_eq!(plot.data.rows.len(), 2);
        assert_eq!(plot.data.rows[1][5..], ["yes", "yes"]);
        let number = |row: usize, column: usize| -> f64 {
            plot.data.rows[row][column].parse().expect("a number")
        };
        assert!((number(0, 4) / 57_500.0 - (1.96_f64 * 0.0069).exp()).abs() < 1e-4);
        // Three runs of the same spread, not of their own.
        let reach = 1.96_f64 * 0.0069 / 3.0_f64.sqrt();
        assert!((number(1, 4) / number(1, 2) - reach.exp()).abs() < 1e-4);
        assert!(
            plot.sentence.contains("differ by (0.69 %, SD of ln X, pooled)"),
            "{}",
            plot.sentence
        );
        let few = Between { freedom: Some(2.0), ..between };
        let wider = super::plot(&all, Some(&few), "x", "Threads").expect("two settings");
        let high: f64 = wider.data.rows[0][4].parse().expect("a number");
        assert!((high / 57_500.0 - (4.3027_f64 * 0.0069).exp()).abs() < 1e-4, "{high}");
        // Nothing known of all: each by its own, and those that were run once by none.
        let own = super::plot(&all, None, "x", "Threads").expect("two settings");
        assert_eq!(own.data.rows[0][3..5], ["", ""]);
        assert!(!own.data.rows[1][3].is_empty());
        assert!(own.sentence.ends_with("own repetitions; what was run once has none."));
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

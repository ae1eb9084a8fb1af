//! Plot 1: throughput and latency per queue depth, and latency over throughput.

use super::super::chart::{Axis, Chart, Dot, Layer, Side};
use super::super::page::{cell, latency, rate};
use super::beside::{self, Beside};
use super::{Data, Plot};
use crate::knee::{Flag, Knee, Setting, Verdict};
use crate::percentile::Mark;
use crate::stats::distribution::t_95;

/// Both forms, and the cost in processor time where it is known; none where no setting could be used.
pub(in super::super) fn plots(
    knee: &Knee,
    id: &str,
    title: &str,
    budget_ms: Option<f64>,
    beside: &Beside,
) -> Vec<Plot> {
    if knee.settings.is_empty() {
        return Vec::new();
    }
    let data = data(knee, beside);
    let first = Plot {
        id: format!("{id}-curve"),
        title: format!("{title}: throughput and latency per queue depth"),
        sentence: sentence(knee)
            + &told_p99(knee, beside)
            + &told_earlier(knee, beside)
            + covers(knee),
        chart: depth(knee, beside),
        data: data.clone(),
    };
    let second = Plot {
        id: format!("{id}-hockey"),
        title: format!("{title}: latency over throughput"),
        sentence: over_throughput(knee, budget_ms),
        chart: hockey(knee, budget_ms, beside),
        data,
    };
    [first, second].into_iter().chain(beside::plot(beside, id, title)).collect()
}

/// The 99th percentile where one would work, with its mark.
fn told_p99(knee: &Knee, beside: &Beside) -> String {
    let chosen =
        knee.marks.filter(|_| knee.verdict == Verdict::Knee).map(|marks| marks.recommended);
    let told = chosen.and_then(|o| Some((o, beside.p99(o)?)));
    told.map_or_else(String::new, |(o, (over, mark))| {
        let value = latency(over.median);
        let value = if mark == Mark::Weak { format!("({value})") } else { value };
        format!(" There 99 of 100 I/Os took {value} or less (o{o}, mark {}).", beside.p99_mark(o))
    })
}

/// How it was before, at the same queue depth.
fn told_earlier(knee: &Knee, beside: &Beside) -> String {
    let Some((name, before)) = &beside.earlier else { return String::new() };
    let place = knee.marks.map(|marks| marks.recommended);
    let both = before.iter().filter_map(|(o, iops, _)| {
        let now = knee.settings.iter().find(|setting| setting.o == *o)?;
        Some((*o, *iops, now.iops()))
    });
    let both: Vec<(u64, f64, f64)> = both.collect();
    let at = both.iter().find(|(o, ..)| Some(*o) == place).or(both.last());
    at.map_or_else(
        || format!(" {name} has no queue depth in common with it."),
        |(o, before, now)| {
            format!(
                " In {name} it was {} I/Os per second at o{o}, now {} ({:+.1} %).",
                rate(*before),
                rate(*now),
                (now / before - 1.0) * 100.0
            )
        },
    )
}

/// What a curve says.
pub(in super::super) fn sentence(knee: &Knee) -> String {
    let at = |o: u64| knee.settings.iter().find(|setting| setting.o == o);
    let chosen = knee.marks.filter(|_| knee.verdict == Verdict::Knee);
    match (knee.verdict, chosen) {
        (Verdict::Knee, Some(marks)) => {
            let figures = at(marks.recommended).map_or_else(String::new, |setting| {
                format!(
                    ", at {} I/Os per second and {}",
                    rate(setting.iops()),
                    latency(setting.latency_ms)
                )
            });
            let (first, last) = marks.indifferent;
            let ceiling = match (&knee.named_cap, knee.flags.contains(&Flag::Capped)) {
                (Some(cap), _) => format!(" The ceiling is {}.", cap.name),
                (None, true) => " Something holds it there: a ceiling.".to_owned(),
                _ => String::new(),
            };
            format!(
                "More outstanding I/Os stop paying at o{}. Recommended: o{}{figures}. Any of o{first} to o{last} \
                 gives the same throughput within noise.{ceiling}",
                marks.plateau, marks.recommended
            )
        }
        (Verdict::Extend, _) => match knee.next_range {
            Some((first, last)) => format!(
                "Throughput still rises at the end of the range: measure o{first} to o{last} before quoting a maximum."
            ),
            None => "Throughput still rises at the end of the range.".to_owned(),
        },
        (Verdict::Flat, _) => {
            "Throughput does not rise over the range: it began above the knee. Start with fewer outstanding I/Os."
                .to_owned()
        }
        _ => format!("No knee can be named yet: {}.", knee.reason),
    }
}

/// What the bars are, as a sentence; empty where there is none.
fn covers(knee: &Knee) -> &'static str {
    let once = knee.settings.iter().filter(|setting| setting.runs.len() < 2).count();
    match once {
        0 => " The bars are 95 % intervals of each mean by the setting's own repetitions.",
        once if once == knee.settings.len() => "",
        _ => {
            " The bars are 95 % intervals of each mean by the setting's own repetitions; what was run once has none."
        }
    }
}

/// The interval of a setting with repetitions, from ln X: between its runs.
fn bar(setting: &Setting) -> Option<(f64, f64)> {
    let count = setting.runs.len();
    if count < 2 {
        return None;
    }
    let mean = crate::stats::describe::mean(&setting.runs);
    let error = crate::stats::describe::deviation(&setting.runs) / (count as f64).sqrt();
    let reach = t_95(count as f64 - 1.0) * error;
    Some(((mean - reach).exp(), (mean + reach).exp()))
}

fn dots(knee: &Knee, of: impl Fn(&Setting) -> (f64, f64), with_bars: bool) -> Vec<Dot> {
    knee.settings
        .iter()
        .map(|setting| {
            let (x, y) = of(setting);
            Dot {
                x,
                y,
                bar: if with_bars { bar(setting) } else { None },
                hollow: setting.is_outlier(),
                name: format!("o{}", setting.o),
            }
        })
        .collect()
}

fn depth(knee: &Knee, beside: &Beside) -> Chart {
    let o = |setting: &Setting| setting.o as f64;
    let mut layers = Vec::new();
    let marks = knee.marks.filter(|_| knee.verdict == Verdict::Knee);
    if let Some(marks) = marks {
        let (first, last) = marks.indifferent;
        layers
            .push(Layer::Range { name: "same throughput".into(), x: (first as f64, last as f64) });
    }
    if let Some(fit) = knee.told_fit() {
        let points =
            knee.settings.iter().zip(&fit.ln_x).map(|(setting, ln)| (o(setting), ln.exp()));
        layers.push(Layer::Line {
            name: "fitted I/Os per second".into(),
            side: Side::Left,
            tone: 1,
            points: points.collect(),
        });
    }
    layers.push(Layer::Dots {
        name: "I/Os per second".into(),
        side: Side::Left,
        tone: 1,
        dots: dots(knee, |setting| (o(setting), setting.iops()), true),
    });
    if let Some((name, before)) = &beside.earlier {
        let line = |name: String, side: Side, tone: u8, points: Vec<(f64, f64)>| Layer::Line {
            name,
            side,
            tone,
            points,
        };
        let rates = before.iter().map(|(o, iops, _)| (*o as f64, *iops)).collect();
        let latencies = before.iter().map(|(o, _, ms)| (*o as f64, *ms)).collect();
        layers.push(line(format!("I/Os per second of {name}"), Side::Left, 6, rates));
        layers.push(line(format!("mean latency of {name}"), Side::Right, 5, latencies));
    }
    let slow = beside.dots();
    if !slow.is_empty() {
        layers.push(Layer::Line {
            name: "99th percentile".into(),
            side: Side::Right,
            tone: 4,
            points: slow.iter().map(|dot| (dot.x, dot.y)).collect(),
        });
        layers.push(Layer::Dots {
            name: "99th percentile, ms; hollow: weak".into(),
            side: Side::Right,
            tone: 4,
            dots: slow,
        });
    }
    layers.push(Layer::Line {
        name: "mean latency".into(),
        side: Side::Right,
        tone: 2,
        points: knee.settings.iter().map(|setting| (o(setting), setting.latency_ms)).collect(),
    });
    layers.push(Layer::Dots {
        name: "mean latency, ms".into(),
        side: Side::Right,
        tone: 2,
        dots: dots(knee, |setting| (o(setting), setting.latency_ms), false),
    });
    if let Some(marks) = marks {
        let mut named: Vec<(u64, String)> = Vec::new();
        for (place, name) in [
            (marks.plateau, "plateau"),
            (marks.balance, "balance"),
            (marks.lean, "lean"),
            (marks.recommended, "recommended"),
        ] {
            match named.iter_mut().find(|(other, _)| *other == place) {
                Some((_, names)) => names.push_str(&format!(", {name}")),
                None => named.push((place, name.to_owned())),
            }
        }
        named.sort();
        for (place, name) in named {
            layers.push(Layer::Mark { name: format!("o{place} {name}"), x: place as f64 });
        }
    }
    if let Some(cap) = &knee.named_cap {
        layers.push(Layer::Level { name: cap.name.clone(), y: cap.iops });
    }
    let place = |setting: Option<&Setting>| setting.map_or(1, |setting| setting.o);
    Chart {
        x: beside::across(place(knee.settings.first()), place(knee.settings.last())),
        left: Axis::from_zero("I/Os per second"),
        right: Some(Axis::from_zero("latency, ms")),
        layers,
    }
}

fn hockey(knee: &Knee, budget_ms: Option<f64>, beside: &Beside) -> Chart {
    let place = |setting: &Setting| (setting.iops(), setting.latency_ms);
    let mut layers = vec![
        Layer::Line {
            name: "load rising".into(),
            side: Side::Left,
            tone: 2,
            points: knee.settings.iter().map(place).collect(),
        },
        Layer::Dots {
            name: "settings".into(),
            side: Side::Left,
            tone: 2,
            dots: dots(knee, place, false),
        },
    ];
    let words = knee.settings.iter().map(|setting| {
        let (iops, ms) = place(setting);
        (iops, ms, format!("o{}", setting.o))
    });
    layers.push(Layer::Words { words: words.collect() });
    if let Some((name, before)) = &beside.earlier {
        layers.push(Layer::Line {
            name: name.clone(),
            side: Side::Left,
            tone: 6,
            points: before.iter().map(|(_, iops, ms)| (*iops, *ms)).collect(),
        });
    }
    let chosen = knee.marks.filter(|_| knee.verdict == Verdict::Knee);
    let setting = chosen.and_then(|marks| knee.settings.iter().find(|s| s.o == marks.recommended));
    if let Some(setting) = setting {
        layers.push(Layer::Mark { name: format!("o{}", setting.o), x: setting.iops() });
    }
    if let Some(budget) = budget_ms {
        layers.push(Layer::Level { name: "latency budget".into(), y: budget });
    }
    Chart {
        x: Axis::linear("I/Os per second"),
        left: Axis::from_zero("mean latency, ms"),
        right: None,
        layers,
    }
}

fn over_throughput(knee: &Knee, budget_ms: Option<f64>) -> String {
    let (Some(first), Some(last)) = (knee.settings.first(), knee.settings.last()) else {
        return String::new();
    };
    let mut text = format!(
        "From o{} to o{} throughput goes from {} to {} I/Os per second and latency from {} to {}.",
        first.o,
        last.o,
        rate(first.iops()),
        rate(last.iops()),
        latency(first.latency_ms),
        latency(last.latency_ms)
    );
    if let (Some(budget), Some(marks)) = (budget_ms, knee.marks) {
        text.push_str(&match marks.budget {
            Some(o) => format!(" o{o} is the most that stays within {}.", latency(budget)),
            None => format!(" No setting stays within {}.", latency(budget)),
        });
    }
    text
}

fn data(knee: &Knee, beside: &Beside) -> Data {
    let mut data = Data::new(&[
        "o",
        "outstanding",
        "runs",
        "iops",
        "iops_low",
        "iops_high",
        "fitted_iops",
        "avg_lat_ms",
        "p99_ms",
        "p99_mark",
        "cpu_us_per_io",
        "left_out",
        "earlier_iops",
        "earlier_avg_lat_ms",
    ]);
    let before = |o: u64| {
        let (_, points) = beside.earlier.as_ref()?;
        points.iter().find(|(other, ..)| *other == o)
    };
    for (index, setting) in knee.settings.iter().enumerate() {
        let interval = bar(setting);
        data.add([
            setting.o.to_string(),
            cell(Some(knee.outstanding_per_o * setting.o as f64)),
            setting.runs.len().to_string(),
            cell(Some(setting.iops())),
            cell(interval.map(|bar| bar.0)),
            cell(interval.map(|bar| bar.1)),
            cell(knee.told_fit().map(|fit| fit.ln_x[index].exp())),
            cell(Some(setting.latency_ms)),
            cell(beside.p99(setting.o).map(|(over, _)| over.median)),
            beside.p99_mark(setting.o),
            cell(beside.cpu_us(setting.o)),
            if setting.counts() { "" } else { "yes" }.to_owned(),
            cell(before(setting.o).map(|(_, iops, _)| *iops)),
            cell(before(setting.o).map(|(.., ms)| *ms)),
        ]);
    }
    data
}

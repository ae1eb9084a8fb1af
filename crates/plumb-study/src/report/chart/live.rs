//! What uPlot needs to draw a chart: lines and points on numeric axes; all else stays a drawing.

use serde_json::{Value, json};

use super::{Axis, Chart, Layer, STRIP, Scale, Side, WORDS_APART};

/// A series on its way to the page.
struct Shown<'a> {
    name: &'a str,
    side: Side,
    tone: u8,
    is_dots: bool,
    /// What the whole strip means, of a strip.
    full: Option<f64>,
    points: Vec<(f64, f64)>,
}

/// The chart as data for the page's script; `None` where it stays a drawing.
pub(crate) fn live(chart: &Chart) -> Option<Value> {
    let is_numeric = chart.x.names.is_empty() && chart.left.names.is_empty();
    let mut series: Vec<Shown<'_>> = Vec::new();
    let (mut ranges, mut marks, mut levels) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bars, mut hollow, mut areas) = (Vec::new(), Vec::new(), Vec::new());
    let mut words = Vec::new();
    for layer in &chart.layers {
        match layer {
            // uPlot draws from left to right: a line that turns back stays a drawing.
            Layer::Line { points, .. } if !points.is_sorted_by(|a, b| a.0 <= b.0) => return None,
            Layer::Line { name, side, tone, points } => {
                let points = points.clone();
                let (is_dots, full) = (false, None);
                series.push(Shown { name, side: *side, tone: *tone, is_dots, full, points });
            }
            Layer::Dots { name, side, tone, dots } => {
                let is_right = *side == Side::Right && chart.right.is_some();
                for dot in dots {
                    if let Some((low, high)) = dot.bar {
                        let (low, high) = (rounded(low), rounded(high));
                        bars.push(json!([rounded(dot.x), low, high, tone, is_right]));
                    }
                    if dot.hollow {
                        hollow.push(json!([rounded(dot.x), rounded(dot.y), tone, is_right]));
                    }
                }
                let points = dots.iter().map(|dot| (dot.x, dot.y)).collect();
                let (is_dots, full) = (true, None);
                series.push(Shown { name, side: *side, tone: *tone, is_dots, full, points });
            }
            Layer::Words { words: own } => {
                words
                    .extend(own.iter().map(|(x, y, text)| json!([rounded(*x), rounded(*y), text])));
            }
            Layer::Strip { name, tone, full, points } => {
                let (side, is_dots, full) = (Side::Left, false, Some(*full));
                series.push(Shown {
                    name,
                    side,
                    tone: *tone,
                    is_dots,
                    full,
                    points: points.clone(),
                });
            }
            Layer::Between { tone, points, .. } => {
                let points = points.iter().filter(|(x, low, high)| (x + low + high).is_finite());
                let points: Vec<[f64; 3]> =
                    points.map(|(x, low, high)| [*x, *low, *high].map(rounded)).collect();
                areas.push(json!([tone, points]));
            }
            Layer::Range { name, x } => ranges.push(json!([x.0, x.1, name])),
            Layer::Mark { name, x } => marks.push(json!([x, name])),
            Layer::Level { name, y } => levels.push(json!([y, name])),
            Layer::Bars { .. } | Layer::Lying { .. } | Layer::Cells { .. } => return None,
        }
    }
    if !is_numeric || series.is_empty() {
        return None;
    }
    let mut places: Vec<f64> =
        series.iter().flat_map(|shown| shown.points.iter().map(|(x, _)| *x)).collect();
    places.retain(|x| x.is_finite());
    places.sort_by(f64::total_cmp);
    places.dedup();
    let column = |points: &[(f64, f64)]| -> Vec<Option<f64>> {
        let mut sorted: Vec<(f64, f64)> = points.to_vec();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        places
            .iter()
            .map(|x| {
                let at = sorted.partition_point(|(place, _)| place < x);
                let (place, y) = *sorted.get(at)?;
                #[expect(clippy::float_cmp, reason = "it is the same number, copied")]
                let is_here = place == *x;
                (is_here && y.is_finite()).then(|| rounded(y))
            })
            .collect()
    };
    let shown: Vec<Value> = series
        .iter()
        .map(|shown| {
            json!({
                "name": shown.name,
                "right": shown.side == Side::Right && chart.right.is_some(),
                "tone": shown.tone,
                "dots": shown.is_dots,
                "full": shown.full,
                "y": column(&shown.points),
            })
        })
        .collect();
    Some(json!({
        "x": axis(&chart.x),
        "left": axis(&chart.left),
        "right": chart.right.as_ref().map(axis),
        "at": places.iter().map(|x| rounded(*x)).collect::<Vec<_>>(),
        "series": shown,
        "ranges": ranges,
        "marks": marks,
        "levels": levels,
        "bars": bars,
        "hollow": hollow,
        "areas": areas,
        "words": words,
        "apart": WORDS_APART,
        "strip": STRIP,
    }))
}

fn axis(axis: &Axis) -> Value {
    json!({
        "label": axis.label,
        "log": axis.scale == Scale::Logarithmic,
        "zero": axis.from_zero,
    })
}

/// Six significant digits: more than a screen shows, and short.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let factor = 10_f64.powf(5.0 - value.abs().log10().floor());
    let rounded = (value * factor).round() / factor;
    if rounded.is_finite() { rounded } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_share_their_places() {
        let line = |name: &str, points: &[(f64, f64)]| Layer::Line {
            name: name.to_owned(),
            side: Side::Left,
            tone: 1,
            points: points.to_vec(),
        };
        let mut chart = Chart {
            x: Axis::linear("s"),
            left: Axis::from_zero("n"),
            right: None,
            layers: vec![
                line("a", &[(1.0, 10.0), (2.0, f64::NAN)]),
                line("b", &[(2.0, 1.234_567_89), (3.0, 30.0)]),
            ],
        };
        let value = live(&chart).expect("lines");
        assert_eq!(value["at"], json!([1.0, 2.0, 3.0]));
        assert_eq!(value["series"][0]["y"], json!([10.0, null, null]));
        assert_eq!(value["series"][1]["y"], json!([null, 1.23457, 30.0]));
        let mut turned = chart.clone();
        turned.layers.push(line("back", &[(2.0, 1.0), (1.0, 2.0)]));
        assert_eq!(live(&turned), None);
        chart.layers.push(Layer::Cells { name: String::new(), cells: Vec::new() });
        assert_eq!(live(&chart), None);
    }
}

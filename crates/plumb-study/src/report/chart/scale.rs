//! From values to places on a sheet, and where the ticks are.

use super::{Axis, Chart, Dot, Layer, Scale, Side};

/// An axis laid out over a stretch of the sheet.
#[derive(Debug, Clone)]
pub(super) struct Laid {
    scale: Scale,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Laid {
    /// Lays `axis` out over `values`, between two places of the sheet.
    pub(super) fn new(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let is_log = axis.scale == Scale::Logarithmic;
        let usable = values.filter(|value| value.is_finite() && (!is_log || *value > 0.0));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in usable {
            low = low.min(value);
            high = high.max(value);
        }
        if !low.is_finite() {
            (low, high) = (if is_log { 1.0 } else { 0.0 }, if is_log { 10.0 } else { 1.0 });
        }
        if is_log {
            low /= 1.15;
            high *= 1.15;
        } else if axis.from_zero {
            low = low.min(0.0);
            high = if high > 0.0 { high * 1.06 } else { low.abs().max(1.0) };
        } else {
            let room = (high - low) * 0.04;
            let room = if room > 0.0 { room } else { high.abs().max(1.0) * 0.05 };
            low -= room;
            high += room;
        }
        if !axis.names.is_empty() {
            low = axis.names.iter().map(|(at, _)| at - 0.6).fold(low, f64::min);
            high = axis.names.iter().map(|(at, _)| at + 0.6).fold(high, f64::max);
        }
        Self { scale: axis.scale, low, high, from, to }
    }

    /// Where a value lies; `None` for one that cannot be shown.
    pub(super) fn at(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            _ if !value.is_finite() => return None,
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value <= 0.0 => return None,
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        Some(self.from + share.clamp(-0.02, 1.02) * (self.to - self.from))
    }

    /// Ticks with their labels.
    pub(super) fn ticks(&self, most: f64) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => self.linear_ticks(most),
            Scale::Logarithmic => self.log_ticks(most),
        }
    }

    fn linear_ticks(&self, most: f64) -> Vec<(f64, String)> {
        let rough = (self.high - self.low) / most;
        let power = 10_f64.powf(rough.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough).unwrap_or(10.0);
        let step = factor * power;
        let mut ticks = Vec::new();
        let mut at = (self.low / step).ceil() * step;
        while at <= self.high + step * 1e-9 {
            let value = if at.abs() < step * 1e-9 { 0.0 } else { at };
            ticks.push((value, short(value)));
            at += step;
        }
        ticks
    }

    fn log_ticks(&self, most: f64) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor(), self.high.log10().ceil());
        let decades = last - first;
        let factors: &[f64] = match decades {
            _ if (self.high / self.low).log10() <= 2.6 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (decades / most).ceil().max(1.0);
        let mut ticks = Vec::new();
        let mut decade = first;
        while decade <= last {
            for factor in factors {
                let value = factor * 10_f64.powf(decade);
                if value >= self.low && value <= self.high {
                    ticks.push((value, short(value)));
                }
            }
            decade += every;
        }
        ticks
    }
}

/// A number as short as it can be read: `58k`, `1.5M`, `0.25`.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    let (scaled, unit) = match size {
        _ if size >= 1e9 => (value / 1e9, "G"),
        _ if size >= 1e6 => (value / 1e6, "M"),
        _ if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let text = match scaled.abs() {
        size if size >= 100.0 || size == 0.0 => format!("{scaled:.0}"),
        size if size >= 1.0 => format!("{scaled:.2}"),
        size if size >= 0.01 => format!("{scaled:.3}"),
        _ => format!("{scaled:.1e}"),
    };
    let text = match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    format!("{text}{unit}")
}

/// Every value of a chart along its horizontal axis.
pub(super) fn across(chart: &Chart) -> Vec<f64> {
    let mut values = Vec::new();
    for layer in &chart.layers {
        match layer {
            Layer::Line { points, .. } => values.extend(points.iter().map(|(x, _)| *x)),
            Layer::Dots { dots, .. } => values.extend(dots.iter().map(|dot| dot.x)),
            Layer::Between { points, .. } => values.extend(points.iter().map(|(x, _, _)| *x)),
            Layer::Range { x, .. } => values.extend([x.0, x.1]),
            Layer::Strip { points, .. } => values.extend(points.iter().map(|(x, _)| *x)),
            Layer::Mark { x, .. } => values.push(*x),
            Layer::Bars { bars, .. } => values.extend(bars.iter().map(|(x, _)| *x)),
            Layer::Cells { cells, .. } => values.extend(cells.iter().flat_map(|c| [c.x.0, c.x.1])),
            Layer::Lying { rows } => {
                values.extend(rows.iter().flat_map(|row| [row.1, row.2, row.3]));
            }
            Layer::Level { .. } | Layer::Words { .. } => {}
        }
    }
    values
}

/// Every value of a chart along a vertical axis.
pub(super) fn upward(chart: &Chart, wanted: Side) -> Vec<f64> {
    let is_left = wanted == Side::Left;
    let mut values = Vec::new();
    for layer in &chart.layers {
        match layer {
            Layer::Line { side, points, .. } if *side == wanted => {
                values.extend(points.iter().map(|(_, y)| *y));
            }
            Layer::Dots { side, dots, .. } if *side == wanted => {
                values.extend(dots.iter().map(|dot| dot.y));
                values.extend(bar_ends(dots));
            }
            Layer::Between { points, .. } if is_left => {
                values.extend(points.iter().flat_map(|(_, low, high)| [*low, *high]));
            }
            Layer::Level { y, .. } if is_left => values.push(*y),
            Layer::Bars { bars, .. } if is_left => {
                values.extend(bars.iter().map(|(_, parts)| parts.iter().sum::<f64>()));
            }
            Layer::Cells { cells, .. } if is_left => {
                values.extend(cells.iter().flat_map(|cell| [cell.y.0, cell.y.1]));
            }
            Layer::Lying { rows } if is_left => values.extend(rows.iter().map(|row| row.0)),
            _ => {}
        }
    }
    values
}

/// Ends of the bars of some dots, as far as they make an axis twice as long at most: two runs that contradict each other have intervals without bounds, and
/// the dots should be seen. A bar that is longer goes on to the edge of the sheet.
fn bar_ends(dots: &[Dot]) -> impl Iterator<Item = f64> {
    let all = || dots.iter().map(|dot| dot.y).filter(|y| y.is_finite());
    let (least, most) = all().fold((0.0_f64, 0.0_f64), |(a, b), y| (a.min(y), b.max(y)));
    let ends = dots.iter().filter_map(|dot| dot.bar).flat_map(|bar| [bar.0, bar.1]);
    ends.map(move |end| end.clamp(least - (most - least), most + (most - least)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let laid = Laid::new(axis, values.iter().copied(), 0.0, 100.0);
        laid.ticks(5.0).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(&Axis::from_zero("x"), &[58071.0]), ["0", "20k", "40k", "60k"]);
        assert_eq!(labels(&Axis::logarithmic("x"), &[1.0, 30.0]), ["1", "2", "5", "10", "20"]);
        assert_eq!(labels(&Axis::logarithmic("x"), &[0.01, 1000.0]), ["0.1", "10", "1000"]);
        assert_eq!(labels(&Axis::from_zero("x"), &[]), ["0", "0.5", "1"]);
        assert_eq!(labels(&Axis::linear("x"), &[f64::NAN, 5.0]).len(), 5);
    }

    /// Two runs that contradict each other have an interval without bounds: the dots are seen all the same.
    #[test]
    fn long_bars_leave_the_dots_to_be_seen() {
        let dot = |y, bar| Dot { x: 1.0, y, bar, hollow: false, name: String::new() };
        let ends = |dots: &[Dot]| bar_ends(dots).collect::<Vec<f64>>();
        let short = dot(100.0, Some((90.0, 110.0)));
        assert_eq!(ends(std::slice::from_ref(&short)), [90.0, 110.0]);
        assert_eq!(ends(&[short, dot(400.0, Some((0.1, 2e6)))]), [90.0, 110.0, 0.1, 800.0]);
        assert_eq!(ends(&[dot(-5.0, Some((-90.0, 3.0)))]), [-10.0, 3.0]);
        assert!(ends(&[dot(f64::NAN, Some((f64::NAN, 3.0)))])[0].is_nan());
    }

    #[test]
    fn values_lie_between_the_ends() {
        let laid = Laid::new(&Axis::logarithmic("x"), [1.0, 100.0].into_iter(), 10.0, 110.0);
        let middle = laid.at(10.0).expect("on the sheet");
        assert!((middle - 60.0).abs() < 1e-9, "{middle}");
        assert_eq!((laid.at(0.0), laid.at(f64::NAN)), (None, None));
        assert!(laid.at(1e9).is_some_and(|at| at <= 112.0));
    }

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (1.5e6, "1.5M"),
            (58071.0, "58.07k"),
            (9000.0, "9000"),
            (1e-5, "1.0e-5"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}

//! A chart as SVG: no script, readable on paper and by a screen reader. Colours come from the page.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use plumb_units::convert::floor_u64;

use super::scale::{self, Laid};
use super::{Axis, Cell, Chart, Dot, Layer, STRIP, Side, WORDS_APART};
use crate::report::html::escape;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 300.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 44.0;
const LEFT: f64 = 62.0;
const BARE: f64 = 18.0;

/// Height of a row of names on the left.
const ROW: f64 = 22.0;

/// Shades of a heat map besides the lightest one: more of them nobody tells apart.
const SHADES: f64 = 24.0;

/// The drawing. `title` is read out in its place.
pub(crate) fn svg(chart: &Chart, title: &str) -> String {
    Sheet::new(chart).draw(chart, title)
}

struct Sheet {
    out: String,
    x: Laid,
    left: Laid,
    right: Option<Laid>,
    edges: (f64, f64, f64, f64),
    height: f64,
    /// Where names of marks end, per line of them from the bottom.
    named_to: Vec<f64>,
}

impl Sheet {
    fn new(chart: &Chart) -> Self {
        let rows = chart.left.names.len() as f64;
        let height = if rows > 0.0 { TOP + BOTTOM + rows * ROW } else { HEIGHT };
        let longest = chart.left.names.iter().map(|(_, name)| name.chars().count()).max();
        let from = longest.map_or(LEFT, |letters| (letters as f64 * 6.6 + 16.0).clamp(LEFT, 260.0));
        let to = WIDTH - if chart.right.is_some() { LEFT } else { BARE };
        let (top, bottom) = (TOP, height - BOTTOM);
        let values = |side| scale::upward(chart, side).into_iter();
        Self {
            out: String::new(),
            x: Laid::new(&chart.x, scale::across(chart).into_iter(), from, to),
            left: Laid::new(&chart.left, values(Side::Left), bottom, top),
            right: chart
                .right
                .as_ref()
                .map(|axis| Laid::new(axis, values(Side::Right), bottom, top)),
            edges: (from, to, top, bottom),
            height,
            named_to: Vec::new(),
        }
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a string takes it");
    }

    fn draw(mut self, chart: &Chart, title: &str) -> String {
        let height = self.height;
        let title = escape(title);
        self.add(format_args!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">"
        ));
        self.axes(chart);
        for layer in &chart.layers {
            self.layer(layer);
        }
        self.add(format_args!("</svg>"));
        self.out
    }

    fn axes(&mut self, chart: &Chart) {
        let (from, to, top, bottom) = self.edges;
        self.vertical(&chart.left, &self.left.clone(), from, -8.0, "end");
        if let (Some(axis), Some(laid)) = (&chart.right, self.right.clone()) {
            self.vertical(axis, &laid, to, 8.0, "start");
        }
        let ticks =
            if chart.x.names.is_empty() { self.x.ticks(8.0) } else { chart.x.names.clone() };
        for (value, label) in ticks {
            if let Some(x) = self.x.at(value) {
                let (y, label) = (bottom + 16.0, escape(&label));
                self.add(format_args!(
                    "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>"
                ));
                self.add(format_args!("<path class=\"grid\" d=\"M{x:.1} {top}V{bottom}\"/>"));
            }
        }
        let (middle, y, label) = ((from + to) / 2.0, self.height - 8.0, escape(&chart.x.label));
        self.add(format_args!(
            "<text class=\"axis\" x=\"{middle}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>\
             <path class=\"frame\" d=\"M{from} {top}V{bottom}H{to}\"/>"
        ));
    }

    fn vertical(&mut self, axis: &Axis, laid: &Laid, x: f64, gap: f64, anchor: &str) {
        let (from, to, top, _) = self.edges;
        let is_left = gap < 0.0;
        let ticks = if axis.names.is_empty() { laid.ticks(5.0) } else { axis.names.clone() };
        for (value, label) in ticks {
            let Some(y) = laid.at(value) else { continue };
            let (place, base, label) = (x + gap, y + 4.0, escape(&label));
            self.add(format_args!(
                "<text x=\"{place}\" y=\"{base:.1}\" text-anchor=\"{anchor}\">{label}</text>"
            ));
            if is_left && axis.names.is_empty() {
                self.add(format_args!("<path class=\"grid\" d=\"M{from} {y:.1}H{to}\"/>"));
            }
        }
        let (place, y, label) =
            (if is_left { 4.0 } else { WIDTH - 4.0 }, top - 9.0, escape(&axis.label));
        let anchor = if is_left { "start" } else { "end" };
        self.add(format_args!(
            "<text class=\"axis\" x=\"{place}\" y=\"{y}\" text-anchor=\"{anchor}\">{label}</text>"
        ));
    }

    fn side(&self, side: Side) -> &Laid {
        match side {
            Side::Left => &self.left,
            Side::Right => self.right.as_ref().unwrap_or(&self.left),
        }
    }

    fn layer(&mut self, layer: &Layer) {
        match layer {
            Layer::Line { side, tone, points, .. } => self.line(*side, *tone, points),
            Layer::Dots { side, tone, dots, .. } => self.dots(*side, *tone, dots),
            Layer::Between { tone, points, .. } => self.between(*tone, points),
            Layer::Range { name, x } => self.range(name, *x),
            Layer::Mark { name, x } => self.mark(name, *x),
            Layer::Level { name, y } => self.level(name, *y),
            Layer::Words { words } => self.words(words),
            Layer::Strip { tone, full, points, .. } => self.strip(*tone, *full, points),
            Layer::Bars { parts, bars } => self.bars(parts, bars),
            Layer::Lying { rows } => self.lying(rows),
            Layer::Cells { cells, .. } => self.cells(cells),
        }
    }

    fn line(&mut self, side: Side, tone: u8, points: &[(f64, f64)]) {
        let mut path = String::new();
        let mut is_open = false;
        for (x, y) in points {
            match self.x.at(*x).zip(self.side(side).at(*y)) {
                Some((x, y)) => {
                    let word = if is_open { 'L' } else { 'M' };
                    write!(path, "{word}{x:.1} {y:.1}").expect("a string takes it");
                    is_open = true;
                }
                None => is_open = false,
            }
        }
        self.add(format_args!("<path class=\"line t{tone}\" d=\"{path}\"/>"));
    }

    fn dots(&mut self, side: Side, tone: u8, dots: &[Dot]) {
        for dot in dots {
            let Some((x, y)) = self.x.at(dot.x).zip(self.side(side).at(dot.y)) else { continue };
            let bar = dot.bar.and_then(|(low, high)| {
                let laid = self.side(side);
                laid.at(low).zip(laid.at(high))
            });
            if let Some((low, high)) = bar {
                self.add(format_args!(
                    "<path class=\"bar t{tone}\" d=\"M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h6M{:.1} {high:.1}h6\"/>",
                    x - 3.0,
                    x - 3.0
                ));
            }
            let hollow = if dot.hollow { " hollow" } else { "" };
            let title = match dot.name.as_str() {
                "" => String::new(),
                name => format!("<title>{}</title>", escape(name)),
            };
            let shape = shape(tone, x, y);
            self.add(format_args!(
                "<path class=\"dot t{tone}{hollow}\" d=\"{shape}\">{title}</path>"
            ));
        }
    }

    fn between(&mut self, tone: u8, points: &[(f64, f64, f64)]) {
        let place = |x: f64, y: f64| self.x.at(x).zip(self.left.at(y));
        let upper = points.iter().filter_map(|(x, _, high)| place(*x, *high));
        let lower = points.iter().rev().filter_map(|(x, low, _)| place(*x, *low));
        let corners: Vec<String> =
            upper.chain(lower).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        if !corners.is_empty() {
            let path = corners.join("L");
            self.add(format_args!("<path class=\"area t{tone}\" d=\"M{path}Z\"/>"));
        }
    }

    fn words(&mut self, words: &[(f64, f64, String)]) {
        let mut written: Vec<(f64, f64)> = Vec::new();
        for (x, y, text) in words {
            let Some((x, y)) = self.x.at(*x).zip(self.left.at(*y)) else { continue };
            let touches = |(a, b): &(f64, f64)| {
                (a - x).abs() < WORDS_APART.0 && (b - y).abs() < WORDS_APART.1
            };
            if written.iter().any(touches) {
                continue;
            }
            written.push((x, y));
            let (place, base, text) = (x - 6.0, y - 7.0, escape(text));
            self.add(format_args!(
                "<text class=\"note\" x=\"{place:.1}\" y=\"{base:.1}\" text-anchor=\"end\">{text}</text>"
            ));
        }
    }

    /// An area per stretch without a gap.
    fn strip(&mut self, tone: u8, full: f64, points: &[(f64, f64)]) {
        let (_, _, top, bottom) = self.edges;
        let height = (bottom - top) * STRIP;
        let place = |(x, y): &(f64, f64)| {
            let share = if y.is_finite() { (y / full).clamp(0.0, 1.0) } else { return None };
            Some((self.x.at(*x)?, bottom - share * height))
        };
        let mut path = String::new();
        let places: Vec<Option<(f64, f64)>> = points.iter().map(place).collect();
        for stretch in places.split(Option::is_none) {
            let corners: Vec<(f64, f64)> = stretch.iter().copied().flatten().collect();
            let ((Some(first), Some(last)), true) =
                ((corners.first(), corners.last()), corners.len() > 1)
            else {
                continue;
            };
            write!(path, "M{:.1} {bottom:.1}", first.0).expect("a string takes it");
            for (x, y) in &corners {
                write!(path, "L{x:.1} {y:.1}").expect("a string takes it");
            }
            write!(path, "L{:.1} {bottom:.1}Z", last.0).expect("a string takes it");
        }
        self.add(format_args!("<path class=\"strip t{tone}\" d=\"{path}\"/>"));
    }

    fn range(&mut self, name: &str, (low, high): (f64, f64)) {
        let (_, _, top, bottom) = self.edges;
        let Some((a, b)) = self.x.at(low).zip(self.x.at(high)) else { return };
        let (width, height, base, name) =
            ((b - a).max(2.0), bottom - top, top + 12.0, escape(name));
        self.add(format_args!(
            "<rect class=\"range\" x=\"{a:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\"/>\
             <text class=\"note\" x=\"{:.1}\" y=\"{base}\">{name}</text>",
            a + 3.0
        ));
    }

    fn mark(&mut self, name: &str, x: f64) {
        let (_, to, top, bottom) = self.edges;
        let Some(x) = self.x.at(x) else { return };
        let length = name.chars().count() as f64 * 6.2 + 8.0;
        let (gap, anchor) = if x + length > to { (-4.0, "end") } else { (4.0, "start") };
        let (from, until) = if gap > 0.0 { (x, x + length) } else { (x - length, x) };
        let free = self.named_to.iter().position(|taken| *taken <= from);
        let line = free.unwrap_or(self.named_to.len());
        self.named_to.resize(self.named_to.len().max(line + 1), 0.0);
        self.named_to[line] = until;
        let (place, base, name) = (x + gap, bottom - 6.0 - 14.0 * line as f64, escape(name));
        self.add(format_args!(
            "<path class=\"mark\" d=\"M{x:.1} {top}V{bottom}\"/>\
             <text class=\"note\" x=\"{place:.1}\" y=\"{base}\" text-anchor=\"{anchor}\">{name}</text>"
        ));
    }

    fn level(&mut self, name: &str, y: f64) {
        let (from, to, ..) = self.edges;
        let Some(y) = self.left.at(y) else { return };
        let (place, base, name) = (to - 4.0, y - 4.0, escape(name));
        self.add(format_args!(
            "<path class=\"level\" d=\"M{from} {y:.1}H{to}\"/>\
             <text class=\"note\" x=\"{place}\" y=\"{base:.1}\" text-anchor=\"end\">{name}</text>"
        ));
    }

    fn bars(&mut self, parts: &[(String, u8)], bars: &[(f64, Vec<f64>)]) {
        let (from, to, ..) = self.edges;
        let width = ((to - from) / (bars.len() as f64 + 1.0) * 0.7).clamp(1.0, 40.0);
        for (x, values) in bars {
            let Some(middle) = self.x.at(*x) else { continue };
            let mut below = 0.0;
            for (value, (name, tone)) in values.iter().zip(parts) {
                let Some((low, high)) = self.left.at(below).zip(self.left.at(below + value)) else {
                    continue;
                };
                below += value;
                let (height, left) = ((low - high).max(0.0), middle - width / 2.0);
                let name = escape(name);
                self.add(format_args!(
                    "<rect class=\"part t{tone}\" x=\"{left:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" \
                     height=\"{height:.1}\"><title>{name} {}</title></rect>",
                    scale::short(*value)
                ));
            }
        }
    }

    fn lying(&mut self, rows: &[(f64, f64, f64, f64, u8)]) {
        for (row, low, estimate, high, tone) in rows {
            let Some(y) = self.left.at(*row) else { continue };
            let places = self.x.at(*low).zip(self.x.at(*high)).zip(self.x.at(*estimate));
            let Some(((a, b), at)) = places else { continue };
            let shape = shape(*tone, at, y);
            self.add(format_args!(
                "<path class=\"bar t{tone}\" d=\"M{a:.1} {y:.1}H{b:.1}M{a:.1} {:.1}v8M{b:.1} {:.1}v8\"/>\
                 <path class=\"dot t{tone}\" d=\"{shape}\"/>",
                y - 4.0,
                y - 4.0
            ));
        }
    }

    /// A path per shade; neighbours of one shade are one rectangle in it: a heat map has thousands of cells.
    fn cells(&mut self, cells: &[Cell]) {
        let mut shades: BTreeMap<u64, Vec<[f64; 4]>> = BTreeMap::new();
        for cell in cells {
            let across = self.x.at(cell.x.0).zip(self.x.at(cell.x.1));
            let upward = self.left.at(cell.y.0).zip(self.left.at(cell.y.1));
            let Some(((a, b), (low, high))) = across.zip(upward) else { continue };
            let shade = floor_u64((cell.weight.clamp(0.0, 1.0) * SHADES).round());
            shades.entry(shade).or_default().push([high, low, a, b]);
        }
        for (shade, mut all) in shades {
            all.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
            let mut joined: Vec<[f64; 4]> = Vec::new();
            for cell in all {
                match joined.last_mut() {
                    Some(last) if last[..2] == cell[..2] && last[3] == cell[2] => last[3] = cell[3],
                    _ => joined.push(cell),
                }
            }
            let weight = 0.12 + 0.88 * shade as f64 / SHADES;
            self.add(format_args!("<path class=\"cell\" fill-opacity=\"{weight:.2}\" d=\""));
            for [high, low, a, b] in joined {
                let (width, height) = ((b - a).max(0.6), (low - high).max(0.6));
                self.add(format_args!("M{a:.1} {high:.1}h{width:.1}v{height:.1}h-{width:.1}"));
            }
            self.add(format_args!("\"/>"));
        }
    }
}

/// Tones differ in shape too: circle, square, triangle, diamond, cross, bar.
fn shape(tone: u8, x: f64, y: f64) -> String {
    match tone {
        2 => format!("M{:.1} {:.1}h8v8h-8Z", x - 4.0, y - 4.0),
        3 => format!("M{x:.1} {:.1}l5 9h-10Z", y - 5.0),
        4 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5Z", y - 5.0),
        5 => format!("M{:.1} {:.1}l8 8m0 -8l-8 8", x - 4.0, y - 4.0),
        6 => format!("M{:.1} {:.1}h4v10h-4Z", x - 2.0, y - 5.0),
        _ => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0Z", x - 4.0),
    }
}

//! What a report says, apart from how it looks.

use super::chart::Chart;

/// A report.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Its heading.
    pub title: String,
    /// Pairs of name and value: what, where, when.
    pub facts: Vec<(String, String)>,
    /// The few figures that most readers came for.
    pub tiles: Vec<Tile>,
    /// What was found, the most important first.
    pub findings: Vec<Headline>,
    /// Everything behind it.
    pub sections: Vec<Section>,
}

/// A figure in large.
#[derive(Debug, Clone, PartialEq)]
pub struct Tile {
    /// What it is.
    pub name: String,
    /// The figure with its unit.
    pub value: String,
    /// At which setting, with which latency, how sure.
    pub note: String,
    /// Where its evidence is: the id of a section or table.
    pub link: String,
}

/// How a finding is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A figure.
    Plain,
    /// Something got better.
    Better,
    /// Something got worse.
    Worse,
    /// Something may be wrong with the measurement.
    Warn,
    /// The data cannot tell.
    Open,
}

impl Tone {
    /// The word before the sentence; empty for a plain one.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Better => "Better",
            Self::Worse => "Worse",
            Self::Warn => "Mind",
            Self::Open => "Open",
        }
    }
}

/// A finding in plain words.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// How it is meant.
    pub tone: Tone,
    /// One or two sentences.
    pub text: String,
    /// Where its evidence is: words and the id of a section, plot or table.
    pub evidence: Vec<(String, String)>,
}

impl Headline {
    /// A finding with one place of evidence.
    #[must_use]
    pub fn new(tone: Tone, text: impl Into<String>, words: &str, id: &str) -> Self {
        Self { tone, text: text.into(), evidence: vec![(words.to_owned(), id.to_owned())] }
    }
}

/// A part of a report.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Its name in links.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What is in it.
    pub blocks: Vec<Block>,
}

/// Something in a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// A paragraph.
    Paragraph(String),
    /// Sentences, a line each.
    List(Vec<String>),
    /// A plot.
    Plot(Box<Plot>),
    /// A table.
    Table(Table),
    /// Text that is folded away: a heading, and lines as they are.
    Folded {
        /// Its name in links; empty for none.
        id: String,
        /// Always shown.
        heading: String,
        /// Shown when opened.
        text: String,
    },
}

/// A plot with its data and its conclusion.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its name in links.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What it shows, with its numbers.
    pub sentence: String,
    /// The drawing.
    pub chart: Chart,
    /// The data behind it: names of columns with units, then rows.
    pub data: Data,
}

/// Numbers in columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// Names, with units.
    pub columns: Vec<String>,
    /// Cells as text.
    pub rows: Vec<Vec<String>>,
}

impl Data {
    /// An empty table with these columns.
    #[must_use]
    pub fn new(columns: &[&str]) -> Self {
        Self { columns: columns.iter().map(|name| (*name).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn add<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// As comma-separated values (RFC 4180, with line feeds).
    #[must_use]
    pub fn csv(&self) -> String {
        let cell = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let line =
            |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.columns).chain(&self.rows).map(line).collect()
    }
}

/// A table.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Its name in links.
    pub id: String,
    /// What it holds.
    pub caption: String,
    /// The cells.
    pub data: Data,
}

/// A number for a cell: six significant digits, empty where there is none.
#[must_use]
pub(super) fn cell(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => String::new(),
        Some(0.0) => "0".to_owned(),
        Some(value) => {
            let places = (5.0 - value.abs().log10().floor()).clamp(0.0, 12.0);
            let places = plumb_units::convert::to_usize(plumb_units::convert::floor_u64(places));
            let text = format!("{value:.places$}");
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
    }
}

/// A rate for a sentence: whole numbers with groups of three from 100 on.
pub(super) fn rate(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A latency for a sentence: in µs below a millisecond.
pub(super) fn latency(ms: f64) -> String {
    match ms {
        ms if ms < 1.0 => format!("{:.0} µs", ms * 1e3),
        ms if ms < 100.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_plainly() {
        assert_eq!(
            (rate(58071.31), rate(7.25), rate(1_234_567.0)),
            ("58\u{202f}071".into(), "7.2".into(), "1\u{202f}234\u{202f}567".into())
        );
        assert_eq!(
            (latency(0.553), latency(1.652), latency(211.35)),
            ("553 µs".into(), "1.65 ms".into(), "211 ms".into())
        );
        assert_eq!(
            (cell(Some(58071.31)), cell(Some(0.000_123_456_7)), cell(None)),
            ("58071.3".into(), "0.000123457".into(), String::new())
        );
    }

    #[test]
    fn cells_with_commas_are_quoted() {
        let mut data = Data::new(&["a", "b, c"]);
        data.add(["1".into(), "say \"x\"".into()]);
        assert_eq!(data.csv(), "a,\"b, c\"\n1,\"say \"\"x\"\"\"\n");
    }
}

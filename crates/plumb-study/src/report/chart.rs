//! Charts: what is drawn, apart from how.

mod live;
mod scale;
mod svg;

pub(crate) use live::live;
pub(crate) use svg::svg;

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis on the left.
    pub left: Axis,
    /// The vertical axis on the right, if there is one.
    pub right: Option<Axis>,
    /// What is drawn, the rearmost first.
    pub layers: Vec<Layer>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// What it counts, with its unit.
    pub label: String,
    /// Linear or logarithmic.
    pub scale: Scale,
    /// Whether it begins at 0 where it is linear.
    pub from_zero: bool,
    /// Named places instead of numbers.
    pub names: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis from 0.
    #[must_use]
    pub fn from_zero(label: &str) -> Self {
        Self { label: label.to_owned(), scale: Scale::Linear, from_zero: true, names: Vec::new() }
    }

    /// A linear axis over the values.
    #[must_use]
    pub fn linear(label: &str) -> Self {
        Self { from_zero: false, ..Self::from_zero(label) }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn logarithmic(label: &str) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label) }
    }

    /// A linear axis with names in the place of numbers.
    #[must_use]
    pub fn named(label: &str, names: Vec<(f64, String)>) -> Self {
        Self { names, ..Self::linear(label) }
    }
}

/// How near two words may be, in places of the sheet: across and upward.
pub(crate) const WORDS_APART: (f64, f64) = (24.0, 12.0);

/// How much of the height a strip takes.
pub(crate) const STRIP: f64 = 0.2;

/// How an axis runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors; values of 0 and below are left out.
    Logarithmic,
}

/// Which vertical axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// A point with what is known of its uncertainty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dot {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// Its interval along the vertical axis.
    pub bar: Option<(f64, f64)>,
    /// Drawn hollow: it does not count.
    pub hollow: bool,
    /// What it is called; shown when pointed at.
    pub name: String,
}

/// A cell of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// From and to along the horizontal axis.
    pub x: (f64, f64),
    /// From and to along the vertical axis.
    pub y: (f64, f64),
    /// 0 to 1: how dark.
    pub weight: f64,
}

/// Something that is drawn. Tones are numbers from 1 to 6; each has a colour, a dash and a shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Layer {
    /// A line through points.
    Line {
        /// In the legend.
        name: String,
        /// Its axis.
        side: Side,
        /// Its tone.
        tone: u8,
        /// In order; a value that is no number breaks the line.
        points: Vec<(f64, f64)>,
    },
    /// Points by themselves.
    Dots {
        /// In the legend.
        name: String,
        /// Their axis.
        side: Side,
        /// Their tone.
        tone: u8,
        /// The points.
        dots: Vec<Dot>,
    },
    /// An area between two lines.
    Between {
        /// In the legend.
        name: String,
        /// Its tone.
        tone: u8,
        /// (x, low, high) in order.
        points: Vec<(f64, f64, f64)>,
    },
    /// A shaded range of the horizontal axis.
    Range {
        /// Written at its top.
        name: String,
        /// From and to.
        x: (f64, f64),
    },
    /// A vertical line with a name.
    Mark {
        /// Written beside it.
        name: String,
        /// Where.
        x: f64,
    },
    /// A dashed horizontal line with a name.
    Level {
        /// Written above it.
        name: String,
        /// Where, on the left axis.
        y: f64,
    },
    /// Words beside points of the left axis; of those that would touch only the first is written.
    Words {
        /// Where, and what.
        words: Vec<(f64, f64, String)>,
    },
    /// An area along the bottom on a scale of its own: a fifth of the height is `full`.
    Strip {
        /// In the legend, with its unit.
        name: String,
        /// Its tone.
        tone: u8,
        /// What the whole strip means.
        full: f64,
        /// In order; a value that is no number leaves a gap.
        points: Vec<(f64, f64)>,
    },
    /// Bars whose parts stand on each other.
    Bars {
        /// Name and tone of each part.
        parts: Vec<(String, u8)>,
        /// Where each bar stands, and its parts.
        bars: Vec<(f64, Vec<f64>)>,
    },
    /// Intervals that lie, one per row.
    Lying {
        /// (row, low, estimate, high, tone).
        rows: Vec<(f64, f64, f64, f64, u8)>,
    },
    /// A heat map.
    Cells {
        /// What darkness means.
        name: String,
        /// The cells.
        cells: Vec<Cell>,
    },
}

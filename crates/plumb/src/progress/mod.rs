//! How far a run is, on standard error while it lasts; never on standard output.

mod bar;
mod line;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use bar::bar;
use line::{json, plain};
use plumb_load::profile::flags::ProgressStyle;
use plumb_load::session::{Phase, Snapshot};

/// Seconds between two lines of the plain style.
const PLAIN_EVERY: u64 = 10;

/// For readers.
fn title(phase: Phase) -> &'static str {
    match phase {
        Phase::Creating { .. } => "creating files",
        Phase::Verifying { .. } => "verifying",
        Phase::Preparing => "preparing",
        Phase::WarmUp => "warm-up",
        Phase::Measuring => "measuring",
        Phase::CoolDown => "cool-down",
    }
}

/// For programs.
fn key(phase: Phase) -> &'static str {
    match phase {
        Phase::Creating { .. } => "creating",
        Phase::Verifying { .. } => "verifying",
        Phase::Preparing => "preparing",
        Phase::WarmUp => "warmup",
        Phase::Measuring => "measuring",
        Phase::CoolDown => "cooldown",
    }
}

/// Part of the phase that is over, 0..=1; `None` when nobody knows.
fn fraction(snapshot: &Snapshot) -> Option<f64> {
    let (done, total) = match snapshot.phase {
        Phase::Creating { done, total } | Phase::Verifying { done, total } => (done, total),
        _ => (snapshot.elapsed.0, snapshot.total.0),
    };
    (total > 0).then(|| (done as f64 / total as f64).clamp(0.0, 1.0))
}

/// Whether I/O of the workload runs.
fn has_rates(snapshot: &Snapshot) -> bool {
    matches!(snapshot.phase, Phase::WarmUp | Phase::Measuring | Phase::CoolDown)
}

fn mib_per_s(snapshot: &Snapshot) -> f64 {
    snapshot.bytes_per_s / f64::from(1 << 20)
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// One line that is drawn over and over.
    Bar,
    /// A line now and then.
    Plain,
    /// A JSON object per snapshot and line.
    Json,
    /// Not at all.
    Silent,
}

impl Style {
    /// The style asked for (`--progress-style`); `auto` is a bar on a terminal that can draw one, and
    /// nothing elsewhere.
    pub(crate) fn of(asked: ProgressStyle) -> Self {
        match asked {
            ProgressStyle::Auto => {
                Self::automatic(io::stderr().is_terminal(), |variable| std::env::var(variable).ok())
            }
            ProgressStyle::Plain => Self::Plain,
            ProgressStyle::Json => Self::Json,
            ProgressStyle::None => Self::Silent,
        }
    }

    fn automatic(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        if !is_terminal || variable("CI").is_some_and(|value| !value.is_empty()) {
            Self::Silent
        } else if variable("TERM").is_none_or(|terminal| terminal == "dumb") {
            Self::Plain
        } else {
            Self::Bar
        }
    }
}

/// Draws snapshots as they come.
pub(crate) struct Progress<W> {
    style: Style,
    out: W,
    /// Columns of the terminal, asked each time: it can be resized.
    width: fn() -> usize,
    /// Whether a bar stands on the current line.
    is_drawn: bool,
    /// Time span, phase and seconds of the last plain line.
    last: Option<(usize, &'static str, u64)>,
}

impl Progress<io::Stderr> {
    /// On standard error.
    pub(crate) fn on_stderr(style: Style) -> Self {
        Self::new(style, io::stderr(), terminal_width)
    }
}

impl<W: Write> Progress<W> {
    pub(crate) fn new(style: Style, out: W, width: fn() -> usize) -> Self {
        Self { style, out, width, is_drawn: false, last: None }
    }

    /// Shows how far the run is. Progress that cannot be written is not worth failing for.
    pub(crate) fn show(&mut self, snapshot: &Snapshot) {
        let text = match self.style {
            Style::Silent => return,
            Style::Bar => {
                self.is_drawn = true;
                format!("\r{}\x1b[K", bar(snapshot, (self.width)()))
            }
            Style::Json => format!("{}\n", json(snapshot)),
            Style::Plain => match self.is_due(snapshot) {
                true => format!("{}\n", plain(snapshot)),
                false => return,
            },
        };
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }

    /// Takes the bar away, so that something else can be printed.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = self.out.write_all(b"\r\x1b[K").and_then(|()| self.out.flush());
        }
    }

    /// Plain lines come when a phase begins and then every [`PLAIN_EVERY`] seconds.
    fn is_due(&mut self, snapshot: &Snapshot) -> bool {
        let place = (snapshot.time_span.0, key(snapshot.phase));
        let seconds = Duration::from(snapshot.elapsed).as_secs();
        let due = self.last.is_none_or(|(time_span, phase, last)| {
            (time_span, phase) != place || seconds >= last + PLAIN_EVERY
        });
        if due {
            self.last = Some((place.0, place.1, seconds));
        }
        due
    }
}

impl<W> Drop for Progress<W> {
    fn drop(&mut self) {
        // Whoever ends with a bar on the screen ends on a line of its own.
        if self.is_drawn {
            eprintln!();
        }
    }
}

/// Columns of the terminal behind standard error, 80 when it does not say.
fn terminal_width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    if columns == 0 { 80 } else { columns.into() }
}

#[cfg(test)]
mod tests;

//! The CPU table (spec 7.4).

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::result::model::CpuUsage;

/// Columns that are there only where they tell something.
struct Columns {
    socket: bool,
    node: bool,
    group: bool,
    core: bool,
    class: bool,
    highest_class: u8,
}

impl Columns {
    fn of(cpus: &[CpuUsage]) -> Self {
        let cores: BTreeSet<(u16, u32)> = cpus.iter().map(|cpu| (cpu.group, cpu.core)).collect();
        let highest_class = cpus.iter().map(|cpu| cpu.class).max().unwrap_or(0);
        Self {
            socket: differ(cpus, |cpu| cpu.socket),
            node: differ(cpus, |cpu| cpu.node),
            group: differ(cpus, |cpu| u32::from(cpu.group)),
            core: cores.len() < cpus.len(),
            class: highest_class > 0,
            highest_class,
        }
    }

    /// (is there, header, dashes).
    fn optional(&self) -> [(bool, &'static str, usize); 5] {
        [
            (self.socket, "Socket | ", 9),
            (self.node, "Node | ", 7),
            (self.group, "Group | ", 8),
            (self.core, "Core | ", 7),
            (self.class, "Class | ", 8),
        ]
    }

    fn dashes(&self) -> usize {
        self.optional().iter().filter(|(there, ..)| *there).map(|(_, _, dashes)| dashes).sum()
    }
}

fn differ(cpus: &[CpuUsage], of: impl Fn(&CpuUsage) -> u32) -> bool {
    cpus.windows(2).any(|pair| of(&pair[0]) != of(&pair[1]))
}

/// Writes the table and the empty line before it; nothing without processors.
///
/// # Errors
/// What `out` reports.
pub fn write(cpus: &[CpuUsage], out: &mut dyn Write) -> io::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(cpus);
    writeln!(out)?;
    for (_, header, _) in columns.optional().iter().filter(|(there, ..)| *there) {
        write!(out, "{header}")?;
    }
    writeln!(out, "CPU |  Usage |  User  | Kernel |  Idle")?;
    let line = "-".repeat(columns.dashes() + 40);
    writeln!(out, "{line}")?;
    for cpu in cpus {
        write_cpu(cpu, &columns, out)?;
    }
    writeln!(out, "{line}")?;
    let means = mean(cpus);
    write!(out, "{:width$}avg.| ", "", width = columns.dashes())?;
    write_percents(means, out)
}

fn write_cpu(cpu: &CpuUsage, columns: &Columns, out: &mut dyn Write) -> io::Result<()> {
    if columns.socket {
        write!(out, "{:>7}| ", cpu.socket)?;
    }
    if columns.node {
        write!(out, "{:>5}| ", cpu.node)?;
    }
    if columns.group {
        write!(out, "{:>6}| ", cpu.group)?;
    }
    if columns.core {
        write!(out, "{:>5}| ", cpu.core)?;
    }
    if columns.class {
        let mark = if cpu.class == columns.highest_class { 'P' } else { ' ' };
        write!(out, "{:>5}{mark}| ", cpu.class)?;
    }
    write!(out, "{:>4}| ", cpu.cpu)?;
    write_percents(percents(cpu), out)
}

fn write_percents([usage, user, kernel, idle]: [f64; 4], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{usage:>6.2}%| {user:>6.2}%| {kernel:>6.2}%| {idle:>6.2}%")
}

/// Usage, user, kernel, idle.
#[must_use]
pub fn percents(cpu: &CpuUsage) -> [f64; 4] {
    [cpu.kernel + cpu.user, cpu.user, cpu.kernel, cpu.idle]
}

/// Usage, user, kernel, idle as means over the processors; 0 without any.
#[must_use]
pub fn mean(cpus: &[CpuUsage]) -> [f64; 4] {
    let mut means = [0.0; 4];
    for cpu in cpus {
        for (mean, value) in means.iter_mut().zip(percents(cpu)) {
            *mean += value;
        }
    }
    let count = plumb_units::convert::to_u64(cpus.len().max(1)) as f64;
    means.map(|sum| sum / count)
}

//! The first pass: what goes with a profile, and the size of a block (spec 3.2).

use super::Surroundings;
use super::error::{CommandLineError, Place, visible};
use super::line::{Given, Line, Scan};
use super::table::Id;
use super::values::{At, Fault, atoi, block_size, seconds, seed};
use super::warnings::Warnings;
use crate::profile::error::ErrorClass;
use crate::profile::model::{BufferSeparation, RawProfile, ResultFormat};

/// What the first pass read.
#[derive(Debug, Default)]
pub(super) struct First<'a> {
    pub(super) block_size: Option<u32>,
    pub(super) buffer_separation: Option<BufferSeparation>,
    /// The last `-bs`.
    pub(super) buffer_separation_at: Option<usize>,
    pub(super) experiment_flags: Option<u32>,
    pub(super) cooldown: Option<u32>,
    pub(super) duration: Option<u32>,
    pub(super) warmup: Option<u32>,
    pub(super) seed: Option<u32>,
    pub(super) result_format: Option<ResultFormat>,
    pub(super) profile_only: bool,
    pub(super) verbose: bool,
    pub(super) verbose_stats: bool,
    /// `-X`.
    pub(super) profile: Option<Given<'a>>,
    /// `-Rs`, and its place.
    pub(super) system_info: Option<(ResultFormat, usize)>,
}

impl<'a> First<'a> {
    /// Reads the options of the first pass; every other one only speaks against `-X`.
    pub(super) fn read(
        scan: &Scan<'a>,
        surroundings: &mut dyn Surroundings,
        warnings: &mut Warnings,
    ) -> Result<Self, CommandLineError> {
        let mut first = Self::default();
        let mut workload = None;
        for given in &scan.options {
            first
                .option(given, &mut workload, surroundings, warnings)
                .map_err(|fault| given.error(&fault))?;
        }
        Ok(first)
    }

    /// Fails if `-Rs` is not alone. Options that are Plumb's own do not count.
    pub(super) fn system_info(
        &self,
        scan: &Scan<'_>,
        line: &Line,
    ) -> Result<Option<ResultFormat>, CommandLineError> {
        let Some((format, place)) = self.system_info else { return Ok(None) };
        // How errors are shown says nothing of what is asked; a result, its formats and its engine do.
        let options = scan.options.iter().filter(|given| given.id != Id::ErrorFormat);
        let others = options.map(|given| given.index).chain(scan.targets.iter().copied());
        let mut others = others.chain(scan.end_of_options).filter(|index| *index != place);
        let Some(other) = others.next() else { return Ok(Some(format)) };
        let given = visible(&line.tokens[other]);
        let error = CommandLineError::new(
            ErrorClass::ResultFormat,
            format!("-Rs must be the only argument, but '{given}' is there too"),
            "leave the rest out: the system is described whatever the workload",
        );
        Err(error.at(&Place { option: place, ..line.whole(place) }, &line.tokens))
    }

    /// What goes with a profile that was read from a file.
    pub(super) fn override_profile(&self, profile: &mut RawProfile) {
        self.set_switches(profile);
        for span in &mut profile.time_spans {
            span.duration = self.duration.unwrap_or(span.duration);
            span.warmup = self.warmup.unwrap_or(span.warmup);
            span.cooldown = self.cooldown.unwrap_or(span.cooldown);
            span.rand_seed = self.seed.unwrap_or(span.rand_seed);
        }
    }

    fn set_switches(&self, profile: &mut RawProfile) {
        profile.experiment_flags = self.experiment_flags.unwrap_or(profile.experiment_flags);
        profile.result_format = self.result_format.unwrap_or(profile.result_format);
        profile.profile_only |= self.profile_only;
        profile.verbose |= self.verbose;
        profile.verbose_stats |= self.verbose_stats;
    }

    /// One option. `workload` is the first one that does not go with `-X`.
    fn option(
        &mut self,
        given: &Given<'a>,
        workload: &mut Option<String>,
        surroundings: &mut dyn Surroundings,
        warnings: &mut Warnings,
    ) -> Result<(), Fault> {
        if !given.id.goes_with_profile() {
            if self.profile.is_some() {
                return Err(beside_profile(given));
            }
            workload.get_or_insert_with(|| given.name.clone());
        }
        match given.id {
            Id::BlockSize => {
                let block = self.block_size.unwrap_or(DEFAULT_BLOCK_SIZE);
                self.block_size = Some(block_size(given.value, block)?);
            }
            Id::BufferSeparation => {
                self.buffer_separation = Some(match given.value {
                    "n" => BufferSeparation::SystemDefault,
                    "p" => BufferSeparation::PdeCacheLine,
                    _ => {
                        let help = "write {}n (where the system puts them) or {}p (apart)";
                        return Err(Fault::value(" needs exactly one of n, p", help));
                    }
                });
                self.buffer_separation_at = Some(given.index);
            }
            Id::ExperimentFlags => {
                warnings.leftover(given, atoi(given.value).end);
                self.experiment_flags = Some(atoi(given.value).value.cast_unsigned());
            }
            Id::Cooldown => self.cooldown = Some(time(given, warnings)?),
            Id::Duration => self.duration = Some(time(given, warnings)?),
            Id::Warmup => self.warmup = Some(time(given, warnings)?),
            Id::Seed if given.value.is_empty() => {
                // Deliberately the low half: seeds have 32 bits.
                let uptime = surroundings.uptime_millis();
                self.seed = Some(plumb_units::convert::low_u32(uptime));
            }
            Id::Seed => self.seed = Some(seed(given.value)?),
            Id::ResultFormat | Id::ProfileOnly | Id::SystemInfo => self.format(given)?,
            Id::Verbose if given.value.is_empty() => self.verbose = true,
            Id::Verbose => {
                let help = "write -v for verbose, -vs for additional statistics; both may be given";
                return Err(Fault::value(": unknown mode", help));
            }
            Id::VerboseStats => self.verbose_stats = true,
            Id::Profile => self.profile(given, workload.as_deref())?,
            _ => {}
        }
        Ok(())
    }

    /// `-R[p|s][text|xml]`.
    fn format(&mut self, given: &Given<'_>) -> Result<(), Fault> {
        let format = match given.value {
            "text" => Some(ResultFormat::Text),
            "xml" => Some(ResultFormat::Xml),
            "" => None,
            _ => {
                let help = "write {}text or {}xml; for JSON there is --json";
                return Err(Fault::value(": unknown result format", help));
            }
        };
        match given.id {
            Id::SystemInfo => self.system_info = Some((format.unwrap_or_default(), given.index)),
            Id::ProfileOnly => {
                self.profile_only = true;
                self.result_format = format.or(self.result_format);
            }
            _ if format.is_none() && !self.profile_only => {
                let help = "write {}text or {}xml; -Rp prints the profile, -Rs the system";
                return Err(Fault::value(" needs [p|s]<text|xml>", help));
            }
            _ => self.result_format = format.or(self.result_format),
        }
        Ok(())
    }

    fn profile(&mut self, given: &Given<'a>, workload: Option<&str>) -> Result<(), Fault> {
        let class = ErrorClass::XmlIncompatible;
        if self.profile.is_some() {
            let help = "name one profile; it may have several time spans";
            return Err(Fault::option(" is given twice", help).of(class));
        }
        if let Some(workload) = workload {
            let what = format!(" does not go with {workload} before it");
            return Err(Fault::option(what, HELP_BESIDE_PROFILE).of(class));
        }
        self.profile = Some(given.clone());
        Ok(())
    }
}

/// The block size unless `-b` is given.
pub(super) const DEFAULT_BLOCK_SIZE: u32 = 65536;

const HELP_BESIDE_PROFILE: &str = "the profile states the workload: only -: -bs -C -d -R -v -vs -W -z, \
                                   Plumb's own options and targets go with it; change the rest in the \
                                   file";

fn beside_profile(given: &Given<'_>) -> Fault {
    let class = ErrorClass::XmlIncompatible;
    let what = match given.id {
        Id::Unknown => " is no option, and no option of the workload goes with -X",
        _ => " cannot be combined with -X",
    };
    Fault { at: At::Option, ..Fault::option(what, HELP_BESIDE_PROFILE).of(class) }
}

/// Seconds. A missing number reads as 0, which is seldom what was meant.
fn time(given: &Given<'_>, warnings: &mut Warnings) -> Result<u32, Fault> {
    let seconds = seconds(given.value)?;
    warnings.leftover(given, atoi(given.value).end);
    if given.value.is_empty() {
        let next = given.next_word().unwrap_or("10");
        let example = if next.starts_with(|c: char| c.is_ascii_digit()) { next } else { "10" };
        let (name, before) = (&given.name, given.before_value());
        warnings.add(
            given.index,
            format!("{name} without a value reads as 0: write {before}{example}"),
        );
    }
    Ok(seconds)
}

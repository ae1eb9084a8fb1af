//! What a sweep is to do, as flags or a plan file say it, and the plan that follows.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::axis::{Axis, Parameter};
use super::conditioning::PUBLISHED_WARM_UP_S;
use super::loads::check_loads;
use super::plan_error::PlanError;
use super::record::RunRecord;
use super::sweep::noise_elsewhere;
use super::{Access, Conditioning, Setting};
use crate::findings::Layout;
use crate::knee::{DeclaredCap, Options, Policy};

/// In which order settings are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOrder {
    /// Each repetition of all settings is a block, in a seeded random order of its own: drift does not align
    /// with an axis.
    #[default]
    Random,
    /// As the axes are given: the first outermost, the last innermost.
    AsGiven,
    /// By the number of outstanding I/Os, ascending.
    Sorted,
}

impl RunOrder {
    /// The word that documents and options use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::AsGiven => "as-given",
            Self::Sorted => "sorted",
        }
    }

    /// The order of a word.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        match word {
            "random" => Some(Self::Random),
            "as-given" => Some(Self::AsGiven),
            "sorted" => Some(Self::Sorted),
            _ => None,
        }
    }
}

/// What a sweep is to do. A plan file has these keys in TOML; flags have the same names. What is not said is
/// `None` or empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SweepOptions {
    /// The file or device.
    pub target: Option<String>,
    /// Axes, such as `o=1..32`.
    pub vary: Vec<String>,
    /// Parameters with one value, such as `b=8K`.
    pub set: Vec<String>,
    /// Seconds before each measurement.
    pub warmup: Option<u32>,
    /// Seconds of each measurement, at most.
    pub duration: Option<u32>,
    /// Seconds after it.
    pub cooldown: Option<u32>,
    /// Seconds between two runs in which the device is left alone.
    pub gap: Option<u32>,
    /// What is done before the first run: none, d0, pts-file or pts-device.
    pub conditioning: Option<Conditioning>,
    /// Bytes of the device that is filled for that; found out when the study begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<u64>,
    /// Runs of each setting.
    pub repetitions: Option<u32>,
    /// In which order.
    pub order: Option<RunOrder>,
    /// Seed of the order and of random offsets.
    pub seed: Option<u64>,
    /// Whether a reference setting is run at the start, after every ten runs and at the end.
    pub anchors: Option<bool>,
    /// Whether o is searched for the knee instead of run through.
    pub adaptive: Option<bool>,
    /// Whether runs take their whole duration.
    pub full_length: Option<bool>,
    /// Whether latencies are left unmeasured.
    pub no_latency: Option<bool>,
    /// How long it may take: `2h`, `45m`, `300s`.
    pub budget: Option<String>,
    /// Which mark of a curve is recommended.
    pub policy: Option<String>,
    /// Largest mean latency in milliseconds that is acceptable.
    #[serde(alias = "latency-budget")]
    pub latency_budget_ms: Option<f64>,
    /// Devices that back the target.
    pub ssds: Option<u32>,
    /// Copies that the volume keeps.
    pub copies: Option<u32>,
    /// Limits that are known, such as `1920iops`.
    pub cap: Vec<String>,
    /// As the flag: `anchors = false`. This and what follows is said in plan files, and kept in no request.
    #[serde(skip_serializing)]
    pub no_anchors: Option<bool>,
    /// A file of limits.
    #[serde(skip_serializing)]
    pub caps: Option<PathBuf>,
    /// A file that describes a simulated device.
    #[serde(skip_serializing)]
    pub simulate: Option<PathBuf>,
    /// The study's name.
    #[serde(skip_serializing)]
    pub id: Option<String>,
    /// Targets that may be overwritten.
    #[serde(skip_serializing)]
    pub destroy: Vec<PathBuf>,
}

/// Most runs of a plan.
const RUNS_MOST: u64 = 100_000;

impl SweepOptions {
    /// Reads a plan file.
    ///
    /// # Errors
    /// It is no TOML, has an unknown key, or says the same thing in two ways.
    pub fn of_toml(text: &str) -> Result<Self, PlanError> {
        let mut options: Self =
            toml::from_str(text).map_err(|error| PlanError::Toml { what: error.to_string() })?;
        if let Some(none) = options.no_anchors.take() {
            if options.anchors.is_some() {
                let what = "both `anchors` and `no-anchors` are in it".to_owned();
                return Err(PlanError::Toml { what });
            }
            options.anchors = Some(!none);
        }
        Ok(options)
    }

    /// These options where they say something, else `base`. An axis or a value of the same parameters takes
    /// the place of that in `base`.
    #[must_use]
    pub fn over(self, base: Self) -> Self {
        let name = |text: &String| text.split('=').next().unwrap_or_default().to_owned();
        let join = |own: Vec<String>, others: Vec<String>, also: &[String]| {
            // A pair takes the place of whatever changes one of its parameters.
            let meets = |one: &String, other: &String| {
                let (one, other) = (name(one), name(other));
                one.split(':').any(|word| other.split(':').any(|its| its == word))
            };
            let is_taken = |text: &String| {
                own.iter().any(|mine| meets(mine, text))
                    || also.iter().any(|mine| name(mine) == name(text))
            };
            let kept: Vec<String> = others.into_iter().filter(|text| !is_taken(text)).collect();
            kept.into_iter().chain(own).collect::<Vec<_>>()
        };
        let (varied, set) = (self.vary.clone(), self.set.clone());
        Self {
            target: self.target.or(base.target),
            vary: join(self.vary, base.vary, &set),
            set: join(self.set, base.set, &varied),
            warmup: self.warmup.or(base.warmup),
            duration: self.duration.or(base.duration),
            cooldown: self.cooldown.or(base.cooldown),
            gap: self.gap.or(base.gap),
            conditioning: self.conditioning.or(base.conditioning),
            device_bytes: self.device_bytes.or(base.device_bytes),
            repetitions: self.repetitions.or(base.repetitions),
            order: self.order.or(base.order),
            seed: self.seed.or(base.seed),
            anchors: self.anchors.or(base.anchors),
            adaptive: self.adaptive.or(base.adaptive),
            full_length: self.full_length.or(base.full_length),
            no_latency: self.no_latency.or(base.no_latency),
            budget: self.budget.or(base.budget),
            policy: self.policy.or(base.policy),
            latency_budget_ms: self.latency_budget_ms.or(base.latency_budget_ms),
            ssds: self.ssds.or(base.ssds),
            copies: self.copies.or(base.copies),
            cap: if self.cap.is_empty() { base.cap } else { self.cap },
            no_anchors: self.no_anchors.or(base.no_anchors),
            caps: self.caps.or(base.caps),
            simulate: self.simulate.or(base.simulate),
            id: self.id.or(base.id),
            destroy: if self.destroy.is_empty() { base.destroy } else { self.destroy },
        }
    }

    /// Numbers that nothing can be done with are a slip, not a wish.
    fn check_numbers(&self) -> Result<(), PlanError> {
        const HELP: &str = "write 1 or more, or leave it away";
        for (what, value) in [
            ("number of repetitions", self.repetitions),
            ("duration in seconds", self.duration),
            ("number of devices (ssds)", self.ssds),
            ("number of copies", self.copies),
        ] {
            if value == Some(0) {
                return Err(PlanError::Value { what, value: "0".to_owned(), help: HELP });
            }
        }
        match self.latency_budget_ms {
            Some(ms) if !(ms.is_finite() && ms > 0.0) => Err(PlanError::Value {
                what: "latency budget in milliseconds",
                value: ms.to_string(),
                help: "write a positive number, such as 1.5",
            }),
            _ => Ok(()),
        }
    }

    /// The plan that they mean.
    ///
    /// # Errors
    /// They mean none; why.
    pub fn plan(&self) -> Result<SweepPlan, PlanError> {
        self.check_numbers()?;
        let conditioning = self.conditioning.unwrap_or_default();
        let usual = if conditioning == Conditioning::D0 { PUBLISHED_WARM_UP_S } else { 10 };
        let mut base = Setting {
            warm_up_s: self.warmup.unwrap_or(usual),
            measured_s: self.duration.unwrap_or(60),
            cool_down_s: self.cooldown.unwrap_or(0),
            latency: !self.no_latency.unwrap_or(false),
            ..Setting::default()
        };
        let mut set: Vec<Parameter> = Vec::new();
        for text in &self.set {
            let axis = Axis::parse_value(text)?;
            if axis.values.len() != 1 {
                return Err(PlanError::Several { text: text.clone() });
            }
            axis.apply(0, &mut base).map_err(|_| PlanError::Several { text: text.clone() })?;
            if let Some(twice) = axis.parameters.iter().find(|parameter| set.contains(parameter)) {
                let name = twice.name().to_owned();
                return Err(PlanError::Again { name, again: "set to something else" });
            }
            set.extend(axis.parameters);
        }
        let axes: Vec<Axis> = self.vary.iter().map(|t| Axis::parse(t)).collect::<Result<_, _>>()?;
        let names: Vec<&str> =
            axes.iter().flat_map(|axis| axis.parameters.iter().map(Parameter::name)).collect();
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                return Err(PlanError::Twice { name: (*name).to_owned() });
            }
            if set.iter().any(|parameter| parameter.name() == *name) {
                return Err(PlanError::Again { name: (*name).to_owned(), again: "varied" });
            }
        }
        if axes.is_empty() {
            return Err(PlanError::Nothing);
        }
        let repetitions = self.repetitions.unwrap_or(3);
        let runs = axes
            .iter()
            .try_fold(u64::from(repetitions), |n, a| n.checked_mul(a.values.len() as u64));
        let runs = runs.unwrap_or(u64::MAX);
        if runs > RUNS_MOST {
            return Err(PlanError::Runs { runs });
        }
        let settings = cross(&base, &axes);
        for setting in &settings {
            check(setting)?;
        }
        check_loads(&settings)?;
        let adaptive = self.adaptive.unwrap_or(false);
        if adaptive && !axes.iter().any(|axis| axis.is_outstanding() || axis.is_threads()) {
            return Err(PlanError::Adaptive);
        }
        match self.order.unwrap_or_default() {
            RunOrder::Random => {}
            order if adaptive => {
                return Err(PlanError::AdaptiveOrder { order: order.keyword() });
            }
            _ => {}
        }
        let wrong =
            |what, value: &str, help| PlanError::Value { what, value: value.to_owned(), help };
        if conditioning == Conditioning::PtsFile
            && settings.first().is_none_or(|setting| setting.file_bytes.is_none())
        {
            return Err(wrong(
                "level of conditioning without a file of known size",
                conditioning.keyword(),
                "say --set size=64G",
            ));
        }
        let policy = match self.policy.as_deref() {
            None => Policy::default(),
            Some(word) => Policy::of_keyword(word)
                .ok_or_else(|| wrong("policy", word, "write throughput, balanced or latency"))?,
        };
        let budget_s = match self.budget.as_deref() {
            None => None,
            Some(text) => {
                Some(seconds(text).ok_or_else(|| wrong("time", text, "write 2h, 45m or 300s"))?)
            }
        };
        let caps = self
            .cap
            .iter()
            .map(|text| {
                DeclaredCap::parse(text)
                    .map_err(|_| wrong("limit", text, "write 1920iops or 450MiB/s"))
            })
            .collect::<Result<_, _>>()?;
        Ok(SweepPlan {
            base,
            axes,
            settings,
            repetitions,
            order: self.order.unwrap_or_default(),
            gap_s: self.gap.unwrap_or(0),
            conditioning,
            device_bytes: self.device_bytes,
            seed: self.seed.unwrap_or(1),
            anchors: self.anchors.unwrap_or(true),
            adaptive,
            early_end: !self.full_length.unwrap_or(false),
            budget_s,
            policy,
            latency_budget_ms: self.latency_budget_ms,
            devices: self.ssds,
            copies: self.copies.unwrap_or(1),
            caps,
        })
    }
}

/// A sweep that can be run.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepPlan {
    /// What every setting has in common.
    pub base: Setting,
    /// What varies.
    pub axes: Vec<Axis>,
    /// All settings: the first axis outermost, the last innermost.
    pub settings: Vec<Setting>,
    /// Runs of each setting.
    pub repetitions: u32,
    /// In which order.
    pub order: RunOrder,
    /// Seconds between two runs in which the device is left alone.
    pub gap_s: u32,
    /// What is done before the first run.
    pub conditioning: Conditioning,
    /// Bytes of the device that is filled for that.
    pub device_bytes: Option<u64>,
    /// Seed of every random choice.
    pub seed: u64,
    /// Whether a reference setting shows drift.
    pub anchors: bool,
    /// Whether o is searched, or threads where o is not varied by itself.
    pub adaptive: bool,
    /// Whether runs end when they are steady and precise.
    pub early_end: bool,
    /// Seconds that it may take.
    pub budget_s: Option<f64>,
    /// Which mark is recommended.
    pub policy: Policy,
    /// Largest mean latency in milliseconds that is acceptable.
    pub latency_budget_ms: Option<f64>,
    /// S.
    pub devices: Option<u32>,
    /// c.
    pub copies: u32,
    /// Known limits.
    pub caps: Vec<DeclaredCap>,
}

impl SweepPlan {
    /// How a curve of these settings is judged among the runs of its study.
    #[must_use]
    pub fn knee_options(&self, setting: &Setting, runs: &[RunRecord]) -> Options {
        Options {
            threads: Some(f64::from(setting.threads)),
            files: Some(f64::from(setting.files)),
            block_bytes: Some(setting.block_bytes as f64),
            policy: self.policy,
            searched: self.adaptive,
            budget_ms: self.latency_budget_ms,
            caps: self.caps.clone(),
            noise: noise_elsewhere(setting, runs),
        }
    }

    /// What is behind the target.
    #[must_use]
    pub fn layout(&self, setting: &Setting) -> Layout {
        Layout {
            devices: self.devices.map(f64::from),
            copies: Some(f64::from(self.copies)),
            write_share: Some(setting.write_share()),
        }
    }
}

/// All combinations.
fn cross(base: &Setting, axes: &[Axis]) -> Vec<Setting> {
    let mut settings = vec![base.clone()];
    for axis in axes {
        settings = settings
            .iter()
            .flat_map(|setting| {
                (0..axis.values.len()).map(|index| {
                    let mut setting = setting.clone();
                    axis.apply(index, &mut setting).expect("values were checked");
                    setting
                })
            })
            .collect();
    }
    settings
}

fn check(setting: &Setting) -> Result<(), PlanError> {
    if setting.access == Access::Sequential && setting.threads > 1 {
        return Err(PlanError::Overlap { setting: setting.short() });
    }
    if setting.access == Access::Apart && setting.threads > 1 && setting.file_bytes.is_none() {
        return Err(PlanError::Apart { setting: setting.short() });
    }
    Ok(())
}

/// `2h`, `45m`, `300s`, `1h30m`; a bare number counts seconds.
#[must_use]
pub fn seconds(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().ok()?;
        let unit = rest[end..].chars().next();
        let scale = match unit {
            None | Some('s') => 1.0,
            Some('m') => 60.0,
            Some('h') => 3600.0,
            Some('d') => 86_400.0,
            Some(_) => return None,
        };
        total += number * scale;
        rest = &rest[end + unit.map_or(0, char::len_utf8)..];
    }
    (total > 0.0).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(vary: &[&str], set: &[&str]) -> SweepOptions {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        SweepOptions { vary: own(vary), set: own(set), ..SweepOptions::default() }
    }

    #[test]
    fn the_published_loops_in_their_order() {
        let axes = ["w=0,10", "access=random,interlocked", "b=8K,64K", "o=1,2", "t=1,2"];
        let plan = options(&axes, &[]).plan().expect("a plan");
        assert_eq!(plan.settings.len(), 32);
        let first: Vec<String> = plan.settings[..5].iter().map(Setting::short).collect();
        assert_eq!(
            first,
            [
                "t1 o1 b8K r w0",
                "t2 o1 b8K r w0",
                "t1 o2 b8K r w0",
                "t2 o2 b8K r w0",
                "t1 o1 b64K r w0"
            ]
        );
        assert_eq!(plan.settings[31].short(), "t2 o2 b64K si w10");
    }

    #[test]
    fn a_file_does_what_flags_do_and_flags_go_first() {
        let file = SweepOptions::of_toml(
            "target = \"f\"\nvary = [\"o=1..4\", \"t=1,2\"]\nset = [\"b=4K\", \"w=0\"]\norder = \"as-given\"\n\
             repetitions = 1\nbudget = \"1h30m\"\n",
        )
        .expect("a plan file");
        let flags =
            SweepOptions { duration: Some(5), ..options(&["t=4,8", "b=8K,64K"], &["w=50"]) };
        let both = flags.over(file);
        assert_eq!(both.vary, ["o=1..4", "t=4,8", "b=8K,64K"]);
        assert_eq!(both.set, ["w=50"]);
        let plan = both.plan().expect("a plan");
        assert_eq!((plan.settings.len(), plan.repetitions), (16, 1));
        assert_eq!((plan.budget_s, plan.base.measured_s), (Some(5400.0), 5));
        assert_eq!(plan.order, RunOrder::AsGiven);
        // A pair for single parameters, and the other way round.
        let over = |file: &[&str], flag: &[&str]| options(flag, &[]).over(options(file, &[])).vary;
        let pair = "t:o=1:8,2:4";
        assert_eq!(over(&["o=1..6", "b=4K,8K", "t=4,8"], &[pair]), ["b=4K,8K", pair]);
        assert_eq!(over(&[pair, "b=4K,8K"], &["o=1..3"]), ["b=4K,8K", "o=1..3"]);
        let error = SweepOptions::of_toml("varry = []").expect_err("a slip").to_string();
        assert!(error.contains("varry"), "{error}");
    }

    #[test]
    fn a_file_has_the_names_of_the_flags() {
        let file = SweepOptions::of_toml(
            "vary = [\"o=1,2\"]\nlatency-budget = 1.5\nno-anchors = true\ncaps = \"limits.toml\"\n\
             simulate = \"device.toml\"\nid = \"night\"\ndestroy = [\"/dev/x\"]\n",
        )
        .expect("a plan file");
        assert_eq!((file.latency_budget_ms, file.anchors), (Some(1.5), Some(false)));
        let own = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        assert_eq!(own(&file.caps).as_deref(), Some("limits.toml"));
        assert_eq!(own(&file.simulate).as_deref(), Some("device.toml"));
        assert_eq!(file.id.as_deref(), Some("night"));
        assert_eq!(file.destroy, [PathBuf::from("/dev/x")]);
        // What is asked for again on going on is the plan, and no more.
        let kept = serde_json::to_value(&file).expect("an object");
        for key in ["no-anchors", "caps", "simulate", "id", "destroy"] {
            assert_eq!(kept.get(key), None, "{key}");
        }
        assert_eq!(kept["latency-budget-ms"], 1.5);
        // Flags go first.
        let flags = SweepOptions { id: Some("day".into()), ..options(&[], &[]) };
        assert_eq!(flags.over(file).id.as_deref(), Some("day"));
        for both in
            ["anchors = true\nno-anchors = true", "latency-budget = 1.0\nlatency-budget-ms = 1.0"]
        {
            SweepOptions::of_toml(both).expect_err(both);
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let refused = |vary: &[&str], set: &[&str]| {
            options(vary, set).plan().expect_err("no plan").to_string()
        };
        assert!(refused(&[], &[]).contains("nothing"));
        assert!(refused(&["o=1,2", "o=3"], &[]).contains("twice"));
        assert!(refused(&["o=1,2"], &["t=1,2"]).contains("several"));
        let both = refused(&["o=1,2", "b=4K,8K"], &["b=64K"]);
        assert_eq!(both, "`b` is set, and varied too");
        assert!(refused(&["t:o=1:2,2:1"], &["outstanding=4"]).contains("`o` is set"));
        assert!(refused(&["o=1,2"], &["b=4K", "block-size=8K"]).contains("something else"));
        assert!(refused(&["o=1,2"], &["colour=red"]).contains("what to set"));
        assert!(refused(&["colour=red"], &[]).contains("what to vary"));
        assert!(refused(&["t=1,2"], &["access=sequential"]).contains("same blocks"));
        assert!(refused(&["t=1,2"], &["access=apart"]).contains("known size"));
        assert!(refused(&["o=1..9999", "t=1..64"], &[]).contains("runs are planned"));
        let adaptive = SweepOptions { adaptive: Some(true), ..options(&["b=4K,8K"], &[]) };
        assert!(adaptive.plan().expect_err("no o").to_string().contains("searches o"));
        for order in [RunOrder::Sorted, RunOrder::AsGiven] {
            let both = SweepOptions {
                order: Some(order),
                adaptive: Some(true),
                ..options(&["o=1..9"], &[])
            };
            let error = both.plan().expect_err("an order").to_string();
            assert!(error.contains(&format!("cannot be {}", order.keyword())), "{error}");
        }
        let error = refused(&["engine=uring,foo"], &[]);
        assert!(error.contains("engine=foo") && error.contains("'foo' is no value"), "{error}");
        assert!(refused(&["o=1,2"], &["engine=foo"]).contains("engine=foo"));
        let error = refused(&["b=4K,8K,4096"], &[]);
        assert!(error.contains("`4096` is `4K` again"), "{error}");
        assert!(refused(&["access=random,r"], &[]).contains("`r` is `random` again"));
        assert!(refused(&["t=1,2,1"], &[]).contains("`1` twice"));
        let budget = SweepOptions { budget: Some("soon".into()), ..options(&["t=1,2"], &[]) };
        assert!(budget.plan().expect_err("no time").to_string().contains("soon"));
    }

    #[test]
    fn numbers_that_mean_nothing_are_no_plan() {
        for (key, says) in [
            ("repetitions = 0", "`0` is no number of repetitions"),
            ("duration = 0", "`0` is no duration in seconds"),
            ("copies = 0", "`0` is no number of copies"),
            ("ssds = 0", "`0` is no number of devices"),
            ("latency-budget-ms = 0.0", "`0` is no latency budget"),
            ("latency-budget-ms = nan", "`NaN` is no latency budget"),
        ] {
            let text = format!("vary = [\"o=1,2\"]\n{key}\n");
            let file = SweepOptions::of_toml(&text).expect("a plan file");
            let error = file.plan().expect_err(key).to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(seconds("2h"), Some(7200.0));
        assert_eq!(seconds("1h30m"), Some(5400.0));
        assert_eq!(seconds("90"), Some(90.0));
        for text in ["", "h", "1y", "0s", "-1s"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}

//! `plumb space optimize`: Storage Tiers Optimization of a virtual disk.

mod reports;
mod schedule;
mod seen;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plumb_tier::optimizer::{Plan, TierName};
use plumb_tier::pool::{
    self, Ask, GivesWay, OptimizeLimits, PoolError, RATE_LEAST, REPORT_TEXT, RegisteredPool,
    Registry, TieringStore, unix_seconds,
};
use plumb_tier::tier_report::{MoveStop, Waits};
use plumb_tier::{Optimization, OptimizeSettings};
use plumb_units::Bytes;
use serde_json::{Value, json};

pub(super) use reports::report;
pub(crate) use seen::Seen;

use schedule::{Schedule, Waiting};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::report::{self, Failure, Reply};

/// For clap.
pub(super) fn commands() -> [Command; 2] {
    let seconds = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("SECONDS")
            .default_value(default)
            .value_parser(value_parser!(u32).range(1..))
            .help(help)
    };
    let size = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("SIZE").value_parser(report::size).help(help)
    };
    [
        Command::new("optimize")
            .about("Move what is hot to the Performance tier of a virtual disk, and what is cold down")
            .args([
                report::vdisk_argument(),
                Arg::new("mode")
                    .long("mode")
                    .value_name("MODE")
                    .default_value("manual")
                    .value_parser(["manual", "scheduled", "continuous", "advise"])
                    .help("Once and now; each day at a time; a trickle through the day; nothing but a plan"),
                Arg::new("at")
                    .long("at")
                    .value_name("HH:MM")
                    .default_value("01:00")
                    .value_parser(schedule::time_of_day)
                    .help("Local time of the scheduled optimization"),
                Arg::new("every")
                    .long("every")
                    .value_name("MINUTES")
                    .default_value("15")
                    .value_parser(value_parser!(u16).range(1..=1440))
                    .help("From one trickle of continuous mode to the next"),
                Arg::new("runs")
                    .long("runs")
                    .value_name("N")
                    .value_parser(value_parser!(u32).range(1..))
                    .help("End after so many scheduled or continuous optimizations [default: never]"),
                Arg::new("print-unit")
                    .long("print-unit")
                    .action(ArgAction::SetTrue)
                    .help("Print a unit for systemd that runs this mode, and do nothing"),
                Arg::new("advise")
                    .long("advise")
                    .action(ArgAction::SetTrue)
                    .conflicts_with("mode")
                    .help("The same as --mode advise"),
                seconds("run-limit", "13500", "End after so long; the next run goes on"),
                Arg::new("movers")
                    .long("movers")
                    .value_name("N")
                    .default_value("8")
                    .value_parser(value_parser!(u32).range(1..=8))
                    .help("Extents under way at a time"),
                size("max-rate", "Bytes moved per second, at most [default: 1G]").value_parser(rate),
                Arg::new("priority")
                    .long("priority")
                    .value_name("PRIORITY")
                    .default_value("low")
                    .value_parser(["low", "normal"])
                    .help("Slower while requests suffer; or as fast as the limits allow, whatever requests take"),
                Arg::new("max-iops")
                    .long("max-iops")
                    .value_name("N")
                    .value_parser(value_parser!(u32).range(1..))
                    .help("I/Os of moves per second on all disks together, at most [default: no limit]"),
                size("max-moved", "Bytes moved in all, at most: the movement budget"),
                size("max-promoted", "Bytes written to the Performance tier, those of all copies, at most: the endurance budget"),
                Arg::new("reserve")
                    .long("reserve")
                    .value_name("PERCENT")
                    .default_value("0")
                    .value_parser(value_parser!(u8).range(0..=50))
                    .help("Share of the Performance tier to keep free for new data"),
                Arg::new("cancel")
                    .long("cancel")
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all(["mode", "advise", "print-unit", "at", "every", "runs"])
                    .conflicts_with_all(OWN_SETTINGS)
                    .help("End the optimization that another program makes, and begin none"),
                report::json_option(),
            ])
            .after_help(
                "It goes by the heat that loads on the virtual disk left (`plumb run space:POOL/VDISK`), and by pins \
                 (`plumb tier pin`). It can be ended at any time: what has moved stays where it is then, nothing is \
                 lost, and the next run goes on. While another program has the pool, that program is asked to do it, \
                 within the same budgets and limits; `plumb space report --last` has the result, and `--cancel` ends it. A load that wants the pool \
                 meanwhile ends it; then the report says so.\n\nScheduled and continuous \
                 mode stay in the foreground and hold the pool only while extents move; budgets and limits are those of each \
                 optimization. Continuous mode moves what clears twice the bar, at a rate that takes at most 5 % of \
                 the time of the disks, for at most 900 s unless told otherwise.\n\n\
                 Exit status: 0 when it ended by itself, 5 when a signal or a load ended it. Scheduled and continuous mode end by a signal, with 0.\n\nFor example:\n  \
                 plumb space optimize tank/data --run-limit 3600\n  \
                 plumb space optimize tank/data --mode scheduled --at 01:00 --print-unit",
            ),
        reports::command(),
    ]
}

/// A pool that was started, with what is kept of its virtual disks; the one that is meant.
pub(crate) struct Tiered {
    pub(crate) open: pool::OpenPool,
    pub(crate) store: TieringStore,
    pub(crate) pool: String,
    /// As it was typed.
    pub(crate) name: String,
    pub(crate) nth: u32,
    pub(crate) id: u128,
}

impl Tiered {
    /// Starts the pool of `POOL/VDISK`.
    ///
    /// # Errors
    /// When it cannot be started, or has no such virtual disk with two tiers.
    pub(crate) fn open(matches: &ArgMatches) -> Result<Self, Failure> {
        let name = report::text(matches, "vdisk");
        let (pool, vdisk) = report::split(&name)?;
        let registry = report::registry();
        let found = registry.find(&pool)?;
        Self::open_found(&registry, &found, (name, vdisk))
    }

    /// The same, of a pool that was found.
    fn open_found(
        registry: &Registry,
        found: &RegisteredPool,
        (name, vdisk): (String, String),
    ) -> Result<Self, Failure> {
        let (pool, store) = (found.name.clone(), TieringStore::of(registry, found));
        let open = pool::open(found, Vec::new(), (1, 4096));
        let mut open = pool::note_start(registry, found, open)?;
        let (nth, own) = report::find(open.engine.config(), &pool, &vdisk)?;
        if own.tiers.len() < 2 {
            return Err(report::VdiskError::OneTier { name }.into());
        }
        let id = own.id;
        pool::restore_tiering(&mut open.engine, &store)?;
        Ok(Self { open, store, pool, name, nth, id })
    }

    /// Keeps what is to be kept, and ends the pool.
    ///
    /// # Errors
    /// When that cannot be.
    pub(crate) fn end(mut self, keep: bool) -> Result<(), Failure> {
        let kept = self.open.engine.kept(self.nth);
        let outcome = if keep { self.store.keep(&kept) } else { Ok(()) };
        self.open.end()?;
        Ok(outcome?)
    }

    /// What the options ask for; of a trickle what they leave open is its own.
    fn settings(&self, limits: &OptimizeLimits, trickle: bool) -> OptimizeSettings {
        self.open.engine.settings_within(self.nth, trickle, limits)
    }

    /// Optimizes until that is done, or a load wants the pool, and keeps the report; with it, as it is kept.
    ///
    /// # Errors
    /// When the report cannot be kept, or the pool stopped.
    pub(crate) fn optimize(
        &mut self,
        settings: &OptimizeSettings,
        mut way: Option<&mut GivesWay>,
    ) -> Result<(Optimization, Value), Failure> {
        let nth = self.nth;
        self.open.tell_while_working(&report::registry(), &self.store);
        self.open.engine.optimize(nth, settings, unix_seconds() as f64);
        let stop = signalled();
        let stops = || stop.load(Ordering::Relaxed);
        let mut wanted = || way.as_mut().is_some_and(|way| way.is_wanted());
        let store = &self.store;
        let mut noted: Option<Instant> = None;
        self.open.work_until(|engine| {
            // The store looks at a file for each: not in every turn of the engine.
            if noted.is_none_or(|at| at.elapsed() >= NOTED_EVERY) {
                noted = Some(Instant::now());
                // A note that cannot be written is missed when the program is killed, and only then.
                let _ = store.note_under_way(engine);
            }
            stops() || wanted() || !engine.optimizing(nth)
        });
        if self.open.engine.optimizing(nth) {
            match stops() {
                true => self.open.engine.cancel_optimization(nth),
                false => self.open.engine.interrupt_optimization(nth),
            }
            self.open.work_until(|engine| !engine.optimizing(nth));
        }
        if let Some(source) = self.open.engine.halted() {
            return Err(PoolError::Halted { name: self.pool.clone(), source }.into());
        }
        let done = self.open.engine.take_optimization(nth);
        let done = done.expect("an optimization that has ended has a result");
        let warning = self.store.warning_now(&self.open.engine, nth);
        let kept = self.store.keep_report(self.id, unix_seconds(), &done, warning.as_ref())?;
        Ok((done, kept))
    }
}

/// Budgets and limits that were typed; the others are as by default, or as a trickle has them.
fn limits(matches: &ArgMatches) -> OptimizeLimits {
    let is_typed = |name: &str| typed(matches, &[name]).next().is_some();
    let number = |name: &str| matches.get_one::<u32>(name).copied().filter(|_| is_typed(name));
    let bytes = |name: &str| matches.get_one::<u64>(name).copied();
    OptimizeLimits {
        run_limit_s: number("run-limit"),
        movers: number("movers"),
        normal_priority: matches.get_one::<String>("priority").is_some_and(|own| own == "normal"),
        max_rate: bytes("max-rate"),
        max_iops: number("max-iops"),
        max_moved: bytes("max-moved"),
        max_promoted: bytes("max-promoted"),
        reserve_percent: *matches.get_one("reserve").expect("it has a default"),
    }
}

/// Set by the first signal that asks for an end; the second one ends the process at once.
pub(super) fn signalled() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        // Without it a signal ends the process, which is safe as well.
        let _ = flag::register_conditional_default(signal, Arc::clone(&stop));
        let _ = flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// `optimize`.
pub(super) fn optimize(matches: &ArgMatches) -> report::Outcome {
    if matches.get_flag("cancel") {
        return cancel(matches);
    }
    let mode = match matches.get_flag("advise") {
        true => "advise".to_owned(),
        false => report::text(matches, "mode"),
    };
    of_this_mode(matches, &mode)?;
    let schedule = match mode.as_str() {
        "scheduled" => Schedule::Daily(*matches.get_one::<i64>("at").expect("it has a default")),
        "continuous" => {
            let minutes = *matches.get_one::<u16>("every").expect("it has a default");
            Schedule::Every(u64::from(minutes) * 60)
        }
        "advise" if !matches.get_flag("print-unit") => {
            let mut own = Seen::open(matches)?;
            let slots = own.performance_slots();
            let extents = (own.extent_bytes(), own.copies());
            let of = Extents { bytes: extents.0, copies: extents.1 };
            budgets_of(&of, &limits(matches))?;
            let settings = limits(matches).settings(None, extents, slots);
            let planned = own.plan(&settings);
            let reply = own.dated(advice(&own, &planned));
            own.end()?;
            return Ok(reply);
        }
        _ if matches.get_flag("print-unit") => {
            return Err(report::VdiskError::NoUnit { mode }.into());
        }
        _ => return once(matches, false),
    };
    if matches.get_flag("print-unit") {
        return print_unit(matches, schedule);
    }
    keep_on(matches, schedule)
}

/// Options that only these modes have.
const MODES_OF: [(&str, &[&str]); 3] =
    [("at", &["scheduled"]), ("every", &["continuous"]), ("runs", &["scheduled", "continuous"])];

/// Who names a time of day and no mode does not want it done now.
fn of_this_mode(matches: &ArgMatches, mode: &str) -> Result<(), report::VdiskError> {
    let other = |(option, modes): &&(&str, &[&str])| {
        !modes.contains(&mode) && typed(matches, &[*option]).next().is_some()
    };
    match MODES_OF.iter().find(other) {
        None => Ok(()),
        Some((option, modes)) => Err(report::VdiskError::OtherMode {
            option: (*option).to_owned(),
            mode: mode.to_owned(),
            modes: modes.join(" or --mode "),
        }),
    }
}

/// What was typed, and not the defaults of whatever version the unit is to run.
fn typed<'a>(matches: &'a ArgMatches, options: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let is = move |option: &&str| matches.value_source(option) == Some(ValueSource::CommandLine);
    options.iter().copied().filter(is)
}

/// A unit of this mode, with all that is to be kept to.
fn print_unit(matches: &ArgMatches, schedule: Schedule) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    report::split(&name)?;
    let program = std::env::current_exe()
        .map_or_else(|_| "plumb".to_owned(), |path| path.display().to_string());
    let program = schedule::word(&program);
    // A service has none of this user's variables and home: where the pools are listed is said, unless it looks there by itself.
    let folder = report::registry().folder().to_owned();
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let pools = (folder != pool::Registry::of_root().folder()).then_some(folder);
    let mut how = match schedule {
        Schedule::Daily(at) => format!("scheduled --at {:02}:{:02}", at / 3600, at / 60 % 60),
        Schedule::Every(seconds) => format!("continuous --every {}", seconds / 60),
    };
    for option in typed(matches, &OWN_SETTINGS).chain(typed(matches, &["runs"])) {
        let values = matches.get_raw(option).into_iter().flatten();
        values.for_each(|value| how.push_str(&format!(" --{option} {}", value.display())));
    }
    let command = format!("{program} space optimize {name} --mode {how}");
    let text = schedule::unit(&name, &command, pools.as_deref());
    Ok(Reply { json: json!({ "vdisk": name, "unit": text }), text, status: 0 })
}

/// Optimizes whenever that is due, until a signal or so many runs end it.
fn keep_on(matches: &ArgMatches, schedule: Schedule) -> report::Outcome {
    // What is wrong with the name, or a budget, is told now, not at night.
    let name = report::text(matches, "vdisk");
    budgets_of(&looked(&name)?.2, &limits(matches))?;
    let most = matches.get_one::<u32>("runs").copied();
    let (stop, mut waiting) = (signalled(), Waiting::new(schedule));
    let mut done: u32 = 0;
    let mut failed: Option<Failure> = None;
    while !stop.load(Ordering::Relaxed) && most.is_none_or(|most| done < most) {
        if !waiting.is_due(schedule::local(), unix_seconds()) {
            std::thread::sleep(schedule::LOOK);
            continue;
        }
        done += 1;
        // A run that fails is not the last one.
        match once(matches, matches!(schedule, Schedule::Every(_))) {
            Ok(reply) => eprint!("{}", reply.text),
            Err(error) => {
                eprintln!("plumb: optimization {done}: {error}");
                failed = Some(error);
            }
        }
    }
    match failed.filter(|_| most == Some(done)) {
        Some(error) => Err(error),
        None => {
            let plural = if done == 1 { "" } else { "s" };
            let text = format!("virtual disk {name}: {done} optimization{plural}\n");
            Ok(Reply { json: json!({ "vdisk": name, "runs": done }), text, status: 0 })
        }
    }
}

/// Pool and number of a virtual disk with two tiers, without starting anything.
pub(crate) fn look(name: &str) -> Result<(pool::RegisteredPool, u16), Failure> {
    let (found, nth, _) = looked(name)?;
    Ok((found, nth))
}

/// Whether its budgets let a virtual disk be optimized at all.
fn budgets_of(of: &Extents, limits: &OptimizeLimits) -> Result<(), Failure> {
    Ok(limits.admit_a_move(of.bytes, of.copies).map_err(PoolError::from)?)
}

/// What a virtual disk is made of.
struct Extents {
    bytes: u64,
    copies: u8,
}

/// The same with what its extents are.
fn looked(name: &str) -> Result<(pool::RegisteredPool, u16, Extents), Failure> {
    let (pool, vdisk) = report::split(name)?;
    let found = report::registry().find(&pool)?;
    let look = pool::look(Some(found.id), &found.disks)?;
    let (nth, own) = report::find(&look.config, &pool, &vdisk)?;
    if own.tiers.len() < 2 {
        return Err(report::VdiskError::OneTier { name: name.to_owned() }.into());
    }
    let extents = Extents { bytes: look.config.extent_bytes.into(), copies: own.copies };
    Ok((found, u16::try_from(nth).unwrap_or(u16::MAX), extents))
}

/// Budgets and limits: what a unit keeps to, and a program that has the pool is told.
const OWN_SETTINGS: [&str; 8] = [
    "run-limit",
    "movers",
    "priority",
    "max-rate",
    "max-iops",
    "max-moved",
    "max-promoted",
    "reserve",
];

/// A rate that moves can go on with.
fn rate(text: &str) -> Result<u64, String> {
    let bytes = report::size(text)?;
    match bytes {
        ..RATE_LEAST => Err("it must be at least 64K: a move goes piece by piece".to_owned()),
        bytes => Ok(bytes),
    }
}

/// Optimizes now, or has whoever has the pool do it.
fn once(matches: &ArgMatches, trickle: bool) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    let (found, nth, extents) = looked(&name)?;
    let limits = limits(matches);
    budgets_of(&extents, &limits)?;
    if pool::is_in_use(&found) && ask(matches, &found, (nth, trickle), &limits)? {
        let text = format!(
            "the program that has pool {} was asked to optimize {name}; plumb space report {name} --last has what came of \
             it\n",
            found.name
        );
        return Ok(Reply { json: json!({ "vdisk": name, "asked": true }), text, status: 0 });
    }
    // Before the pool is had, and until it is let go: who wants it meanwhile knows whom to ask.
    let mut way = GivesWay::begin(&report::registry(), &found.name);
    let mut own = Tiered::open(matches)?;
    let settings = own.settings(&limits, trickle);
    let (done, mut json) = own.optimize(&settings, way.as_mut())?;
    let told = json.as_object_mut().and_then(|json| json.remove(REPORT_TEXT));
    let told = told.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut text = format!("virtual disk {}\n\n{told}", own.name);
    for (why, count) in &done.refused {
        text.push_str(&format!("{count} extents stayed where they are: {}\n", why.name()));
    }
    let stop = done.report.facts.moves.stop;
    let cancelled = matches!(stop, MoveStop::Cancelled | MoveStop::Load);
    own.end(true)?;
    Ok(Reply { json, text, status: if cancelled { PARTIAL } else { 0 } })
}

/// Has whoever has the pool end its optimization.
fn cancel(matches: &ArgMatches) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    let (found, nth) = look(&name)?;
    match pool::ask_cancel(&report::registry(), &found, nth) {
        Err(PoolError::NotInUse { .. }) => {
            Err(report::VdiskError::NotOptimized { name, pool: found.name }.into())
        }
        Err(PoolError::NoAnswer { .. }) => {
            let owner = pool::owner(&found).unwrap_or_else(|| "another program".to_owned());
            let remedy = "it ends no optimization when asked: wait until it has ended".to_owned();
            Err(report::VdiskError::PoolInUse { pool: found.name, owner, remedy }.into())
        }
        asked => {
            asked?;
            let text = format!(
                "the optimization of {name} ends, and what has moved stays where it is; plumb space report {name} --last has what \
                 came of it\n"
            );
            Ok(Reply { json: json!({ "vdisk": name, "cancelled": true }), text, status: 0 })
        }
    }
}

/// Asks the program that has the pool to optimize within limits; `false` when it ended before it took the wish: the pool is
/// free now.
fn ask(
    matches: &ArgMatches,
    found: &RegisteredPool,
    (nth, trickle): (u16, bool),
    limits: &OptimizeLimits,
) -> Result<bool, Failure> {
    let registry = report::registry();
    let asked = match (limits.is_default(), trickle) {
        // Programs of versions before know these.
        (true, false) => pool::ask(&registry, found, Ask::Optimize(nth)),
        (true, true) => pool::ask(&registry, found, Ask::Trickle(nth)),
        (false, _) => pool::ask_within(&registry, found, (nth, trickle), limits),
    };
    match asked {
        Err(PoolError::NotInUse { .. }) => Ok(false),
        Err(PoolError::NoAnswer { .. }) => {
            let owner = pool::owner(found).unwrap_or_else(|| "another program".to_owned());
            let options: Vec<&str> = typed(matches, &OWN_SETTINGS).collect();
            let remedy = match limits.is_default() {
                true => "it does not optimize when asked: wait until it has ended".to_owned(),
                false => format!(
                    "it does not optimize within limits when asked: leave out --{}, or wait until it has ended",
                    options.join(" and --")
                ),
            };
            Err(report::VdiskError::PoolInUse { pool: found.name.clone(), owner, remedy }.into())
        }
        other => Ok(other.map(|()| true)?),
    }
}

/// Exit status when a part of the work is left.
const PARTIAL: u8 = 5;
/// How often the store is asked to note what is under way.
const NOTED_EVERY: Duration = Duration::from_secs(1);

/// What a plan says.
fn advice(own: &Seen, planned: &Plan) -> Reply {
    let tiers = [TierName::Performance, TierName::Capacity];
    let [up, down] = tiers.map(|to| planned.within_budget(to));
    let wanted = tiers.map(|to| planned.count(to));
    let bytes = |extents: u64| Bytes(extents.saturating_mul(own.extent_bytes()));
    let percent = |part: u64| match planned.ios {
        0 => "-".to_owned(),
        ios => format!("{:.1} %", 100.0 * part as f64 / ios as f64),
    };
    let worth = own.worth();
    let mut text = format!(
        "virtual disk {}: {} would move up, {} down; nothing was moved\n\
         host I/Os on the Performance tier: {} now, {} then\n\
         a move is worth it that gains {:.1} I/Os or more ({})\n",
        own.name(),
        bytes(up),
        bytes(down),
        percent(planned.ios_before),
        percent(planned.ios_after),
        worth.break_even(),
        worth.basis.name()
    );
    if planned.budget_spent {
        let least = match planned.least {
            None => String::new(),
            Some(least) => format!(
                "; the least that moves an extent is --max-moved {} and --max-promoted {}",
                bytes(least.moved),
                bytes(least.promoted.saturating_mul(own.copies().into()))
            ),
        };
        text.push_str(&format!(
            "without a budget {} would move up, {} down{least}\n",
            bytes(wanted[0]),
            bytes(wanted[1])
        ));
    }
    let waits = Waits::of(planned);
    let put_off = waits.put_off;
    if put_off > 0 {
        text.push_str(&format!(
            "swaps of {} wait, as their gain {}: 1 % of the Performance tier a day is for such ones\n",
            bytes(put_off),
            waits.why()
        ));
    }
    if planned.turns > 0 {
        text.push_str(&format!(
            "{} stay where they are until they are asked for on the day after, too: they looked hottest before, and were not\n",
            bytes(planned.turns)
        ));
    }
    if planned.pins_refused > 0 {
        let short = bytes(planned.pins_refused);
        text.push_str(&format!(
            "the Performance tier has no room for {short} that are pinned to it\n"
        ));
    }
    if planned.stuck > 0 {
        text.push_str(&format!(
            "{} more should move down, and the Capacity tier has no free place for them\n",
            bytes(planned.stuck)
        ));
    }
    if planned.reserve_pinned > 0 {
        text.push_str(&format!(
            "{} that should be free are kept by pins\n",
            bytes(planned.reserve_pinned)
        ));
    }
    let json: Value = json!({
        "vdisk": own.name(),
        "up": up,
        "down": down,
        "up_requested": wanted[0],
        "down_requested": wanted[1],
        "extent_bytes": own.extent_bytes(),
        "host_ios": planned.ios,
        "host_ios_performance": planned.ios_before,
        "host_ios_performance_expected": planned.ios_after,
        "budget_spent": planned.budget_spent,
        "put_off": put_off,
        "sure_swaps_gained_percent": waits.gained_percent,
        "taking_turns": planned.turns,
        "break_even_ios": worth.break_even(),
        "break_even_basis": worth.basis.name(),
        "pins_refused": planned.pins_refused,
        "without_room_below": planned.stuck,
        "reserve_pinned": planned.reserve_pinned,
    });
    Reply { json, text, status: 0 }
}

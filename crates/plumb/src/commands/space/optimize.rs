//! `plumb space optimize`: Storage Tiers Optimization of a virtual disk; `plumb space report`: its reports.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plumb_tier::optimizer::{Plan, PlanLimits, TierName};
use plumb_tier::pool::{self, PoolError, TieringStore, unix_seconds};
use plumb_tier::{Optimization, OptimizeSettings};
use plumb_units::{Bytes, Nanos};
use serde_json::{Value, json};

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
                Arg::new("advise")
                    .long("advise")
                    .action(ArgAction::SetTrue)
                    .help("Plan and tell what would move; move nothing"),
                seconds("run-limit", "13500", "End after so long; the next run goes on"),
                Arg::new("movers")
                    .long("movers")
                    .value_name("N")
                    .default_value("8")
                    .value_parser(value_parser!(u32).range(1..=8))
                    .help("Extents under way at a time"),
                size("max-rate", "Bytes moved per second, at most [default: 1G]"),
                size("max-moved", "Bytes moved in all, at most: the movement budget"),
                size("max-promoted", "Bytes written to the Performance tier, at most: the endurance budget"),
                Arg::new("reserve")
                    .long("reserve")
                    .value_name("PERCENT")
                    .default_value("0")
                    .value_parser(value_parser!(u8).range(0..=50))
                    .help("Share of the Performance tier to keep free for new data"),
                report::json_option(),
            ])
            .after_help(
                "It goes by the heat that loads on the virtual disk left (`plumb run space:POOL/VDISK`), and by pins \
                 (`plumb tier pin`). It can be ended at any time: what has moved stays where it is then, nothing is \
                 lost, and the next run goes on.\n\nFor example:\n  plumb space optimize tank/data --run-limit 3600",
            ),
        Command::new("report")
            .about("Which share of I/O the Performance tier serves, and how large it would have to be for more")
            .args([
                report::vdisk_argument(),
                Arg::new("last")
                    .long("last")
                    .action(ArgAction::SetTrue)
                    .help("The report of the last optimization, instead of what was counted since"),
                Arg::new("csv")
                    .long("csv")
                    .action(ArgAction::SetTrue)
                    .conflicts_with_all(["json", "last"])
                    .help("Print the table as CSV"),
                report::json_option(),
            ]),
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
        let store = TieringStore::of(&registry, &found);
        let mut open = pool::open(&found, Vec::new(), (1, 4096))?;
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
        let halted = |source| PoolError::Halted { name: self.pool.clone(), source };
        self.open.engine.shut_down().map_err(halted)?;
        Ok(outcome?)
    }

    fn extent_bytes(&self) -> u64 {
        self.open.engine.config().extent_bytes.into()
    }

    /// Optimizes until that is done, and keeps the report.
    ///
    /// # Errors
    /// When the report cannot be kept, or the pool stopped.
    pub(crate) fn optimize(
        &mut self,
        settings: &OptimizeSettings,
    ) -> Result<Optimization, Failure> {
        let nth = self.nth;
        self.open.engine.optimize(nth, settings, unix_seconds() as f64);
        self.open.work_until(|engine| !engine.optimizing(nth));
        if let Some(source) = self.open.engine.halted() {
            return Err(PoolError::Halted { name: self.pool.clone(), source }.into());
        }
        let done = self.open.engine.take_optimization(nth);
        let done = done.expect("an optimization that has ended has a result");
        self.store.keep_report(self.id, unix_seconds(), &done)?;
        Ok(done)
    }
}

fn settings(matches: &ArgMatches, extent_bytes: u64, slots: u64) -> OptimizeSettings {
    let number = |name: &str| *matches.get_one::<u32>(name).expect("it has a default");
    let extents = |name: &str| {
        let bytes = matches.get_one::<u64>(name).copied();
        bytes.map_or(u64::MAX, |bytes| bytes / extent_bytes)
    };
    let reserve: u8 = *matches.get_one("reserve").expect("it has a default");
    OptimizeSettings {
        limits: PlanLimits { moved: extents("max-moved"), promoted: extents("max-promoted") },
        time: Nanos::from_secs(number("run-limit").into()),
        movers: number("movers"),
        rate: Some(matches.get_one("max-rate").copied().unwrap_or(1 << 30)),
        reserve: slots * u64::from(reserve) / 100,
        raised: 1.0,
    }
}

/// `optimize`.
pub(super) fn optimize(matches: &ArgMatches) -> report::Outcome {
    let mut own = Tiered::open(matches)?;
    let nth = own.nth;
    let slots = own.open.engine.tier_report(nth, 0.0).facts.performance_slots;
    let settings = settings(matches, own.extent_bytes(), slots);
    if matches.get_flag("advise") {
        let planned = own.open.engine.plan_optimization(nth, &settings);
        let reply = advice(&own, &planned);
        own.end(false)?;
        return Ok(reply);
    }
    let done = own.optimize(&settings)?;
    let mut text = format!("virtual disk {}\n\n{}", own.name, done.report.to_text());
    for (why, count) in &done.refused {
        text.push_str(&format!("{count} extents stayed where they are: {}\n", why.name()));
    }
    let json = done.to_json();
    own.end(true)?;
    Ok(Reply { json, text, status: 0 })
}

/// What a plan says.
fn advice(own: &Tiered, planned: &Plan) -> Reply {
    let (up, down) = (planned.count(TierName::Performance), planned.count(TierName::Capacity));
    let bytes = |extents: u64| Bytes(extents.saturating_mul(own.extent_bytes()));
    let percent = |part: u64| match planned.ios {
        0 => "-".to_owned(),
        ios => format!("{:.1} %", 100.0 * part as f64 / ios as f64),
    };
    let text = format!(
        "virtual disk {}: {} would move up, {} down; nothing was moved\n\
         host I/Os on the Performance tier: {} now, {} then\n",
        own.name,
        bytes(up),
        bytes(down),
        percent(planned.ios_before),
        percent(planned.ios_after)
    );
    let json: Value = json!({
        "vdisk": own.name,
        "up": up,
        "down": down,
        "extent_bytes": own.extent_bytes(),
        "host_ios": planned.ios,
        "host_ios_performance": planned.ios_before,
        "host_ios_performance_expected": planned.ios_after,
        "budget_spent": planned.budget_spent,
        "pins_refused": planned.pins_refused,
    });
    Reply { json, text, status: 0 }
}

/// `report`.
pub(super) fn report(matches: &ArgMatches) -> report::Outcome {
    let mut own = Tiered::open(matches)?;
    if matches.get_flag("last") {
        let kept = own.store.last_report(own.id);
        own.end(false)?;
        let json =
            kept?.ok_or(report::VdiskError::NoReport { name: report::text(matches, "vdisk") })?;
        return Ok(Reply { text: format!("{json:#}\n"), json, status: 0 });
    }
    let nth = own.nth;
    let found = own.open.engine.tier_report(nth, unix_seconds() as f64);
    own.end(false)?;
    let text = if matches.get_flag("csv") { found.to_csv() } else { found.to_text() };
    Ok(Reply { json: found.to_json(), text, status: 0 })
}

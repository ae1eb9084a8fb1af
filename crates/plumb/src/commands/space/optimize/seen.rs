//! A virtual disk with two tiers as commands see it that change nothing: its pool started for them, or, while another
//! program has the pool, what that one hands out.

use std::time::Duration;

use clap::ArgMatches;
use plumb_tier::optimizer::{PinStatus, PinTable, Plan, Worth};
use plumb_tier::pool::{
    self, LiveError, LiveView, Look, PoolError, RegisteredPool, Registry, TieringStore,
};
use plumb_tier::tier_report::{TierReport, Warning};
use plumb_tier::{OptimizeSettings, VirtualDisk};
use serde_json::json;

use super::super::report::{self, Failure, Reply};
use super::Tiered;

/// Where it is seen from.
enum From {
    Started(Box<Tiered>),
    Told(Box<(LiveView, Look)>),
}

/// A virtual disk that is looked at.
pub(crate) struct Seen {
    from: From,
    store: TieringStore,
    pool: String,
    name: String,
    vdisk: String,
}

impl Seen {
    /// The one that the command line names.
    ///
    /// # Errors
    /// When it cannot be seen: its pool does not start, or whoever has it does not tell.
    pub(crate) fn open(matches: &ArgMatches) -> Result<Self, Failure> {
        let name = report::text(matches, "vdisk");
        let (pool, vdisk) = report::split(&name)?;
        let registry = report::registry();
        let found = registry.find(&pool)?;
        let named = (name.clone(), vdisk.clone());
        let from = match pool::is_in_use(&found) {
            true => match told(&registry, &found, &named) {
                // It ended a moment ago.
                Err(Failure::Pool(PoolError::NotInUse { .. })) => {
                    From::Started(Box::new(Tiered::open_found(&registry, &found, named)?))
                }
                other => other?,
            },
            false => From::Started(Box::new(Tiered::open_found(&registry, &found, named)?)),
        };
        Ok(Self { from, store: TieringStore::of(&registry, &found), pool, name, vdisk })
    }

    /// `POOL/VDISK`.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn config(&self) -> &plumb_tier::Config {
        match &self.from {
            From::Started(own) => own.open.engine.config(),
            From::Told(told) => &told.1.config,
        }
    }

    fn vdisk(&self) -> Option<&VirtualDisk> {
        Some(report::find(self.config(), &self.pool, &self.vdisk).ok()?.1)
    }

    /// Bytes of an extent.
    pub(crate) fn extent_bytes(&self) -> u64 {
        self.config().extent_bytes.into()
    }

    /// Copies of its data.
    pub(crate) fn copies(&self) -> u8 {
        self.vdisk().map_or(1, |own| own.copies)
    }

    /// Extents of the Performance tier that data may use.
    pub(crate) fn performance_slots(&mut self) -> u64 {
        match &mut self.from {
            From::Started(own) => own.open.engine.tier_report(own.nth, 0.0).facts.performance_slots,
            From::Told(told) => told.0.view().performance_slots,
        }
    }

    /// What an optimization would do now.
    pub(crate) fn plan(&mut self, settings: &OptimizeSettings) -> Plan {
        match &mut self.from {
            From::Started(own) => own.open.engine.plan_optimization(own.nth, settings),
            From::Told(told) => told.0.view().plan(settings),
        }
    }

    /// What makes a move worth it.
    pub(crate) fn worth(&self) -> Worth {
        match &self.from {
            From::Started(own) => own.open.engine.worth(own.nth),
            From::Told(told) => told.0.view().worth(),
        }
    }

    /// The report on the present window.
    pub(crate) fn report(&mut self, now_s: f64) -> TierReport {
        match &mut self.from {
            From::Started(own) => own.open.engine.tier_report(own.nth, now_s),
            // Its window goes as far as it was told.
            From::Told(told) => told.0.view().report(now_s - told.0.age.as_secs_f64()),
        }
    }

    /// When its Performance tier will be full.
    pub(crate) fn filling(&self) -> Option<Warning> {
        self.store.warning(self.config(), self.vdisk()?)
    }

    /// The pins and how they stand.
    pub(crate) fn pins(&self) -> (PinTable, Vec<PinStatus>) {
        match &self.from {
            From::Started(own) => {
                let engine = &own.open.engine;
                (engine.tiering(own.nth).pins.clone(), engine.pin_statuses(own.nth))
            }
            From::Told(told) => {
                let view = told.0.view();
                (view.tiering.pins.clone(), view.pin_statuses())
            }
        }
    }

    /// Bytes in use on the Performance tier, and on the Capacity tier.
    pub(crate) fn used_bytes(&self) -> [u64; 2] {
        match &self.from {
            From::Started(own) => own.open.engine.mapped_bytes(own.nth),
            From::Told(told) => told.0.view().mapped().map(|extents| extents * self.extent_bytes()),
        }
    }

    /// How old it is what another program has told; `None` of a pool that nobody has.
    fn age(&self) -> Option<Duration> {
        match &self.from {
            From::Started(_) => None,
            From::Told(told) => Some(told.0.age),
        }
    }

    /// A reply that says so.
    pub(crate) fn dated(&self, mut reply: Reply) -> Reply {
        let Some(age) = self.age().map(|age| age.as_secs_f64()) else { return reply };
        let pool = &self.pool;
        reply.text.push_str(&format!(
            "\nPool {pool} is in use: this is what the program that has it told {age:.1} s ago.\n"
        ));
        reply.json["told_by_owner_age_s"] = json!(age);
        reply
    }

    /// Lets go of it; nothing was changed.
    ///
    /// # Errors
    /// When the pool does not end.
    pub(crate) fn end(self) -> Result<(), Failure> {
        match self.from {
            From::Started(own) => own.end(false),
            From::Told(_) => Ok(()),
        }
    }
}

/// What the program that has a pool tells.
fn told(
    registry: &Registry,
    found: &RegisteredPool,
    (name, vdisk): &(String, String),
) -> Result<From, Failure> {
    let look = pool::look(Some(found.id), &found.disks)?;
    let (_, own) = report::find(&look.config, &found.name, vdisk)?;
    if own.tiers.len() < 2 {
        return Err(report::VdiskError::OneTier { name: name.clone() }.into());
    }
    match pool::live(registry, found, (own, look.config.extent_bytes)) {
        Ok(Some(view)) => Ok(From::Told(Box::new((view, look)))),
        Ok(None) => Err(silent(registry, found, (name, own.id)).into()),
        Err(LiveError::Pool(error)) => Err(error.into()),
        Err(LiveError::Tiering(error)) => Err(error.into()),
    }
}

/// It is in use by a program that does not tell: what can be had instead.
fn silent(
    registry: &Registry,
    found: &RegisteredPool,
    (name, id): (&str, u128),
) -> report::VdiskError {
    let owner = pool::owner(found).unwrap_or_else(|| "another program".to_owned());
    let mut remedy = "it does not tell what it counted: wait until it has ended".to_owned();
    if TieringStore::of(registry, found).reports(id).is_ok_and(|reports| !reports.is_empty()) {
        remedy.push_str(&format!(
            ", or see the report of the last optimization now: plumb space report {name} --last"
        ));
    }
    report::VdiskError::PoolInUse { pool: found.name.clone(), owner, remedy }
}

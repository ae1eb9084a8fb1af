//! `plumb tier pin|unpin|pins`: ranges of a virtual disk that belong on a tier, whatever their heat.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plumb_tier::OptimizeSettings;
use plumb_tier::optimizer::{PinId, PinStatus, TierName};
use plumb_tier::pool::{self, Ask, GivesWay, PoolError, RegisteredPool};
use plumb_units::Bytes;
use serde_json::{Value, json};

use super::super::space::optimize::{Seen, Tiered, look};
use super::super::space::report::{self, Failure, Reply};

/// For clap.
pub(super) fn commands() -> [Command; 3] {
    let size = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("SIZE").required(true).help(help)
    };
    [
        Command::new("pin")
            .about("Pin a range of a virtual disk to a tier")
            .args([
                report::vdisk_argument(),
                size("offset", "Where the range begins, e.g. 0 or 4G").value_parser(offset),
                size("length", "How long it is").value_parser(report::size),
                Arg::new("tier")
                    .long("tier")
                    .value_name("TIER")
                    .required(true)
                    .value_parser(["performance", "capacity"])
                    .help("Where it belongs"),
                Arg::new("now")
                    .long("now")
                    .action(ArgAction::SetTrue)
                    .help("Optimize at once, instead of waiting for the next optimization"),
                report::json_option(),
            ])
            .after_help(
                "A pin decides about every extent that its range touches; of two pins with different tiers the later one. \
                 A range that is pinned to that tier already keeps its pin. It takes effect at the next \
                 `plumb space optimize`.\n\nFor example:\n  \
                 plumb tier pin tank/data --offset 0 --length 2G --tier performance",
            ),
        Command::new("unpin").about("Remove a pin; nothing moves before the next optimization").args([
            report::vdisk_argument(),
            Arg::new("pin")
                .long("pin")
                .value_name("N")
                .required(true)
                .value_parser(value_parser!(u64))
                .help("Its number, as `plumb tier pins` shows it"),
            report::json_option(),
        ]),
        Command::new("pins")
            .about("Show the pins of a virtual disk, and how far each is where it belongs")
            .args([report::vdisk_argument(), report::json_option()])
            .after_help(report::STARTS),
    ]
}

fn offset(text: &str) -> Result<u64, String> {
    let is_zero = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic()) == "0";
    match is_zero {
        // With a unit that there is.
        true => report::size(&text.replacen('0', "1", 1)).map(|_| 0),
        false => report::size(text),
    }
}

/// `pin`.
pub(super) fn pin(matches: &ArgMatches) -> report::Outcome {
    let number = |name: &str| *matches.get_one::<u64>(name).expect("clap requires it");
    let range = (number("offset"), number("length"));
    let tier = match report::text(matches, "tier").as_str() {
        "performance" => TierName::Performance,
        _ => TierName::Capacity,
    };
    if let Some(reply) = pin_in_use(matches, range, tier)? {
        return Ok(reply);
    }
    let (start, len) = range;
    let (pool, _) = report::split(&report::text(matches, "vdisk"))?;
    let now = matches.get_flag("now");
    let mut way = now.then(|| GivesWay::begin(&report::registry(), &pool)).flatten();
    let mut own = Tiered::open(matches)?;
    let nth = own.nth;
    let bytes = own.open.engine.size(nth);
    let pinned = is_inside(range, bytes)
        .then(|| own.open.engine.tiering_mut(nth).pins.set(start, len, tier))
        .flatten();
    let Some(id) = pinned else {
        let name = own.name.clone();
        own.end(false)?;
        return Err(report::VdiskError::Range { name, start, len, bytes }.into());
    };
    if now {
        own.optimize(&OptimizeSettings::default(), way.as_mut())?;
    }
    let mut found = statuses(&own);
    found.retain(|(status, _)| status.pin == id);
    let reply = shown(&own.name, &found);
    own.end(true)?;
    Ok(reply)
}

fn is_inside((start, len): (u64, u64), bytes: u64) -> bool {
    start.checked_add(len).is_some_and(|end| end <= bytes)
}

/// Asks the program that has the pool for something; `false` when none has it (any more).
fn ask(found: &RegisteredPool, wish: Ask) -> Result<bool, Failure> {
    if !pool::is_in_use(found) {
        return Ok(false);
    }
    match pool::ask(&report::registry(), found, wish) {
        Err(PoolError::NotInUse { .. }) => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}

/// The program that has the pool was asked, and does not say that it did it.
fn silent(found: RegisteredPool, matches: &ArgMatches) -> Failure {
    let owner = pool::owner(&found).unwrap_or_else(|| "another program".to_owned());
    let name = report::text(matches, "vdisk");
    let remedy = format!(
        "it was asked and has not answered: see plumb tier pins {name}, or wait until it has ended"
    );
    report::VdiskError::PoolInUse { pool: found.name, owner, remedy }.into()
}

/// Has whoever has the pool pin a range; `None` when nobody has it.
fn pin_in_use(
    matches: &ArgMatches,
    range: (u64, u64),
    tier: TierName,
) -> Result<Option<Reply>, Failure> {
    let name = report::text(matches, "vdisk");
    let (found, nth) = look(&name)?;
    let config = pool::look(Some(found.id), &found.disks)?.config;
    let bytes = u64::from(config.vdisks[usize::from(nth)].extents) * u64::from(config.extent_bytes);
    let (start, len) = range;
    if !is_inside(range, bytes) {
        return Err(report::VdiskError::Range { name, start, len, bytes }.into());
    }
    if !ask(&found, Ask::Pin(nth, range, tier))? {
        return Ok(None);
    }
    let own = Seen::open(matches)?;
    let (pins, statuses) = own.pins();
    let all = statuses.into_iter().zip(pins.pins());
    let mut same = all.filter(|(_, pin)| (pin.start, pin.len, pin.tier) == (start, len, tier));
    // The last one: an earlier one that a pin between them overrides stays in the list.
    let Some((status, _)) = same.next_back() else {
        own.end()?;
        return Err(silent(found, matches));
    };
    let mut reply = own.dated(shown(&name, &[(status, (start, tier))]));
    own.end()?;
    if matches.get_flag("now") && ask(&found, Ask::Optimize(nth))? {
        reply.text.push_str("It was asked to optimize, too.\n");
        reply.json["optimization_asked"] = true.into();
    }
    Ok(Some(reply))
}

/// `unpin`.
pub(super) fn unpin(matches: &ArgMatches) -> report::Outcome {
    let id = *matches.get_one::<u64>("pin").expect("clap requires it");
    let name = report::text(matches, "vdisk");
    let (found, nth) = look(&name)?;
    let has = |own: Seen| -> Result<bool, Failure> {
        let has = own.pins().0.pins().iter().any(|pin| pin.id == PinId(id));
        own.end()?;
        Ok(has)
    };
    let is_in_use = pool::is_in_use(&found);
    if is_in_use && !has(Seen::open(matches)?)? {
        return Err(report::VdiskError::NoPin { name, pin: id }.into());
    }
    if is_in_use && ask(&found, Ask::Unpin(nth, PinId(id)))? {
        if has(Seen::open(matches)?)? {
            return Err(silent(found, matches));
        }
        return Ok(removed(&name, id));
    }
    let mut own = Tiered::open(matches)?;
    if !own.open.engine.tiering_mut(own.nth).pins.clear(PinId(id)) {
        own.end(false)?;
        return Err(report::VdiskError::NoPin { name, pin: id }.into());
    }
    own.end(true)?;
    Ok(removed(&name, id))
}

fn removed(name: &str, id: u64) -> Reply {
    let text = format!("virtual disk {name}: pin {id} removed\n");
    Reply { json: json!({ "vdisk": name, "pin": id, "removed": true }), text, status: 0 }
}

/// `pins`.
pub(super) fn pins(matches: &ArgMatches) -> report::Outcome {
    let own = Seen::open(matches)?;
    let (pins, all) = own.pins();
    let all = all.into_iter().zip(pins.pins());
    let all: Vec<_> = all.map(|(status, pin)| (status, (pin.start, pin.tier))).collect();
    let reply = own.dated(shown(own.name(), &all));
    own.end()?;
    Ok(reply)
}

/// Each pin with its first byte and its tier.
fn statuses(own: &Tiered) -> Vec<(PinStatus, (u64, TierName))> {
    let pins = own.open.engine.tiering(own.nth).pins.pins();
    let all = own.open.engine.pin_statuses(own.nth).into_iter();
    all.zip(pins).map(|(status, pin)| (status, (pin.start, pin.tier))).collect()
}

fn shown(name: &str, found: &[(PinStatus, (u64, TierName))]) -> Reply {
    let mut text = String::new();
    let mut pins: Vec<Value> = Vec::new();
    for (status, (start, tier)) in found {
        let others: Vec<String> = status.overridden_by.iter().map(|id| id.0.to_string()).collect();
        let decided = match status.bytes_overridden {
            all if all == status.bytes => "decided".to_owned(),
            part => format!("{} of it decided", Bytes(part)),
        };
        let conflict = match others.is_empty() {
            true => String::new(),
            false => format!("; {decided} by the later pin {}", others.join(", ")),
        };
        let beside = match status.bytes_pinned - status.bytes {
            0 => String::new(),
            more => format!(", and {} of the extents that it touches", Bytes(more)),
        };
        text.push_str(&format!(
            "pin {}: {} from {} to the {} tier: {}, {}; {} of it there{beside}{conflict}\n",
            status.pin.0,
            Bytes(status.bytes),
            Bytes(*start),
            tier.name(),
            status.placement.name(),
            status.state.name(),
            Bytes(status.bytes_on_tier),
        ));
        pins.push(json!({
            "pin": status.pin.0,
            "offset": start,
            "bytes": status.bytes,
            "desired_tier": tier.name(),
            "placement_status": status.placement.code(),
            "placement_status_name": status.placement.name(),
            "state": status.state.code(),
            "state_name": status.state.name(),
            "bytes_on_desired_tier": status.bytes_on_tier,
            "bytes_pinned": status.bytes_pinned,
            "bytes_overridden": status.bytes_overridden,
            "overridden_by": status.overridden_by.iter().map(|id| id.0).collect::<Vec<u64>>(),
        }));
    }
    if text.is_empty() {
        text = format!("virtual disk {name} has no pins\n");
    }
    Reply { json: json!({ "vdisk": name, "pins": pins }), text, status: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_may_be_0_in_any_unit() {
        assert_eq!(["0", "0M", "0K", "1M"].map(offset), [Ok(0), Ok(0), Ok(0), Ok(1 << 20)]);
        assert!(offset("0Q").is_err() && offset("M").is_err() && offset("-1").is_err());
    }
}

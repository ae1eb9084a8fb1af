//! The reference scenario and what it must show, in virtual time: at full scale, or at one in so many; `through` writes with the
//! load's own `-h`, each write durable when it is answered.
//!
//!     cargo run --release -p plumb-tier --example reference_scenario [SCALE [through]]
#![forbid(unsafe_code)]

use std::error::Error;

use plumb_tier::scenario::{LoadOutcome, Progress, Rig, Scenario, acceptance};

fn main() -> Result<(), Box<dyn Error>> {
    let scale = std::env::args().nth(1).map_or(Ok(1), |text| text.parse())?;
    // Files that only fill the tiers take memory for each block that is written.
    let durable = match std::env::args().nth(2).as_deref() {
        None => false,
        Some("through") => true,
        Some(other) => {
            return Err(format!("{other}: what is written is `through` or nothing").into());
        }
    };
    let scenario = Scenario { whole: scale >= 32, durable, ..Scenario::reference(scale) };
    let bare = Scenario { cache: false, ..scenario };
    let disks = {
        let mut rig = Rig::sparse(&bare.sizes())?;
        bare.used(&mut rig, &mut |progress| tell(progress))?.iops()
    };
    println!("the rotating disks alone: {disks:.0} I/Os per second");
    let mut rig = Rig::sparse(&scenario.sizes())?;
    let found = scenario.run(&mut rig, tell)?;
    println!("I/Os per second: {:.0?}", found.cases.each_ref().map(LoadOutcome::iops));
    let mut holds = true;
    for bound in acceptance(&scenario, &found, disks) {
        let verdict = if bound.holds() { "holds" } else { "DOES NOT HOLD" };
        println!(
            "{:<60} {:>10.4}  {} to {}  {verdict}",
            bound.what, bound.value, bound.low, bound.high
        );
        holds &= bound.holds();
    }
    if holds { Ok(()) } else { Err("a bound does not hold".into()) }
}

fn tell(progress: &Progress<'_>) {
    match progress {
        Progress::Ended(case, outcome) => {
            println!("{case:?}: {:.0} I/Os per second", outcome.iops());
        }
        Progress::Optimized(done) => println!("{:?}", done.report.facts.moves),
        other => println!("{other:?}"),
    }
}

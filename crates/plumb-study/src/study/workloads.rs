//! Settings of a sweep that ask for the same I/O.

use super::setting::size;
use super::{Access, Setting};

/// Settings that ask for the same I/O: only those can be ranked by their I/Os per second.
pub(super) struct Workload {
    /// In a few letters: what tells it from the others. Empty where there is one.
    pub(super) name: String,
    pub(super) settings: Vec<Setting>,
}

/// Settings by block size, write share, access and rate, in their order.
pub(super) fn workloads(settings: &[Setting]) -> Vec<Workload> {
    let key = |setting: &Setting| {
        let is_random = setting.access == Access::Random;
        (setting.block_bytes, setting.write_percent, is_random, setting.rate)
    };
    let mut list: Vec<Workload> = Vec::new();
    for setting in settings {
        match list.iter_mut().find(|workload| key(&workload.settings[0]) == key(setting)) {
            Some(workload) => workload.settings.push(setting.clone()),
            None => {
                list.push(Workload { name: String::new(), settings: vec![setting.clone()] });
            }
        }
    }
    let firsts: Vec<Setting> = list.iter().map(|workload| workload.settings[0].clone()).collect();
    let differs = |is_other: &dyn Fn(&Setting) -> bool| firsts.iter().any(is_other);
    for workload in &mut list {
        let own = &workload.settings[0];
        let mut words = Vec::new();
        if differs(&|other| other.block_bytes != own.block_bytes) {
            words.push(format!("b{}", size(own.block_bytes)));
        }
        if differs(&|other| (other.access == Access::Random) != (own.access == Access::Random)) {
            let word = if own.access == Access::Random { "random" } else { "sequential" };
            words.push(word.to_owned());
        }
        if differs(&|other| other.write_percent != own.write_percent) {
            words.push(format!("w{}", own.write_percent));
        }
        if differs(&|other| other.rate != own.rate) {
            words.push(own.rate.map_or("no-rate".to_owned(), |rate| format!("rate{rate}")));
        }
        workload.name = words.join(" ");
    }
    list
}

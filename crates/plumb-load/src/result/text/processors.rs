//! Lists of processors: `cpu: 0-3,7`, with several groups `group/cpu: 0/0-3 1/0,2` (spec 15.10).

use std::fmt::Write;

/// What the entries are (`cpu` or `group/cpu`), and the entries in the order given, ascending
/// neighbours joined.
#[must_use]
pub fn list(entries: &[(u16, u8)]) -> (&'static str, String) {
    let several = entries.iter().any(|(group, _)| *group != 0);
    let mut text = String::new();
    let mut entries = entries.iter().copied().peekable();
    let mut last_group = None;
    while let Some((group, first)) = entries.next() {
        let mut last = first;
        while let Some(next) = entries.next_if(|next| Some(*next) == following(group, last)) {
            last = next.1;
        }
        match last_group {
            None if several => write!(text, "{group}/"),
            Some(previous) if previous != group => write!(text, " {group}/"),
            None => Ok(()),
            Some(_) => write!(text, ","),
        }
        .expect("a string takes everything");
        last_group = Some(group);
        match first == last {
            true => write!(text, "{first}"),
            false => write!(text, "{first}-{last}"),
        }
        .expect("a string takes everything");
    }
    (if several { "group/cpu" } else { "cpu" }, text)
}

fn following(group: u16, cpu: u8) -> Option<(u16, u8)> {
    cpu.checked_add(1).map(|next| (group, next))
}

/// CPU numbers of the whole machine as (group, processor).
#[must_use]
pub fn grouped(cpus: &[u32]) -> Vec<(u16, u8)> {
    let split = |cpu: &u32| {
        let group = u16::try_from(cpu / 64).expect("CPU numbers stay below 2^22");
        (group, u8::try_from(cpu % 64).expect("below 64"))
    };
    cpus.iter().map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_in_the_order_given() {
        for (entries, want) in [
            (&[(0, 0), (0, 1), (0, 2), (0, 3), (0, 7)][..], ("cpu", "0-3,7")),
            (&[(0, 2), (0, 0), (0, 1), (0, 255)], ("cpu", "2,0-1,255")),
            (&[(0, 0), (0, 1), (1, 2), (1, 4), (0, 9)], ("group/cpu", "0/0-1 1/2,4 0/9")),
            (&[(1, 5)], ("group/cpu", "1/5")),
            (&[], ("cpu", "")),
        ] {
            let (words, text) = list(entries);
            assert_eq!((words, text.as_str()), want);
        }
        assert_eq!(grouped(&[3, 64, 191]), [(0, 3), (1, 0), (2, 63)]);
    }
}

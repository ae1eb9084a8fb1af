//! Effective distributions: what random offsets were really drawn from (spec 6.6, 7.4).

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use plumb_units::Bytes;

use crate::pattern::{EffectiveDistribution, EffectiveRange};
use crate::result::model::ThreadResult;

/// By their numbers: the ranges, then the total; threads by path.
type Users<'a> = BTreeMap<(&'a [EffectiveRange], u32), BTreeMap<&'a str, BTreeSet<u32>>>;

/// Writes the block and the empty line before it; nothing where no target has a distribution.
///
/// # Errors
/// What `out` reports.
pub fn write(threads: &[ThreadResult], out: &mut dyn Write) -> io::Result<()> {
    let mut users = Users::new();
    for thread in threads {
        for target in &thread.targets {
            if let Some(EffectiveDistribution { ranges, io_total }) = &target.effective {
                let paths = users.entry((ranges, *io_total)).or_default();
                paths.entry(&target.path).or_default().insert(thread.id);
            }
        }
    }
    if users.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nEffective IO Distributions\n--------------------------")?;
    for ((ranges, io_total), paths) in users {
        for (path, threads) in paths {
            writeln!(out, "target: {path} [thread: {}]", thread_list(&threads))?;
        }
        for (place, range) in ranges.iter().enumerate() {
            write_range(range, io_total, place + 1 == ranges.len(), out)?;
        }
    }
    Ok(())
}

fn write_range(
    range: &EffectiveRange,
    io_total: u32,
    is_last: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if io_total < 100 {
        let share = 100.0 * f64::from(range.io) / f64::from(io_total);
        write!(out, "    {share:.1}% of IO => [")?;
    } else {
        write!(out, "   {:>3}% of IO => [", range.io)?;
    }
    match range.offset {
        0 => write!(out, "     0    - ")?,
        offset => write!(out, "{} - ", Bytes(offset).aligned(6))?,
    }
    // A range of no length is the single offset where it begins; the last one runs to the end.
    match range.length {
        0 if is_last => writeln!(out, "      end)"),
        length => writeln!(out, "{})", Bytes(range.offset + length).aligned(6)),
    }
}

/// Numbers separated by blanks, runs of three or more as `a - b` (D-13: none twice).
fn thread_list(threads: &BTreeSet<u32>) -> String {
    let mut parts = Vec::new();
    let mut threads = threads.iter().copied().peekable();
    while let Some(first) = threads.next() {
        let mut last = first;
        while let Some(next) = threads.next_if(|next| last.checked_add(1) == Some(*next)) {
            last = next;
        }
        parts.push(match last - first {
            0 => first.to_string(),
            1 => format!("{first} {last}"),
            _ => format!("{first} - {last}"),
        });
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::model::TargetResult;

    fn check(threads: &[ThreadResult], want: &str) {
        let mut out = Vec::new();
        write(threads, &mut out).expect("a vector takes everything");
        assert_eq!(String::from_utf8(out).expect("text"), want);
    }

    fn thread(id: u32, path: &str, io_total: u32, ranges: &[(u32, u64, u64)]) -> ThreadResult {
        let mut io_base = 0;
        let mut next = |(io, offset, length): &(u32, u64, u64)| {
            let range = EffectiveRange { io_base, io: *io, offset: *offset, length: *length };
            io_base += io;
            range
        };
        let ranges = ranges.iter().map(&mut next).collect();
        let effective = Some(EffectiveDistribution { io_total, ranges });
        let target = TargetResult { path: path.to_owned(), effective, ..TargetResult::default() };
        ThreadResult { id, targets: vec![target], ..ThreadResult::default() }
    }

    #[test]
    fn thread_lists_never_repeat_a_number() {
        for (threads, want) in [
            (&[0][..], "0"),
            (&[0, 1], "0 1"),
            (&[0, 1, 2], "0 - 2"),
            (&[0, 2, 3, 5, 6, 7, 9], "0 2 3 5 - 7 9"),
            (&[u32::MAX], "4294967295"),
        ] {
            assert_eq!(thread_list(&threads.iter().copied().collect()), want);
        }
    }

    #[test]
    fn equal_lists_share_their_ranges_and_stand_in_order_of_their_numbers() {
        let wide = [(50, 0, 8192), (50, 8192, 4096)];
        check(
            &[
                thread(0, "z", 100, &wide),
                thread(1, "a", 100, &wide),
                thread(2, "z", 100, &wide),
                thread(3, "b", 100, &[(10, 0, 4096), (90, 4096, 1 << 30)]),
            ],
            "\nEffective IO Distributions\n--------------------------\n\
             target: b [thread: 3]\n\
             \x20   10% of IO => [     0    -      4KiB)\n\
             \x20   90% of IO => [     4KiB -   1.00GiB)\n\
             target: a [thread: 1]\n\
             target: z [thread: 0 2]\n\
             \x20   50% of IO => [     0    -      8KiB)\n\
             \x20   50% of IO => [     8KiB -     12KiB)\n",
        );
    }

    #[test]
    fn shares_below_a_hundred_are_scaled_and_single_offsets_show_as_such() {
        check(
            &[thread(0, "f", 60, &[(10, 512, 512), (20, 4096, 0), (30, 8192, 0)])],
            "\nEffective IO Distributions\n--------------------------\n\
             target: f [thread: 0]\n\
             \x20   16.7% of IO => [512 -      1KiB)\n\
             \x20   33.3% of IO => [     4KiB -      4KiB)\n\
             \x20   50.0% of IO => [     8KiB -       end)\n",
        );
    }

    #[test]
    fn without_a_distribution_there_is_no_block() {
        let plain = ThreadResult { targets: vec![TargetResult::default()], ..<_>::default() };
        check(&[plain], "");
    }
}

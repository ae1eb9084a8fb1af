//! What a user without privileges can do: everything that is about files.

use crate::place::{Place, count, document, words};
use crate::program::{Outcome, outcome};
use crate::rights::as_somebody_else;

/// Runs as somebody who is not root.
fn run(place: &Place, line: &str) -> Outcome {
    let mut command = place.command(line);
    as_somebody_else(&mut command);
    // Events are kept below a user's own folders, scratch files in one that everybody may write to.
    command.env_remove("XDG_RUNTIME_DIR").env_remove("TMPDIR").env("HOME", place.folder());
    outcome(&mut command)
}

#[test]
fn a_user_without_privileges_runs_everything_on_own_files() {
    let place = Place::for_everybody();
    let check = |line: &&str| {
        let result = document(&run(&place, &format!("--json {line}")).ends_with(0).stdout);
        assert!(count(&result, "/total/io_count") > 10, "{line}");
        assert_eq!(count(&result, "/total/errors"), 0, "{line}");
    };
    Place::each(
        &[
            "-c4M -b4K -r -o8 -t2 -w50 -L -D100 -d1 -W0 a.dat",
            "-c4M -b4K -r -o8 -w50 -x -d1 -W0 b.dat",
            "-c4M -b4K -r -o1 -w30 -Sm -d1 -W0 c.dat",
            "-c4M -b4K -r -o8 -I1 -d1 -W0 d.dat",
            "-c4M -b4K -r -o8 -Sw -w50 -ysplumb-test-plain -d1 -W0 e.dat",
        ],
        check,
    );
    // Made by the same user before: may be written to again.
    check(&"-b4K -r -o8 -w100 -d1 -W0 a.dat");
}

#[test]
fn registered_buffers_need_no_privilege_as_far_as_the_limit_goes() {
    let place = Place::for_everybody();
    let outcome = run(&place, "--json -c4M -b4K -r -o8 -u -d1 -W0 f.dat");
    if outcome.status == 0 {
        let flags = document(&outcome.stdout);
        assert!(words(&flags, "/time_spans/0/queues/0/flags").contains(&"fixed_buffers"));
    } else {
        // Refused to users (kernel.io_uring_disabled), or the limit is tiny: told which.
        let told = ["io_uring", "RLIMIT_MEMLOCK"].iter().any(|word| outcome.stderr.contains(word));
        assert!(told && outcome.stderr.contains("\nhelp: "), "{}", outcome.stderr);
    }
    // 64 MiB of buffers are above the usual limit of 8 MiB, which only -u insists on.
    let line = "--json -c4M -b1M -o32 -d1 -W0 f.dat";
    let result = run(&place, line).ends_with(0);
    assert!(count(&document(&result.stdout), "/total/io_count") > 0);
}

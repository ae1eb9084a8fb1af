//! Limits and bursts (spec 6.9).

use crate::place::{Place, can, count, noise, number};

/// I/Os per second that the only time span reached.
fn rate(place: &Place, line: &str) -> f64 {
    let result = place.json(&format!("-r -d2 -W0 {line} f.dat"));
    let seconds = count(&result, "/elapsed_ns") as f64 / 1e9;
    assert!((1.99..4.0).contains(&seconds), "{line}: {seconds} s");
    number(&result, "/total/iops_per_s")
}

#[test]
fn limits_hold_to_three_percent() {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    Place::each(
        &[
            ("-b4K -g500i -o4", 500.0),
            // Per thread and target.
            ("-b4K -g500i -o4 -t2", 1000.0),
            ("-b4K -g500i -o1 -t2", 1000.0),
            ("-b4K -g500i -o4 -u", 500.0),
            ("-b4K -g333i -o4 -:1", 333.0),
            ("-b4K -g400i -o2 --engine=threads", 400.0),
            // 4000 bytes per ms are 4,000,000 per second.
            ("-b8K -g4000 -o4", 4e6 / 8192.0),
            ("-b8K -g4000 -o1 -t2", 2.0 * 4e6 / 8192.0),
            ("-b1000 -g200 -o3 -Sm", 200.0),
            // Less than one I/O per ms and per interval: not rounded to no limit at all (D-04).
            ("-b64K -g3000i -o8", 3000.0),
        ],
        |(line, limit)| {
            if !can("limits_hold_to_three_percent", line) {
                return;
            }
            // A busy machine can keep a run from its rate; nothing lets it exceed that.
            let reached = (0..3).map(|_| {
                let reached = rate(&place, line);
                assert!(reached < limit * 1.03, "{line}: {reached} above {limit}");
                reached
            });
            let mut reached = reached.skip_while(|reached| *reached < limit * 0.97);
            assert!(reached.next().is_some(), "{line}: never near {limit}");
        },
    );
}

#[test]
fn a_rate_too_low_for_the_old_arithmetic_is_still_a_limit() {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    // One byte per ms is 1/4 I/O of 4 KiB per second: none comes in two seconds.
    assert_eq!(rate(&place, "-b4K -g1 -o4"), 0.0);
}

#[test]
fn bursts_pause() {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    Place::each(
        &[
            // 20 per burst and 50 ms of rest: 40 bursts in 2 s, one more at their start.
            ("-b4K -i20 -j50 -o4", 400.0),
            ("-b4K -i20 -j50 -o1", 400.0),
            // The burst is shared among the threads of the target.
            ("-b4K -i20 -j50 -o4 -t2", 400.0),
            ("-b4K -i20 -j50 -o4 -F2", 400.0),
        ],
        |(line, most)| {
            let reached = rate(&place, line);
            assert!(reached <= most * 1.06 && reached > most * 0.4, "{line}: {reached}");
        },
    );
}

#[test]
fn only_the_measurement_counts() {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    Place::each(&["-o4 -L", "-o1", "-o4 -D100"], |options| {
        let result = place.json(&format!("-b4K -r -g300i -W1 -d1 -C1 {options} f.dat"));
        let seconds = count(&result, "/elapsed_ns") as f64 / 1e9;
        let ios = count(&result, "/total/io_count") as f64;
        assert!((0.99..3.0).contains(&seconds), "{options}: {seconds} s");
        // Three seconds of load, one of them measured.
        assert!((ios / seconds - 300.0).abs() < 60.0, "{options}: {ios} in {seconds} s");
        let phases = &result["time_spans"][0]["phases"];
        let at = |name: &str| count(phases, &format!("/{name}_ns"));
        let [warmup, measurement, cooldown, end] =
            ["warmup_start", "measurement_start", "cooldown_start", "end"].map(at);
        let second = 990_000_000;
        assert!(measurement - warmup >= second && end - cooldown >= second, "{phases}");
        assert!((cooldown - measurement).abs_diff(count(&result, "/elapsed_ns")) < second / 10);
    });
}

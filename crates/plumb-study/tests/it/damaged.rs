//! Tables, samples and results that were damaged at random: judging them ends soon and never panics.
//!
//! The bodies are the ones that `fuzz/` runs with coverage; a failure prints its seed.

use plumb_study::record::fuzz_record;
use plumb_study::samples::fuzz_samples;
use plumb_study::table::fuzz_table;

use crate::random::Random;

/// Inputs per kind.
const INPUTS: u64 = 3000;

/// Feeds a body with pieces of good inputs and odd words.
fn run(corpus: &[&str], words: &[&str], body: fn(&[u8])) {
    for seed in 0..INPUTS {
        let mut random = Random::seeded(seed + 7_000_000);
        let mut bytes = random.one_of(corpus).as_bytes().to_vec();
        for _ in 0..random.one_of(&[0_u32, 1, 1, 2, 4, 16]) {
            let places: Vec<usize> = (0..=bytes.len()).collect();
            let (a, b) = (random.one_of(&places), random.one_of(&places));
            let (start, end) = (a.min(b), a.max(b).min(a.min(b) + 40));
            let word = random.one_of(words).as_bytes().to_vec();
            match random.one_of(&[0, 1, 2, 3]) {
                0 => drop(bytes.drain(start..end)),
                1 => drop(bytes.splice(start..start, word)),
                2 => drop(bytes.splice(start..end, word)),
                _ => {
                    let piece = bytes[start..end].to_vec();
                    drop(bytes.splice(b..b, piece));
                }
            }
        }
        let outcome = std::panic::catch_unwind(|| body(&bytes));
        assert!(outcome.is_ok(), "seed {seed}: {}", String::from_utf8_lossy(&bytes));
    }
}

const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1e308",
    "1e-308",
    "1e999",
    "NaN",
    "inf",
    "18446744073709551615",
    "4294967296",
    "0.0",
    ",",
    ",,",
    "\n",
    "\r\n",
    ";",
    "\t",
    "\"",
    "#",
    "\u{feff}",
    "o",
    "iops",
    "1",
    "1.0000000000000001",
];

#[test]
fn damaged_tables_are_judged_or_refused() {
    let corpus = [
        include_str!("../data/random-test-1.csv"),
        include_str!("../data/sequential-reads.csv"),
        "o,iops,avg_lat_ms,rep\n1,100,10,1\n1,101,9.9,2\n2,200,10,1\n2,150,13,2\n4,300,13,1\n8,300,26,1\n",
        "o,iops\n1,5\n2,5\n3,5\n4,5\n5,5\n",
    ];
    run(&corpus, NUMBERS, fuzz_table);
}

#[test]
fn damaged_samples_are_judged_or_refused() {
    let corpus = [
        "{\"id\":1,\"metric\":\"iops\",\"baseline_runs\":[1,2,3,4,5,6],\"candidate_runs\":[2,3,4,5,6,7]}",
        "{\"metric\":\"p99\",\"baseline_series\":[[1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,2,1,2,1]],\
         \"candidate_series\":[[2,3,2],[3,4]],\"interval_s\":1}",
        "{\"higher_is_better\":true,\"runs_in_order\":[{\"order\":0,\"arm\":\"A\",\"value\":1},\
         {\"order\":1,\"arm\":\"B\",\"value\":2},{\"order\":2,\"arm\":\"B\",\"value\":2},\
         {\"order\":3,\"arm\":\"A\",\"value\":1}]}\n{\"metric\":\"x\"}",
        "{\"values\":[1,1,1,1,1,2,2,2,2,2,2],\"higher_is_better\":false}\n",
    ];
    let words: Vec<&str> = NUMBERS
        .iter()
        .copied()
        .chain(["[", "]", "{", "}", "null", ":", "1,1,1,1", "[],"])
        .collect();
    run(&corpus, &words, fuzz_samples);
}

#[test]
fn damaged_results_are_compared_or_refused() {
    let corpus = [
        "{\"epoch\":1,\"profile\":{},\"time_spans\":[{\"state\":\"measured\",\"total\":{\"io_count\":1000,\
         \"iops_per_s\":100.5,\"latency_ns\":{\"mean\":5.5,\"p50\":5,\"p99\":9}},\"cpu\":{\"mean\":\
         {\"usage_percent\":50.0},\"processors\":[{}]},\"intervals\":{\"interval_ns\":1000000000,\
         \"series\":[{\"total\":{\"iops_per_s\":100}}]}}]}",
        "<Results></Results>",
        "Command Line: diskspd -b4K f\n",
    ];
    let words: Vec<&str> =
        NUMBERS.iter().copied().chain(["null", "[]", "{}", "measured"]).collect();
    run(&corpus, &words, fuzz_record);
}

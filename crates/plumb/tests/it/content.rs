//! What writes contain (spec 6.8), read back from the files.

use std::collections::HashSet;

use crate::place::{Place, can, count, document, noise};

const BLOCK: usize = 4096;

/// The blocks of a file of 64 that a run has written all over.
fn written(place: &Place, name: &str, line: &str) -> Vec<Vec<u8>> {
    let outcome = place.run(&format!("--json -c256K -b4K -s -w100 -d1 -W0 {line} {name}"));
    let result = document(&outcome.ends_with(0).stdout);
    assert!(count(&result, "/total/io_count") >= 64, "{line}");
    place.read(name).chunks(BLOCK).map(<[u8]>::to_vec).collect()
}

/// A check of a line's blocks.
type Rule = (&'static str, fn(&[Vec<u8>]) -> bool);

const RULES: &[Rule] = &[
    ("-o4", |blocks| blocks.iter().all(|block| is_counting(block))),
    ("-o1 -t2", |blocks| blocks.iter().all(|block| is_counting(block))),
    ("-Z -o4", |blocks| blocks.iter().flatten().all(|byte| *byte == 0)),
    ("-Z -o1", |blocks| blocks.iter().flatten().all(|byte| *byte == 0)),
    ("-Zr -o4", |blocks| words(blocks).len() == blocks.len() * BLOCK / 8),
    ("-Zr -o1", |blocks| words(blocks).len() == blocks.len() * BLOCK / 8),
    ("-Zr -u -o4", |blocks| words(blocks).len() == blocks.len() * BLOCK / 8),
    // One place to take from, and many.
    ("-Z4K -o4", |blocks| blocks.iter().all(|block| *block == blocks[0] && !is_counting(block))),
    ("-Z1M -o4", |blocks| many_places(blocks)),
    ("-Z1M -u -o4", |blocks| many_places(blocks)),
    // The shared source wins over fresh content (spec 6.8).
    ("-Z4K -Zr -o4", |blocks| blocks.iter().all(|block| *block == blocks[0])),
];

/// 64 blocks of about a million places: two of one place are seen in one of 500 runs, four pairs in none.
fn many_places(blocks: &[Vec<u8>]) -> bool {
    blocks.iter().collect::<HashSet<_>>().len() >= blocks.len() - 3
}

/// Bytes 0, 1, … 255 repeating.
fn is_counting(block: &[u8]) -> bool {
    (0..=255).cycle().zip(block).all(|(want, byte): (u8, _)| want == *byte)
}

/// The different words of 8 bytes.
fn words(blocks: &[Vec<u8>]) -> HashSet<&[u8]> {
    blocks.iter().flat_map(|block| block.chunks(8)).collect()
}

#[test]
fn writes_hold_what_the_options_say() {
    let place = Place::new();
    let numbered: Vec<(usize, &Rule)> = RULES.iter().enumerate().collect();
    Place::each(&numbered, |(number, (line, holds))| {
        if !can("writes_hold_what_the_options_say", line) {
            return;
        }
        let blocks = written(&place, &format!("{number}.dat"), line);
        assert!(blocks.len() == 64 && holds(&blocks), "{line}: {:?}", &blocks[0][..32]);
    });
}

#[test]
fn a_file_can_be_the_source_of_writes() {
    let place = Place::new();
    let source = noise(10_000);
    place.write("source", &source);
    // The buffer repeats the file, and a block may begin anywhere in it.
    let repeated = source.repeat(3);
    Place::each(
        &[
            ("a.dat", "-Z64K,source -o4"),
            ("b.dat", "-Z64K,source -o1"),
            ("c.dat", "-Z64K,source -u -o4"),
            ("d.dat", "-Z64K,source -x"),
        ],
        |(name, line)| {
            if !can("a_file_can_be_the_source_of_writes", line) {
                return;
            }
            let blocks = written(&place, name, line);
            let starts: HashSet<_> = blocks
                .iter()
                .map(|block| {
                    let at = repeated.windows(8).position(|window| window == &block[..8]);
                    let at = at.unwrap_or_else(|| panic!("{line}: not from the source"));
                    assert_eq!(block[..], repeated[at..at + BLOCK], "{line}");
                    at
                })
                .collect();
            assert!(starts.len() > 32, "{line}: {} places", starts.len());
        },
    );
}

#[test]
fn a_new_file_is_full_of_something_or_of_zeroes() {
    let place = Place::new();
    place.run("-c1000001 -d0 -W0 f.dat").succeeds_quietly();
    let bytes = place.read("f.dat");
    assert_eq!(bytes.len(), 1_000_001);
    let different: HashSet<_> = bytes.chunks(512).collect();
    assert_eq!(different.len(), bytes.len().div_ceil(512), "neither repeats nor compresses");
    // Made anew, smaller, of zeroes.
    place.run("-Z -c5000 -b1K -d0 -W0 f.dat").succeeds_quietly();
    assert_eq!(place.read("f.dat"), vec![0; 5000]);
    // In folders that are made as well.
    place.run("-c1M -d0 -W0 new/folder/f.dat").succeeds_quietly();
    assert_eq!(place.read("new/folder/f.dat").len(), 1 << 20);
    // A size of 0 makes nothing.
    place.run("-c0 -b1K -d0 -W0 f.dat").succeeds_quietly();
    assert_eq!(place.read("f.dat"), vec![0; 5000]);
}

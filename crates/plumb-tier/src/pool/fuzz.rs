//! Every parser of the files that are kept beside pools, for any bytes.

use crate::format::checksum::crc;
use crate::optimizer::MoveHistory;
use crate::what_if::WhatIf;

const EXTENT: u64 = 1 << 20;

/// Reads any bytes as each of the files that are kept beside pools, also with a checksum that fits; for fuzzing.
pub fn fuzz_files(bytes: &[u8]) {
    if let Some(pool) = super::registry::parse("p", bytes) {
        assert!(pool.disks.len() + pool.emulated.len() <= bytes.len(), "a line each");
    }
    super::tiering::figures::fuzz(bytes);
    let text = String::from_utf8_lossy(bytes);
    super::chronicle::fuzz(&text);
    super::findings::fuzz(&text);
    super::scans::fuzz(&text);
    super::jobs::fuzz(&text);
    let asked = super::asks::parse(&text);
    assert!(asked.len() <= text.lines().count());
    for ask in asked.into_iter().flatten() {
        assert_eq!(super::asks::parse(&ask.line()), [Ok(ask)], "what was read is asked again");
    }
    assert!(super::way::asks(bytes) <= text.lines().count());
    let _ = super::answers::parse(&text, 7);
    let body = text.lines().next().unwrap_or_default();
    super::tiering::figures::fuzz(
        format!("{body}\n{:08x}\n", crc(0, format!("{body}\n").as_bytes())).as_bytes(),
    );
    let mut sealed = bytes.to_vec();
    sealed.extend_from_slice(&crc(0, bytes).to_le_bytes());
    for bytes in [bytes, &sealed] {
        super::live::fuzz(bytes);
        if let Some(history) = MoveHistory::restore(bytes) {
            assert!(history.thrash().promoted <= 3 * u64::from(u32::MAX));
            let again = MoveHistory::restore(&history.save());
            assert!(
                again.is_some_and(|again| again.save() == history.save()),
                "what was read is saved"
            );
        }
        let Some(curves) = WhatIf::restore(bytes, 7, EXTENT) else { continue };
        assert!(WhatIf::restore(&curves.save(7), 7, EXTENT).is_some(), "what was read is saved");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{HostIo, HostIoKind};
    use crate::random::Random;

    #[test]
    fn damaged_files_beside_pools_are_read_or_refused() {
        let mut curves = WhatIf::new(EXTENT);
        for nth in 0..20 {
            curves.record(HostIo { kind: HostIoKind::Read, offset: nth << 20, len: 4096 });
        }
        let mut curves = curves.save(7);
        curves.truncate(curves.len() - 4);
        let mut moves = MoveHistory::sample().save();
        moves.truncate(moves.len() - 4);
        let corpus = [
            super::super::tiering::figures::sample(),
            curves,
            moves,
            super::super::live::sample(),
            b"plumb pool 1\nid 7\ndisk /dev/sda\nemulate sas-ssd-200\n".to_vec(),
            b"plumb-perf 1\t5\t6\t7\ttrue\nPool\tp\tReads\tn\t7\n1\twarning\tdisk-lost\twords\n"
                .to_vec(),
            b"plumb-findings 1\nrefused\t5\t0,2\twhy\nlost\t01\t3\t4\t5\nfailed\t02\t1\t5\nhealed\t02\t7\t8\nnewest\t3\t12\t5\t01,02\n"
                .to_vec(),
            b"plumb-scan 3\t5\tended\t6\n1\t2\t3\t4\t5\t6\t7\t8\t9\t8\t7\t6\n4096\t8192\tv\n".to_vec(),
            b"optimize 3 within 1 00000000000000ab run-limit=60 max-moved=8388608 priority=normal end\n"
                .to_vec(),
            b"plumb-jobs 1\t5\t6\ttrue\t7\nrebuild\t2\t8\t9\troom\nscan\t-\t3\t0\t-\n".to_vec(),
            b"plumb-answers 1\n0000000000000007\trefused\twhy\n".to_vec(),
            b"scan 0\nscan-accepting 0\noffline 3\noptimize 65535\n".to_vec(),
        ];
        corpus.iter().for_each(|whole| fuzz_files(whole));
        let mut random = Random::new(5);
        let mut small = |bound: usize| {
            usize::try_from(random.below(u64::try_from(bound).expect("it fits"))).expect("it fits")
        };
        for nth in 0..10_000 {
            let mut bytes = corpus[nth % corpus.len()].clone();
            for _ in 0..=small(3) {
                let at = small(bytes.len());
                match small(5) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, b'9'),
                    2 => bytes[at] = b"\t\n 9x-.e{[\"\xff"[small(12)],
                    3 => bytes[at] ^= 1 << small(8),
                    // The largest numbers are where sums overflow.
                    _ => drop(bytes.splice(at..at, *b"18446744073709551615")),
                }
            }
            fuzz_files(&bytes);
        }
    }

    /// Ranges whose end is no number are no pins.
    #[test]
    fn pins_beyond_all_numbers_are_refused() {
        let whole = String::from_utf8(super::super::tiering::figures::sample()).expect("text");
        let body = whole.lines().next().expect("a line");
        let huge = body.replace("\"start\":0", &format!("\"start\":{}", u64::MAX - 1));
        assert_ne!(huge, body, "the sample has a pin from 0 on");
        fuzz_files(huge.as_bytes());
        assert!(
            super::super::tiering::figures::reads(body)
                && !super::super::tiering::figures::reads(&huge)
        );
    }
}

//! Snapshots as earlier programs wrote them: what they know is taken, and what they lack is as of a map that has not learned it yet.

use super::outcomes::Outcomes;
use super::*;
use crate::format::bytes::Writer;
use crate::format::checksum::crc;

const HEADER: usize = 88;
const PAGE: usize = 8 + 8 * 256;
/// Words of 32 bits: sums of kinds, how far marks are, and what is known of each extent that is followed.
const KINDS: usize = 27;
const COURSE: usize = 2;
const EACH: usize = 10;

/// Half of the extents that have a load are busier, and on the Performance tier.
fn map() -> HeatMap {
    let mut map = HeatMap::new(HeatSettings::new(1 << 10));
    let mut random = Random::new(3);
    for hour in 0..80 {
        map.advance(hour);
        if hour % 24 == 23 {
            map.begin_window_of(|extent| Some(extent < 100));
        }
        (0..200).for_each(|extent| {
            let most = if extent < 100 { 40 } else { 4 };
            map.record_many(extent, HostIoKind::Read, random.below(most));
        });
    }
    map
}

/// The words of what is known of the extents that are followed.
fn words(bytes: &[u8], pages: usize) -> Vec<u32> {
    let body = &bytes[HEADER + PAGE * pages..bytes.len() - 4];
    let word = |four: &[u8]| u32::from_le_bytes(four.try_into().expect("four bytes"));
    body.chunks_exact(4).map(word).collect()
}

/// The snapshot as a program of that version would have written it.
fn as_of(version: u8, map: &HeatMap) -> Vec<u8> {
    let (bytes, pages) = (map.save(3), map.pages.len());
    let words = words(&bytes, pages);
    let mut outcomes = Writer(Vec::new());
    Outcomes::default().save(&mut outcomes);
    let list = 3 + KINDS + COURSE + outcomes.0.len() / 4;
    let count = usize::try_from(words[list + 1]).expect("few");
    let end = list + 2 + EACH * count;
    let mut old: Vec<u32> = words[..if version == 3 { 2 } else { 3 }].to_vec();
    old.extend(&words[3..if version > 4 { 3 + KINDS } else { 3 }]);
    old.extend(&words[3 + KINDS..if version > 5 { list } else { 3 + KINDS }]);
    old.extend(&words[list..list + 2]);
    // Of version 4 are an hour's beginning and the hour before, and sums that are of another kind.
    let kept = [3, 7, 8, EACH][usize::from(version - 3)];
    for one in words[list + 2..end].chunks_exact(EACH) {
        old.extend(&one[..kept]);
    }
    let mut written = bytes[..HEADER + PAGE * pages].to_vec();
    written[8] = version;
    let sum = crc(0, &written[..HEADER - 4]).to_le_bytes();
    written[HEADER - 4..HEADER].copy_from_slice(&sum);
    let body: Vec<u8> = old.iter().flat_map(|word| word.to_le_bytes()).collect();
    written.extend(&body);
    written.extend(crc(0, &body).to_le_bytes());
    written
}

fn restored(bytes: &[u8]) -> HeatMap {
    let found = HeatMap::restore(bytes, 3, HeatSettings::new(1 << 10)).expect("a snapshot");
    assert_eq!(found.pages_lost, 0);
    found.map
}

#[test]
fn snapshots_of_earlier_versions_are_read() {
    let map = map();
    let (now, all) = (map.dispersion(), map.touched().collect::<Vec<_>>());
    assert_eq!(restored(&map.save(3)).witnesses, map.witnesses);
    for version in 3..=6 {
        let old = restored(&as_of(version, &map));
        assert_eq!(old.touched().collect::<Vec<_>>(), all, "version {version}");
        assert_eq!((old.is_settled(), old.window_hours()), (true, map.window_hours()));
        let followed = |map: &HeatMap| map.marks().iter().map(|mark| mark.0).collect::<Vec<u32>>();
        assert_eq!(followed(&old), followed(&map), "version {version}");
        let is_marked = |map: &HeatMap| map.marks().iter().any(|mark| mark.1.is_some());
        assert_eq!((is_marked(&map), is_marked(&old)), (true, version > 5), "version {version}");
        assert!((old.dispersion() - now).abs() < 1.0, "version {version}");
        // It goes on, and is saved as of today.
        let mut on = old;
        on.advance(on.epoch() + 5);
        assert_eq!(restored(&on.save(3)).witnesses, on.witnesses, "version {version}");
    }
    // One that is cut short, or damaged, has its heat.
    for cut in [1, 40] {
        let bytes = as_of(5, &map);
        let old = restored(&bytes[..bytes.len() - cut]);
        assert_eq!((old.touched().collect::<Vec<_>>(), old.marks().len()), (all.clone(), 0));
    }
}

/// Of that version nobody was followed.
#[test]
fn a_snapshot_of_version_2_has_its_heat() {
    let map = map();
    let mut bytes = map.save(3)[..HEADER + PAGE * map.pages.len()].to_vec();
    bytes[8] = 2;
    let sum = crc(0, &bytes[..HEADER - 4]).to_le_bytes();
    bytes[HEADER - 4..HEADER].copy_from_slice(&sum);
    let old = restored(&bytes);
    assert_eq!(old.touched().collect::<Vec<_>>(), map.touched().collect::<Vec<_>>());
    assert_eq!((old.marks().len(), old.is_settled()), (0, true));
}

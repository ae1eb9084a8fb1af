//! All extents of a pool: where each lies, and what else is known of those that do not rest. At 100 TiB the places take 400 MiB where
//! all have one, and nothing where none has (section 25).

use std::ops::{Index, IndexMut, Range};

use plumb_units::convert::{index, to_u32};

use super::{Extent, ExtentSet, UNMAPPED, of_word};
use crate::sums::Sums;

/// Extents whose state has memory together: an extent of 1 MiB has 1 KiB of checksums, and these take less.
pub(crate) const TOGETHER: usize = 8;

/// What is known of extents at rest: those that have no place, and those whose checksums are on the disks alone.
static UNPLACED: Extent = Extent::new(Sums::None);
static AWAY: Extent = Extent::new(Sums::Away);

type Some8 = Box<[Extent; TOGETHER]>;

/// As many as were asked for.
#[derive(Debug)]
pub(crate) struct ExtentList {
    /// Of each extent what differs from [`UNMAPPED`]: what was never written is zeros, and has no memory.
    places: Vec<u32>,
    /// How many have a place.
    mapped: usize,
    /// Words of 64 extents of which some had a place or a state: others are not looked at.
    known: ExtentSet,
    states: Vec<Option<Some8>>,
}

impl ExtentList {
    /// So many without a place.
    pub(crate) fn new(len: usize) -> Self {
        let states = vec![None; len.div_ceil(TOGETHER)];
        Self { places: vec![0; len], mapped: 0, known: ExtentSet::default(), states }
    }

    /// How many there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// How many have a place.
    pub(crate) fn mapped_count(&self) -> usize {
        self.mapped
    }

    /// Tier and slot of an extent, or [`UNMAPPED`].
    #[inline]
    pub(crate) fn place(&self, extent: u32) -> u32 {
        !self.places[index(extent)]
    }

    /// The same; `None` beyond the last.
    pub(crate) fn place_of(&self, nth: usize) -> Option<u32> {
        self.places.get(nth).map(|place| !*place)
    }

    /// Gives an extent that place.
    pub(crate) fn set_place(&mut self, extent: u32, place: u32) {
        if place != UNMAPPED {
            self.known.insert(extent / 64);
        }
        // What has no state has the checksums that go with its place.
        let before = std::mem::replace(&mut self.places[index(extent)], !place);
        let was_mapped = before != !UNMAPPED;
        self.mapped = self.mapped + usize::from(place != UNMAPPED) - usize::from(was_mapped);
    }

    /// One of them; `None` beyond the last.
    pub(crate) fn get(&self, nth: usize) -> Option<&Extent> {
        (nth < self.len()).then(|| &self[nth])
    }

    /// Numbers of all that have a place or a state, and of others.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + use<> {
        let len = to_u32(self.len());
        let words: Vec<u32> = self.known.iter().collect();
        words.into_iter().flat_map(|word| of_word(word, u64::MAX)).take_while(move |nth| *nth < len)
    }

    /// Those that have a place, in order, and their places.
    pub(crate) fn mapped(&self) -> impl Iterator<Item = (u32, u32)> {
        self.mapped_in(0..to_u32(self.len()))
    }

    /// The same of these.
    pub(crate) fn mapped_in(&self, range: Range<u32>) -> impl Iterator<Item = (u32, u32)> {
        let words = self.known.iter().filter({
            let range = range.clone();
            move |word| (range.start / 64..range.end.div_ceil(64)).contains(word)
        });
        let all =
            words.flat_map(|word| of_word(word, u64::MAX)).filter(move |nth| range.contains(nth));
        all.map(|extent| (extent, self.place(extent))).filter(|own| own.1 != UNMAPPED)
    }

    /// Those that have a state, in order: all that are open or have checksums in memory are among them.
    pub(crate) fn states(&self) -> impl Iterator<Item = (u32, &Extent)> {
        let each = self.groups().filter_map(|nth| Some((nth, self.states[nth].as_ref()?)));
        each.flat_map(|(nth, some)| (to_u32(nth * TOGETHER)..).zip(some.iter()))
            .take_while(|own| index(own.0) < self.len())
    }

    /// Their numbers.
    pub(crate) fn with_state(&self) -> Vec<u32> {
        self.states().map(|own| own.0).collect()
    }

    /// Groups of extents of which some may have a state.
    fn groups(&self) -> impl Iterator<Item = usize> {
        let each = 64 / TOGETHER;
        let groups =
            self.known.iter().flat_map(move |word| index(word) * each..(index(word) + 1) * each);
        groups.take_while(|nth| *nth < self.states.len())
    }

    /// The state of an extent that has one, to change; `None` beyond the last as well.
    #[inline]
    pub(crate) fn state_mut(&mut self, nth: usize) -> Option<&mut Extent> {
        let some = self.states.get_mut(nth / TOGETHER)?.as_mut()?;
        Some(&mut some[nth % TOGETHER])
    }

    /// Takes the memory of a state back where those beside it rest as well.
    pub(crate) fn give_back(&mut self, extent: u32) {
        let nth = index(extent) / TOGETHER;
        if self.states[nth].as_ref().is_some_and(|some| some.iter().all(Extent::is_at_rest)) {
            self.states[nth] = None;
        }
    }

    #[cold]
    fn make(&mut self, nth: usize) {
        self.known.insert(to_u32(nth * TOGETHER / 64));
        let mut some = Box::new([const { Extent::new(Sums::None) }; TOGETHER]);
        for (own, place) in some.iter_mut().zip(&self.places[nth * TOGETHER..]) {
            if *place != !UNMAPPED {
                own.sums = Sums::Away;
            }
        }
        self.states[nth] = Some(some);
    }
}

impl Index<usize> for ExtentList {
    type Output = Extent;

    #[inline]
    fn index(&self, nth: usize) -> &Extent {
        debug_assert!(nth < self.len(), "there is no such extent");
        match &self.states[nth / TOGETHER] {
            Some(some) => &some[nth % TOGETHER],
            None if self.places[nth] == !UNMAPPED => &UNPLACED,
            None => &AWAY,
        }
    }
}

impl IndexMut<usize> for ExtentList {
    /// Gives it a state.
    #[inline]
    fn index_mut(&mut self, nth: usize) -> &mut Extent {
        debug_assert!(nth < self.len(), "there is no such extent");
        if self.states[nth / TOGETHER].is_none() {
            self.make(nth / TOGETHER);
        }
        match &mut self.states[nth / TOGETHER] {
            Some(some) => &mut some[nth % TOGETHER],
            None => unreachable!("it was just made"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a model beside it.
    #[test]
    fn places_and_states_are_what_they_were_set_to() {
        let mut random = crate::random::Random::new(11);
        let mut list = ExtentList::new(1001);
        let mut model: Vec<(u32, bool)> = vec![(UNMAPPED, false); 1001];
        for turn in 0..4000_u32 {
            let extent =
                u32::try_from(random.below(if turn < 2000 { 90 } else { 1001 })).expect("few");
            let nth = index(extent);
            match random.below(4) {
                0 | 1 => {
                    // As it is mapped while all is read: its checksums stay on the disks.
                    let place = if random.one_in(3) { UNMAPPED } else { turn };
                    list.set_place(extent, place);
                    if let Some(own) = list.state_mut(nth) {
                        own.sums = if place == UNMAPPED { Sums::None } else { Sums::Away };
                    }
                    model[nth].0 = place;
                }
                2 => {
                    list[nth].open = !model[nth].1;
                    model[nth].1 = !model[nth].1;
                }
                _ => list.give_back(extent),
            }
        }
        for (nth, (place, open)) in model.iter().enumerate() {
            assert_eq!((list.place(to_u32(nth)), list[nth].open), (*place, *open), "{nth}");
            assert_eq!(matches!(list[nth].sums, Sums::Away), *place != UNMAPPED, "{nth}");
        }
        let mapped: Vec<(u32, u32)> = (0..)
            .zip(&model)
            .filter(|own| own.1.0 != UNMAPPED)
            .map(|own| (own.0, own.1.0))
            .collect();
        assert_eq!(list.mapped().collect::<Vec<_>>(), mapped);
        assert_eq!(list.mapped_count(), mapped.len());
        for (from, to) in
            [(0, 0), (0, 1001), (63, 65), (64, 128), (100, 101), (960, 1001), (7, 900)]
        {
            let inside: Vec<(u32, u32)> =
                mapped.iter().copied().filter(|own| (from..to).contains(&own.0)).collect();
            assert_eq!(list.mapped_in(from..to).collect::<Vec<_>>(), inside, "{from} to {to}");
        }
        let open: Vec<u32> = list.states().filter(|own| own.1.open).map(|own| own.0).collect();
        let expected: Vec<u32> = (0..).zip(&model).filter(|own| own.1.1).map(|own| own.0).collect();
        assert_eq!(open, expected);
        assert!(mapped.iter().all(|own| list.numbers().any(|nth| nth == own.0)));
        assert!(
            list.numbers().all(|nth| nth < 1001) && list.with_state().iter().all(|nth| *nth < 1001)
        );
    }

    #[test]
    fn who_rests_has_no_state() {
        let mut list = ExtentList::new(100);
        list.set_place(9, 5);
        assert!(
            list.with_state().is_empty() && list.get(100).is_none() && list.place_of(100).is_none()
        );
        assert!(matches!((&list[9].sums, &list[8].sums), (Sums::Away, Sums::None)));
        list[9].writers = 1;
        assert_eq!(list.with_state(), (8..16).collect::<Vec<u32>>());
        assert!(matches!((&list[9].sums, &list[8].sums), (Sums::Away, Sums::None)));
        list.give_back(10);
        assert_eq!(list[9].writers, 1, "it does not rest");
        list[9].writers = 0;
        list[12].sums = Sums::unwritten(4);
        list.give_back(9);
        assert!(list[12].sums.get(3).is_some(), "nor does one beside it");
        list[12].sums = Sums::None;
        list.give_back(9);
        assert!(list.with_state().is_empty());
        assert_eq!(list.place(9), 5);
    }
}

//! Goes through every state of a small machine.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

/// A machine: states, what may happen next, and what is wrong with a state.
pub(super) trait Model {
    type State: Clone + Eq + Hash;

    fn start(&self) -> Self::State;
    /// Every state that may come next.
    fn next(&self, state: &Self::State, into: &mut Vec<Self::State>);
    /// Crashes here, looks at all that may be left, and says how many that were and what is wrong.
    fn crash(&self, state: &Self::State, wrong: &mut BTreeMap<&'static str, u64>) -> u64;
}

/// What an exploration found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) states: u64,
    pub(super) crashes: u64,
    /// Kinds of violations, and how often each was seen.
    pub(super) wrong: BTreeMap<&'static str, u64>,
}

/// Visits every state that can be reached once.
pub(super) fn explore<M: Model>(model: &M) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::from([model.start()]);
    let mut stack = vec![model.start()];
    let mut next = Vec::new();
    while let Some(state) = stack.pop() {
        found.states += 1;
        found.crashes += model.crash(&state, &mut found.wrong);
        model.next(&state, &mut next);
        for other in next.drain(..) {
            if seen.insert(other.clone()) {
                stack.push(other);
            }
        }
    }
    found
}

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

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Every state was visited.
    Exhausted,
    /// Something is wrong.
    Wrong,
}

/// What an exploration found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) states: u64,
    pub(super) crashes: u64,
    /// Kinds of violations, and how often each was seen.
    pub(super) wrong: BTreeMap<&'static str, u64>,
}

impl Found {
    fn is_enough(&self, until: Until) -> bool {
        until == Until::Wrong && !self.wrong.is_empty()
    }

    fn add(&mut self, other: Self) {
        self.states += other.states;
        self.crashes += other.crashes;
        for (kind, count) in other.wrong {
            *self.wrong.entry(kind).or_default() += count;
        }
    }
}

/// Visits every state that can be reached once.
pub(super) fn explore<M: Model>(model: &M, until: Until) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::from([model.start()]);
    let mut stack = vec![model.start()];
    let mut next = Vec::new();
    while let Some(state) = stack.pop() {
        found.states += 1;
        found.crashes += model.crash(&state, &mut found.wrong);
        if found.is_enough(until) {
            break;
        }
        model.next(&state, &mut next);
        for other in next.drain(..) {
            if seen.insert(other.clone()) {
                stack.push(other);
            }
        }
    }
    found
}

/// The same for the models of every script of `len` requests out of `requests`.
pub(super) fn explore_scripts<M: Model, R: Copy>(
    requests: &[R],
    len: usize,
    until: Until,
    models: impl Fn(&[R]) -> Vec<M>,
) -> Found {
    let mut total = Found::default();
    let mut scripts: Vec<Vec<R>> = vec![Vec::new()];
    for _ in 0..len {
        let longer = |script: &Vec<R>| {
            let with = |request: &R| script.iter().chain([request]).copied().collect();
            requests.iter().map(with).collect::<Vec<Vec<R>>>()
        };
        scripts = scripts.iter().flat_map(longer).collect();
    }
    for model in scripts.iter().flat_map(|script| models(script)) {
        total.add(explore(&model, until));
        if total.is_enough(until) {
            break;
        }
    }
    total
}

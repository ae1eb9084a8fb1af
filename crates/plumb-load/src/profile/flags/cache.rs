//! Cache flags, collected over the whole line (spec 3.5).

use super::error::visible;
use super::line::Given;
use super::values::{Fault, one_char};
use crate::profile::error::ErrorClass;
use crate::profile::model::{BypassIo, CacheMode, Target};

/// What `-S` and `-h` have said so far; everything is undefined at first.
#[derive(Debug, Clone, Default)]
pub(super) struct CacheFlags {
    mode: Option<(CacheMode, Said)>,
    write_through: Option<Said>,
    mmap: Option<Said>,
    bypass: Option<(BypassIo, Said)>,
}

/// Who said it, for conflicts.
#[derive(Debug, Clone)]
struct Said {
    /// The token of the option.
    index: usize,
    /// As it was typed.
    token: String,
    /// The letter of it.
    letter: char,
}

impl CacheFlags {
    /// The letters of one `-S`; none is `u`.
    pub(super) fn apply(&mut self, given: &Given<'_>) -> Result<(), Fault> {
        let letters = given.value;
        if letters.is_empty() {
            return self.letter('u', given);
        }
        for (start, letter) in letters.char_indices() {
            self.letter(letter, given).map_err(|fault| fault.bytes(one_char(letters, start)))?;
        }
        Ok(())
    }

    fn letter(&mut self, letter: char, given: &Given<'_>) -> Result<(), Fault> {
        let mode = self.mode.as_ref().map(|(_, said)| said);
        let unbuffered = self.mode.as_ref().filter(|(mode, _)| *mode == CacheMode::NoOsCache);
        let (write_through, mmap) = (self.write_through.as_ref(), self.mmap.as_ref());
        let conflict = match letter {
            'b' | 'r' => mode,
            'u' => mode.or(mmap),
            'w' => write_through,
            'h' => mode.or(write_through).or(mmap),
            'm' => mmap.or(unbuffered.map(|(_, said)| said)),
            'y' | 'Y' => self.bypass.as_ref().map(|(_, said)| said),
            _ => {
                let what = format!(": unknown cache flag {letter:?}");
                let help = "the flags are b (cached), u (unbuffered), r (no local cache), w \
                            (write-through), h (u and w), m (mapped), y and Y (BypassIO)";
                return Err(Fault::value(what, help).of(ErrorClass::CacheMode));
            }
        };
        if let Some(earlier) = conflict {
            let what = match (earlier.index == given.index, letter == earlier.letter) {
                (true, true) => format!(": {letter} is there twice"),
                (true, false) => format!(": {letter} conflicts with {} before it", earlier.letter),
                (false, _) => format!(": {letter} conflicts with {} before it", earlier.token),
            };
            let help = "give one of b, u, r and h, and w, m, y and Y at most once; m goes with \
                        neither u nor h";
            return Err(Fault::value(what, help).of(ErrorClass::CacheMode));
        }
        let said = Said::by(given, letter);
        match letter {
            'b' => self.mode = Some((CacheMode::Cached, said)),
            'u' => self.mode = Some((CacheMode::NoOsCache, said)),
            'r' => self.mode = Some((CacheMode::NoLocalCache, said)),
            'w' => self.write_through = Some(said),
            'h' => {
                self.mode = Some((CacheMode::NoOsCache, said.clone()));
                self.write_through = Some(said);
            }
            'm' => self.mmap = Some(said),
            'y' => self.bypass = Some((BypassIo::Partial, said)),
            _ => self.bypass = Some((BypassIo::Full, said)),
        }
        Ok(())
    }

    /// `-h`: as `-Sh`, whatever was said of mapping.
    pub(super) fn disable_all(&mut self, given: &Given<'_>) -> Result<(), Fault> {
        let mode = self.mode.as_ref().map(|(_, said)| said);
        if let Some(earlier) = mode.or(self.write_through.as_ref()) {
            let what = format!(" conflicts with {} before it", earlier.token);
            return Err(Fault::option(what, "leave one of them out").of(ErrorClass::CacheMode));
        }
        let said = Said::by(given, 'h');
        self.mode = Some((CacheMode::NoOsCache, said.clone()));
        self.write_through = Some(said);
        Ok(())
    }

    pub(super) fn set(&self, target: &mut Target) {
        target.cache = self.mode.as_ref().map(|(mode, _)| *mode).unwrap_or_default();
        target.write_through = self.write_through.is_some();
        target.memory_mapped = self.mmap.is_some();
        target.bypass_io = self.bypass.as_ref().map(|(bypass, _)| *bypass);
    }
}

impl Said {
    fn by(given: &Given<'_>, letter: char) -> Self {
        Self { index: given.index, token: visible(given.token()), letter }
    }
}

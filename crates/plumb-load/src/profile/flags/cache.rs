//! Cache flags, collected over the whole line (spec 3.5).

use super::values::{Fault, one_char};
use crate::profile::error::ErrorClass;
use crate::profile::model::{BypassIo, CacheMode, Target};

/// What `-S` and `-h` have said so far; everything is undefined at first.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CacheFlags {
    mode: Option<CacheMode>,
    write_through: bool,
    mmap: bool,
    bypass: Option<BypassIo>,
}

impl CacheFlags {
    /// The letters of one `-S`; none is `u`.
    pub(super) fn apply(&mut self, letters: &str) -> Result<(), Fault> {
        if letters.is_empty() {
            return self.letter('u');
        }
        for (start, letter) in letters.char_indices() {
            self.letter(letter).map_err(|fault| fault.bytes(one_char(letters, start)))?;
        }
        Ok(())
    }

    fn letter(&mut self, letter: char) -> Result<(), Fault> {
        let conflict = match letter {
            'b' | 'r' => self.mode.is_some(),
            'u' => self.mode.is_some() || self.mmap,
            'w' => self.write_through,
            'h' => self.mode.is_some() || self.write_through || self.mmap,
            'm' => self.mmap || self.mode == Some(CacheMode::NoOsCache),
            'y' | 'Y' => self.bypass.is_some(),
            _ => {
                let what = format!(": unknown cache flag {letter:?}");
                let help = "the flags are b (cached), u (unbuffered), r (no local cache), w \
                            (write-through), h (u and w), m (mapped), y and Y (BypassIO)";
                return Err(Fault::value(what, help).of(ErrorClass::CacheMode));
            }
        };
        if conflict {
            let what = format!(": {letter} conflicts with {} before it", self.said());
            let help = "give one of b, u, r and h, and w, m, y and Y at most once; m goes with \
                        neither u nor h";
            return Err(Fault::value(what, help).of(ErrorClass::CacheMode));
        }
        match letter {
            'b' => self.mode = Some(CacheMode::Cached),
            'u' => self.mode = Some(CacheMode::NoOsCache),
            'r' => self.mode = Some(CacheMode::NoLocalCache),
            'w' => self.write_through = true,
            'h' => {
                self.mode = Some(CacheMode::NoOsCache);
                self.write_through = true;
            }
            'm' => self.mmap = true,
            'y' => self.bypass = Some(BypassIo::Partial),
            _ => self.bypass = Some(BypassIo::Full),
        }
        Ok(())
    }

    /// `-h`: as `-Sh`, whatever was said of mapping.
    pub(super) fn disable_all(&mut self) -> Result<(), Fault> {
        if self.mode.is_some() || self.write_through {
            let what = format!(" conflicts with {} before it", self.said());
            return Err(Fault::option(what, "leave one of them out").of(ErrorClass::CacheMode));
        }
        self.mode = Some(CacheMode::NoOsCache);
        self.write_through = true;
        Ok(())
    }

    /// The option that would say the same.
    fn said(&self) -> String {
        let mode = self.mode.map(|mode| match mode {
            CacheMode::Cached => 'b',
            CacheMode::NoOsCache => 'u',
            CacheMode::NoLocalCache => 'r',
        });
        let bypass = self.bypass.map(|bypass| match bypass {
            BypassIo::Partial => 'y',
            BypassIo::Full => 'Y',
        });
        let write_through = self.write_through.then_some('w');
        let letters = [mode, write_through, self.mmap.then_some('m'), bypass];
        format!("-S{}", letters.into_iter().flatten().collect::<String>())
    }

    pub(super) fn set(&self, target: &mut Target) {
        target.cache = self.mode.unwrap_or_default();
        target.write_through = self.write_through;
        target.memory_mapped = self.mmap;
        target.bypass_io = self.bypass;
    }
}

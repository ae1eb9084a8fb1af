//! Mapped targets: I/O as copies (spec 6.11).

use plumb_sys::cache_lines::{self, LineFlush};
use plumb_sys::completions::moved;
use plumb_sys::mapping::{Copying, MapAccess, Mapping};
use plumb_units::convert::index;

use crate::{Errno, FileIndex, MappingFlush, MappingSpec, OpenQueueError, TargetFile};

/// The mapped ones among a queue's files.
///
/// A mapped file must not be truncated while it is in use: touching what is gone raises SIGBUS, which
/// ends the process.
#[derive(Debug)]
pub struct MappedFiles {
    files: Vec<Option<MappedFile>>,
}

/// One mapped file.
#[derive(Debug)]
pub struct MappedFile {
    mapping: Mapping,
    copying: Copying,
    after_write: AfterWrite,
}

/// [`MappingFlush`], with what it needs.
#[derive(Debug, Clone, Copy)]
enum AfterWrite {
    Nothing,
    Synchronise,
    WriteBack { flush: LineFlush, drain: bool },
}

impl MappedFiles {
    /// Maps those that ask for it.
    ///
    /// # Errors
    /// When one cannot be mapped, or not the way it asks for.
    pub fn open(files: &[TargetFile]) -> Result<Self, OpenQueueError> {
        let open =
            |file: &TargetFile| file.mapping.map(|spec| MappedFile::open(file, spec)).transpose();
        Ok(Self { files: files.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// The file, if it is mapped.
    #[inline]
    #[must_use]
    pub fn get(&self, file: FileIndex) -> Option<&MappedFile> {
        self.files.get(index(file.0))?.as_ref()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.iter().all(Option::is_none)
    }

    /// What is in force for them, by name.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        let mut flags: Vec<String> = Vec::new();
        for file in self.files.iter().flatten() {
            let after = match file.after_write {
                AfterWrite::Nothing => None,
                AfterWrite::Synchronise => Some("msync"),
                AfterWrite::WriteBack { flush, .. } => Some(flush.name()),
            };
            let copying = (file.copying == Copying::Streaming).then_some("non_temporal");
            for flag in after.into_iter().chain(copying) {
                if !flags.iter().any(|known| known == flag) {
                    flags.push(flag.to_owned());
                }
            }
        }
        flags
    }
}

impl MappedFile {
    fn open(file: &TargetFile, spec: MappingSpec) -> Result<Self, OpenQueueError> {
        let refuse = |reason: String, remedy: &str| OpenQueueError::Target {
            path: file.path.clone(),
            reason,
            remedy: remedy.to_owned(),
        };
        if spec.write_through && !cache_lines::streaming() {
            let reason = "this processor has no stores that go around its caches".to_owned();
            return Err(refuse(reason, "use -Sm without w"));
        }
        let copying = if spec.write_through { Copying::Streaming } else { Copying::Plain };
        // With write-through no flush follows (spec 6.11), and what is only read needs none.
        let flushes = spec.writable && !spec.write_through;
        let flush = if flushes { spec.flush } else { MappingFlush::None };
        let after_write = match flush {
            MappingFlush::None => AfterWrite::Nothing,
            MappingFlush::ViewOfFile => AfterWrite::Synchronise,
            MappingFlush::NonVolatileMemory | MappingFlush::NonVolatileMemoryNoDrain => {
                let flush = LineFlush::detect().ok_or_else(|| {
                    let reason = "this processor has neither clwb nor clflushopt".to_owned();
                    refuse(reason, "use -Nv")
                })?;
                AfterWrite::WriteBack { flush, drain: flush_drains(spec.flush) }
            }
        };
        let access = match after_write {
            AfterWrite::WriteBack { .. } => MapAccess::Synchronous,
            _ if spec.writable => MapAccess::ReadWrite,
            _ => MapAccess::Read,
        };
        let mapping = Mapping::new(&file.descriptor, file.size, access).map_err(|errno| {
            if file.size == 0 {
                return refuse(
                    "an empty file cannot be mapped".to_owned(),
                    "give its size with -c",
                );
            }
            let errno = Errno::from(errno);
            if access == MapAccess::Synchronous {
                let reason = format!("it cannot be mapped with MAP_SYNC: {errno}");
                return refuse(reason, "-Nn and -Ni need a file on a DAX file system; use -Nv");
            }
            refuse(format!("it cannot be mapped: {errno}"), "use a regular file, or leave out -Sm")
        })?;
        Ok(Self { mapping, copying, after_write })
    }

    /// Copies to `buffer`; the result is a [`crate::Done`]'s.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> i32 {
        result(self.mapping.copy_out(offset, buffer, self.copying))
    }

    /// Copies from `bytes` and does what is to follow a write; the result is a [`crate::Done`]'s.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> i32 {
        match self.mapping.copy_in(offset, bytes, self.copying) {
            Ok(len) => match self.flush(offset, len) {
                Ok(()) => result(len),
                Err(errno) => -errno.raw_os_error(),
            },
            Err(errno) => -errno.raw_os_error(),
        }
    }

    fn flush(&self, offset: u64, len: usize) -> Result<(), rustix::io::Errno> {
        match self.after_write {
            AfterWrite::Nothing => {}
            AfterWrite::Synchronise => self.mapping.flush(offset, len)?,
            AfterWrite::WriteBack { flush, drain } => {
                self.mapping.write_back(offset, len, flush);
                if drain {
                    cache_lines::drain();
                }
            }
        }
        Ok(())
    }
}

/// Whether the flush waits.
fn flush_drains(flush: MappingFlush) -> bool {
    flush == MappingFlush::NonVolatileMemory
}

fn result(len: usize) -> i32 {
    moved(plumb_units::convert::to_u32(len))
}

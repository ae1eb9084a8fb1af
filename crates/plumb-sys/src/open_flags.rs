//! Flags of open(2) that rustix does not have right.

use rustix::fs::OFlags;

/// `O_DSYNC` and nothing more: a write completes when its data, and what it takes to read them again, are
/// durable (open(2)). `OFlags::DSYNC` of rustix 1.1 on its own system calls is `O_SYNC`, which makes a file
/// system bring the times of the file to the medium too, with every write.
pub const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_shows_the_bit_and_not_those_of_o_sync() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let opened =
            rustix::fs::open(file.path(), OFlags::WRONLY | DSYNC, rustix::fs::Mode::empty());
        let opened = opened.expect("opened");
        let place = format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(&opened));
        let text = std::fs::read_to_string(place).expect("its facts");
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).expect("its flags");
        let flags = u32::from_str_radix(flags.trim(), 8).expect("octal digits");
        let both = libc::O_SYNC.cast_unsigned();
        assert_eq!(flags & both, libc::O_DSYNC.cast_unsigned(), "{flags:o}");
    }
}

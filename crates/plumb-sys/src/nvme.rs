//! The health log of an NVMe controller.

use plumb_units::convert::to_u64;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// Bytes of the log.
pub const HEALTH_LOG_BYTES: usize = 512;

/// The SMART / health information log (NVMe base specification, log page 02h) of a controller, by its node such as
/// `/dev/nvme0`. Nothing is changed.
///
/// # Errors
/// EACCES without the right to ask, ENOTTY when it is no controller, EIO when the controller returns no log.
pub fn health_log(controller: impl AsFd) -> Result<[u8; HEALTH_LOG_BYTES], Errno> {
    const ADMIN_COMMAND: Opcode = opcode::read_write::<AdminCommand>(b'N', 0x41);
    const GET_LOG_PAGE: u8 = 0x02;
    const HEALTH: u32 = 0x02;
    /// Words of the log less one, as the command counts.
    const WORDS: u32 = 512 / 4 - 1;
    let mut log = [0_u8; HEALTH_LOG_BYTES];
    let mut command = AdminCommand {
        opcode: GET_LOG_PAGE,
        namespace: u32::MAX,
        address: to_u64(log.as_mut_ptr().expose_provenance()),
        data_len: 512,
        word_10: WORDS << 16 | HEALTH,
        timeout_ms: 2000,
        ..AdminCommand::default()
    };
    // SAFETY: the opcode reads and writes one `struct nvme_admin_cmd`, of the size that a test checks.
    let request = unsafe { Updater::<ADMIN_COMMAND, AdminCommand>::new(&mut command) };
    // SAFETY: the kernel writes no more than `data_len` bytes at `address`, which are `log`; it outlives the call.
    unsafe { ioctl(controller, request) }?;
    // A controller that fails leaves nothing; a log always has a temperature.
    if log.iter().all(|byte| *byte == 0) { Err(Errno::IO) } else { Ok(log) }
}

/// `struct nvme_admin_cmd` of linux/nvme_ioctl.h.
#[repr(C)]
#[derive(Default)]
struct AdminCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    word_2: u32,
    word_3: u32,
    metadata: u64,
    address: u64,
    metadata_len: u32,
    data_len: u32,
    word_10: u32,
    word_11: u32,
    word_12: u32,
    word_13: u32,
    word_14: u32,
    word_15: u32,
    timeout_ms: u32,
    result: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_as_the_kernel_lays_it_out() {
        assert_eq!(size_of::<AdminCommand>(), 72);
        assert_eq!(std::mem::offset_of!(AdminCommand, address), 24);
        assert_eq!(std::mem::offset_of!(AdminCommand, word_10), 40);
    }

    #[test]
    fn what_is_no_controller_is_refused() {
        let null = std::fs::File::open("/dev/null").expect("it can be opened");
        assert_eq!(health_log(&null), Err(Errno::NOTTY));
    }
}

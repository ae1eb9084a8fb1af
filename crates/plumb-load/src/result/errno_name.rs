//! Error numbers by the names that manuals and kernel logs use.

use plumb_io::Errno;
use rustix::io::Errno as E;

macro_rules! names {
    ($($name:ident),+ $(,)?) => {
        /// Everything that storage calls are known to return; numbers differ between architectures.
        const NAMES: &[(E, &str)] = &[$((E::$name, concat!("E", stringify!($name)))),+];
    };
}

names! {
    PERM, NOENT, INTR, IO, NXIO, TOOBIG, BADF, AGAIN, NOMEM, ACCESS, FAULT, NOTBLK, BUSY, EXIST, XDEV,
    NODEV, NOTDIR, ISDIR, INVAL, NFILE, MFILE, NOTTY, TXTBSY, FBIG, NOSPC, SPIPE, ROFS, MLINK, PIPE,
    DOM, RANGE, DEADLK, NAMETOOLONG, NOLCK, NOSYS, LOOP, BADE, XFULL, NODATA, TIME, NOSR, REMOTE,
    NOLINK, COMM, PROTO, BADMSG, OVERFLOW, REMCHG, ILSEQ, OPNOTSUPP, ADDRNOTAVAIL, NETDOWN,
    NETUNREACH, NETRESET, CONNABORTED, CONNRESET, NOBUFS, NOTCONN, SHUTDOWN, TOOMANYREFS, TIMEDOUT,
    CONNREFUSED, HOSTDOWN, HOSTUNREACH, ALREADY, INPROGRESS, STALE, UCLEAN, REMOTEIO, DQUOT,
    NOMEDIUM, MEDIUMTYPE, CANCELED, NOKEY, KEYEXPIRED, KEYREVOKED, OWNERDEAD, NOTRECOVERABLE,
    HWPOISON,
}

/// The name, `EIO` for one; `E` and the number where there is none.
#[must_use]
pub fn of(errno: Errno) -> String {
    let named = NAMES.iter().find(|(known, _)| known.raw_os_error() == errno.0);
    match named {
        Some((E::ACCESS, _)) => "EACCES".to_owned(),
        Some((_, name)) => (*name).to_owned(),
        None => format!("E{}", errno.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_the_manual() {
        for (errno, name) in [
            (E::IO, "EIO"),
            (E::NOSPC, "ENOSPC"),
            (E::ACCESS, "EACCES"),
            (E::TIMEDOUT, "ETIMEDOUT"),
            (E::NODATA, "ENODATA"),
        ] {
            assert_eq!(of(errno.into()), name);
        }
        assert_eq!(of(Errno(5)), "EIO");
        assert_eq!(of(Errno(4095)), "E4095");
    }
}

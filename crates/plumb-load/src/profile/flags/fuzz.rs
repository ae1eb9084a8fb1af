//! A command line made of any bytes.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;

use super::{Parsed, Surroundings, parse, usage};
use crate::profile::json::normalised;

/// Reads `bytes` as a command line, a token between zero bytes, and asserts what always holds.
///
/// # Panics
/// When it does not.
pub fn fuzz_command_line(bytes: &[u8]) {
    let tokens = bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec);
    let args: Vec<_> = tokens.map(OsString::from_vec).collect();
    match parse(&args, &mut Anything) {
        Ok(Parsed::Run(invocation)) => {
            assert_eq!(invocation.tokens.len(), args.len());
            assert!(normalised(&invocation.profile).is_object());
            assert!(invocation.warnings.iter().all(|warning| !warning.contains('\n')));
        }
        Ok(Parsed::Usage { .. }) => assert!(!usage("plumb run").is_empty()),
        Ok(Parsed::Version | Parsed::SystemInfo(_) | Parsed::SignalledEvent { .. }) => {}
        Err(error) => {
            assert!(matches!(error.exit_code, 1 | 3));
            assert!(!error.message.is_empty(), "{error:?}");
            assert!(!error.help.is_empty(), "{error:?}");
            if let (Some(index), Some(token)) = (error.token_index, &error.token) {
                assert_eq!(*token, args[index].to_string_lossy());
                assert!(token.get(error.span.clone()).is_some(), "{error:?}");
                assert!(error.to_text("plumb run").contains('^'));
            }
            assert!(!error.render("plumb run").is_empty());
            assert!(error.to_json().is_object());
        }
    }
}

/// Surroundings that now do what they are asked for and now fail.
struct Anything;

impl Surroundings for Anything {
    fn create_event(&mut self, name: &str) -> io::Result<()> {
        self.signal_event(name)
    }

    fn signal_event(&mut self, name: &str) -> io::Result<()> {
        match name.len() % 7 {
            0 => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(()),
        }
    }

    fn read_profile(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let document: &[u8] = match path.len() % 5 {
            0 => return Err(io::ErrorKind::NotFound.into()),
            1 => b"\xff",
            2 => b"<Profile><Nonsense/></Profile>",
            3 => {
                b"<Profile><TimeSpans><TimeSpan><Targets><Target><Path>*1</Path></Target></Targets>\
                  </TimeSpan></TimeSpans></Profile>"
            }
            _ => {
                b"<Profile><TimeSpans><TimeSpan><Targets><Target><Path>a</Path></Target></Targets>\
                  </TimeSpan></TimeSpans></Profile>"
            }
        };
        Ok(document.to_vec())
    }

    fn uptime_millis(&mut self) -> u64 {
        1 << 40
    }
}

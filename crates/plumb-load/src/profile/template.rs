//! Templates: `*1`, `*2`, … in a profile stand for the targets of the command line (spec 3.8).

use plumb_units::convert;

use super::error::{ErrorClass, Violation};
use super::model::RawProfile;

/// Puts `targets` where the profile has `*1`, `*2`, …; without targets only looks at the templates.
///
/// # Errors
/// Class `template-target`: a template that is no `*` and a number from 1, one that has no target, or a
/// target that no template uses. The profile is then left as it was.
pub fn substitute(profile: &mut RawProfile, targets: &[String]) -> Result<(), Violation> {
    let mut used = vec![false; targets.len()];
    for path in paths(profile) {
        let Some(number) = place(path)? else { continue };
        if targets.is_empty() {
            continue;
        }
        match number.and_then(|number| used.get_mut(number - 1)) {
            Some(used) => *used = true,
            None => return Err(no_target(path, targets.len())),
        }
    }
    if let Some(unused) = used.iter().position(|used| !used) {
        return Err(Violation {
            class: ErrorClass::TemplateTarget,
            message: format!(
                "target '{}' of the command line is not used: the profile has no path '*{}'",
                targets[unused],
                unused + 1
            ),
            help: "leave the target out, or write the template into a <Path> of the profile"
                .to_owned(),
        });
    }
    if targets.is_empty() {
        return Ok(());
    }
    for target in profile.time_spans.iter_mut().flat_map(|span| &mut span.targets) {
        if let Some(number) = place(&target.path)?.flatten() {
            target.path.clone_from(&targets[number - 1]);
        }
    }
    Ok(())
}

fn paths(profile: &RawProfile) -> impl Iterator<Item = &str> {
    profile.time_spans.iter().flat_map(|span| &span.targets).map(|target| target.path.as_str())
}

/// The number of a template, from 1: `None` if the path is none, `Some(None)` if the number is beyond
/// any list of targets.
fn place(path: &str) -> Result<Option<Option<usize>>, Violation> {
    let Some(digits) = path.strip_prefix('*') else { return Ok(None) };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || digits.bytes().all(|byte| byte == b'0') {
        return Err(Violation {
            class: ErrorClass::TemplateTarget,
            message: format!("'{path}' is no template: a number from 1 must follow the *"),
            help: "write *1 for the first target of the command line, *2 for the second; \
                   a file of such a name is given as ./*name"
                .to_owned(),
        });
    }
    Ok(Some(digits.parse().ok().map(convert::to_usize)))
}

fn no_target(path: &str, given: usize) -> Violation {
    Violation {
        class: ErrorClass::TemplateTarget,
        message: format!("template '{path}' has no target: the command line names {given}"),
        help: format!("name {} targets after the options", path.trim_start_matches('*')),
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::{Target, TimeSpan};
    use super::*;

    /// Substitutes `given` into a profile of two time spans; `Ok` holds the paths afterwards.
    fn check(profile: [&[&str]; 2], given: &[&str], want: Result<&[&str], &str>) {
        let spans = profile.map(|paths| TimeSpan {
            targets: paths
                .iter()
                .map(|path| Target { path: (*path).to_owned(), ..Target::default() })
                .collect(),
            ..TimeSpan::default()
        });
        let mut profile = RawProfile { time_spans: spans.into(), ..RawProfile::default() };
        let before = profile.clone();
        let given: Vec<String> = given.iter().map(|path| (*path).to_owned()).collect();
        match (substitute(&mut profile, &given), want) {
            (Ok(()), Ok(want)) => assert_eq!(paths(&profile).collect::<Vec<_>>(), want),
            (Err(violation), Err(part)) => {
                assert_eq!(violation.class, ErrorClass::TemplateTarget);
                assert!(violation.message.contains(part), "{}", violation.message);
                assert_eq!(profile, before, "a refused substitution changes nothing");
            }
            (got, want) => panic!("got {got:?}, expected {want:?}"),
        }
    }

    #[test]
    fn templates_anywhere_take_the_targets_by_number() {
        check([&["*2", "fixed"], &["*1", "*02"]], &["a", "b"], Ok(&["b", "fixed", "a", "b"]));
    }

    #[test]
    fn without_targets_templates_stay() {
        check([&["*1"], &["*18446744073709551616"]], &[], Ok(&["*1", "*18446744073709551616"]));
    }

    #[test]
    fn every_template_and_every_target_must_be_matched() {
        check([&["*1"], &["*3"]], &["a", "b"], Err("'*3' has no target"));
        check([&["*1"], &["*99999999999999999999"]], &["a"], Err("has no target"));
        check([&["*1"], &["x"]], &["a", "b"], Err("'b' of the command line is not used"));
        check([&["x"], &["y"]], &["a"], Err("'a' of the command line is not used"));
    }

    #[test]
    fn a_template_is_a_star_and_a_number_from_1() {
        for bad in ["*", "*0", "*00", "*x", "*1x", "**1", "*-1", "*+1", "* 1", "*\u{661}"] {
            check([&["*1"], &[bad]], &[], Err("is no template"));
            check([&["*1"], &[bad]], &["a"], Err("is no template"));
        }
    }
}

//! File names that say nothing.

use super::Complaint;
use super::tree::Tree;

const HOMELESS: &[&str] = &["util", "utils", "common", "helper", "helpers", "misc", "manager"];

/// Complains about files and folders named after no noun.
pub(super) fn forbidden(tree: &Tree) -> Vec<Complaint> {
    let homeless = |path: &&str| {
        path.split('/')
            .map(|part| part.split('.').next().unwrap_or_default())
            .flat_map(|part| part.split(['_', '-']))
            .any(|word| HOMELESS.contains(&word))
    };
    tree.paths()
        .filter(homeless)
        .map(|path| Complaint::file(path, "its name says nothing: homeless code lacks its noun"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn homeless_code_is_refused() {
        check(
            forbidden,
            &[
                ("crates/plumb-io/src/disk_util.rs", ""),
                ("crates/plumb-io/tests/common/mod.rs", ""),
                ("docs/misc.md", ""),
                ("crates/plumb-io/src/commonly.rs", ""),
            ],
            &[
                "crates/plumb-io/src/disk_util.rs: ",
                "crates/plumb-io/tests/common/mod.rs: ",
                "docs/misc.md: ",
            ],
        );
    }
}

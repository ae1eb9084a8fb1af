//! Dependencies point down; crates of one layer do not know each other.

use super::Complaint;
use super::tree::Tree;

/// From the bottom up.
const LAYERS: &[&[&str]] = &[
    &["plumb-units"],
    &["plumb-sys"],
    &["plumb-io"],
    &["plumb-load", "plumb-tier", "plumb-serve"],
    &["plumb-study", "plumb-fleet", "plumb-store"],
    &["plumb"],
];

/// Complains about dependencies that do not point down, and about crates of no layer.
pub(super) fn order(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, manifest) in tree.texts_with("/Cargo.toml") {
        let Some(name) = path.strip_prefix("crates/").and_then(|p| p.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let Some(own) = layer(name) else {
            complaints.push(Complaint::file(
                path,
                format!("{name} has no layer: give it one in xtask/src/tidy/layers.rs"),
            ));
            continue;
        };
        for Dependency { line, name: other } in dependencies(manifest) {
            let is_ours = other == "xtask" || other == "plumb" || other.starts_with("plumb-");
            if is_ours && layer(&other).is_none_or(|theirs| theirs >= own) {
                complaints.push(Complaint::line(
                    path,
                    line,
                    format!("{name} must not depend on {other}: dependencies point down"),
                ));
            }
        }
    }
    complaints
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

/// A dependency as a manifest states it.
pub(super) struct Dependency {
    /// From 0.
    pub(super) line: usize,
    /// As written.
    pub(super) name: String,
}

/// Every dependency of a manifest, of every kind and for every platform.
pub(super) fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut inside = false;
    for (line, text) in manifest.lines().enumerate() {
        let text = text.split_once('#').map_or(text, |(before, _)| before).trim();
        if let Some(section) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = section.ends_with("dependencies");
            // `[dependencies.serde]`
            if let Some((_, name)) = section.rsplit_once("dependencies.") {
                found.push(Dependency { line, name: name.trim_matches('"').to_owned() });
            }
        } else if let Some((key, _)) = text.split_once('=').filter(|_| inside) {
            let name = key.trim().split('.').next().unwrap_or_default().trim_matches('"');
            found.push(Dependency { line, name: name.to_owned() });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn siblings_and_upward_dependencies_are_refused() {
        let load = "[package]\nname = \"plumb-load\"\n[dependencies]\nplumb-io.workspace = true\n\
                    plumb-tier = { path = \"../plumb-tier\" }\n[dev-dependencies]\nplumb = \"1\"\n";
        let sys =
            "[target.'cfg(unix)'.dependencies]\nplumb-units = \"1\"\n[dependencies.plumb-io]\n";
        check(
            order,
            &[("crates/plumb-load/Cargo.toml", load), ("crates/plumb-sys/Cargo.toml", sys)],
            &[
                "crates/plumb-load/Cargo.toml:5: plumb-load must not depend on plumb-tier",
                "crates/plumb-load/Cargo.toml:7: plumb-load must not depend on plumb:",
                "crates/plumb-sys/Cargo.toml:3: plumb-sys must not depend on plumb-io",
            ],
        );
    }

    #[test]
    fn a_crate_without_a_layer_is_refused() {
        check(
            order,
            &[("crates/odd/Cargo.toml", "")],
            &["crates/odd/Cargo.toml: odd has no layer"],
        );
    }

    #[test]
    fn downward_dependencies_pass() {
        let study = "[dependencies]\nplumb-load = \"1\"\nplumb-serve = \"1\"\nserde = \"1\"\n";
        check(order, &[("crates/plumb-study/Cargo.toml", study)], &[]);
    }
}

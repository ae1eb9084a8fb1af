//! Words that must not be in the repository: they tie it to one machine or to one way of fetching.

use super::Complaint;
use super::tree::Tree;

const ADVICE_PATH: &str = "a path of one machine: make it relative, or let the user give it";
const ADVICE_HOST: &str = "a registry's host: the package manager knows where to look";

const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/ro", "ot/"), ADVICE_PATH),
    (concat!("/ho", "me/"), ADVICE_PATH),
    (concat!("/wo", "rk/"), ADVICE_PATH),
    (concat!("/Us", "ers/"), ADVICE_PATH),
    (concat!("crates", ".io"), ADVICE_HOST),
    (concat!("deb.debian", ".org"), ADVICE_HOST),
    (concat!("pypi", ".org"), ADVICE_HOST),
    (concat!("npmjs", ".org"), ADVICE_HOST),
    (concat!("proxy.golang", ".org"), ADVICE_HOST),
    (concat!("maven", ".org"), ADVICE_HOST),
];

/// Complains about them everywhere but in the lock files, which cargo writes.
pub(super) fn forbidden(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| !path.ends_with("Cargo.lock")) {
        for (index, line) in text.lines().enumerate() {
            for (word, advice) in FORBIDDEN {
                if line.contains(word) {
                    complaints.push(Complaint::line(path, index, format!("`{word}`: {advice}")));
                }
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn each_word_is_refused() {
        let text = FORBIDDEN.iter().map(|(word, _)| format!("see {word}x\n")).collect::<String>();
        let wanted: Vec<String> =
            (1..=FORBIDDEN.len()).map(|line| format!("notes.md:{line}: ")).collect();
        let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
        check(forbidden, &[("notes.md", &text), ("fuzz/Cargo.lock", &text)], &wanted);
    }
}

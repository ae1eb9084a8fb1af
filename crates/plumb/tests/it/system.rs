//! `-Rs`: the machine alone.

use crate::program::plumb;

#[test]
fn the_system_is_printed_as_text_and_as_xml() {
    for line in ["run -Rs", "run -Rstext", "run --system-info"] {
        let text = plumb(line).succeeds_quietly().stdout;
        assert!(text.starts_with("System information:\n\n\tcomputer name: "), "{text}");
        assert!(text.contains("\tcpu count:\t\t"), "{text}");
    }
    let xml = plumb("run -Rsxml").succeeds_quietly().stdout;
    let document = roxmltree::Document::parse(&xml).expect("well-formed");
    assert_eq!(document.root_element().tag_name().name(), "System");
    let tool = document.descendants().find(|node| node.has_tag_name("Version"));
    assert_eq!(tool.and_then(|node| node.text()), Some(env!("CARGO_PKG_VERSION")));
}

#[test]
fn it_stands_alone() {
    for line in ["run -Rs f", "run -Rs -v", "run -Rs -b4K"] {
        let outcome = plumb(line).ends_with(3);
        assert_eq!(outcome.stdout, "", "{line}");
    }
}

//! `docs/reference/json-result.md`, made from the schema.

use std::fmt::Write;

use serde_json::Value;

/// The page.
pub(crate) fn page(schema: &str) -> String {
    let schema: Value = serde_json::from_str(schema).expect("the schema is JSON");
    let mut page = String::from(
        "# The JSON result\n\nMade from [result.schema.json](result.schema.json) by the tests; \
         `PLUMB_GOLDEN=write` writes it anew.\n\n",
    );
    let _ = writeln!(page, "{}\n", text(&schema["description"]));
    page.push_str(
        "Units are in the names: `_ns`, `_bytes`, `_per_s`, `_percent`. What could not be measured is \
         `null`, never 0; the member beside it says why. Numbers are written so that they read back as \
         they were.\n\n",
    );
    page.push_str("```console\n$ plumb run -L --output json=result.json ...\n");
    page.push_str("$ jq '.total.iops_per_s, .total.latency_ns.p99' result.json\n```\n\n");
    members(&mut page, "the document", &schema);
    let mut names = Vec::new();
    collect(&schema, &schema, &mut names);
    for name in names {
        let definition = &schema["$defs"][&name];
        let _ = writeln!(page, "## {name}\n\n{}\n", text(&definition["description"]));
        members(&mut page, &name, definition);
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// Definitions in the order in which a reader meets them.
fn collect(root: &Value, schema: &Value, names: &mut Vec<String>) {
    for (_, property) in properties(schema) {
        for part in std::iter::once(property).chain(alternatives(property)) {
            for part in [part, &part["items"]] {
                if let Some(name) = part["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
                    if !names.iter().any(|known| known == name) {
                        names.push(name.to_owned());
                        collect(root, &root["$defs"][name], names);
                    }
                } else {
                    collect(root, part, names);
                }
            }
        }
    }
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    schema["anyOf"].as_array().into_iter().flatten()
}

/// In the order in which they are written: `required` keeps it, the members that may be missing follow.
fn properties(schema: &Value) -> Vec<(&str, &Value)> {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let all = schema["properties"].as_object();
    let optional = all.into_iter().flat_map(|all| all.keys());
    let optional = optional.map(String::as_str).filter(|name| !required.contains(name));
    required
        .iter()
        .copied()
        .chain(optional)
        .map(|name| (name, &schema["properties"][name]))
        .collect()
}

fn members(page: &mut String, of: &str, schema: &Value) {
    let _ = writeln!(page, "| member of {of} | type | meaning |\n|---|---|---|");
    rows(page, "", schema);
    page.push('\n');
}

/// Objects without a name of their own are shown inside their owner.
fn rows(page: &mut String, prefix: &str, schema: &Value) {
    for (name, property) in properties(schema) {
        let meaning = text(&property["description"]).replace('|', "\\|");
        let _ = writeln!(page, "| `{prefix}{name}` | {} | {meaning} |", kind(property));
        for part in std::iter::once(property).chain(alternatives(property)) {
            rows(page, &format!("{prefix}{name}."), part);
            rows(page, &format!("{prefix}{name}[]."), &part["items"]);
        }
    }
}

fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return format!("[{name}](#{name})");
    }
    let several: Vec<String> = alternatives(schema).map(kind).collect();
    if !several.is_empty() {
        return several.join(" or ");
    }
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        Value::String(kind) if kind == "array" => match schema.get("items") {
            Some(items) if items.is_object() => format!("array of {}", kind_of_items(items)),
            _ => kind.clone(),
        },
        other => text(other).to_owned(),
    }
}

fn kind_of_items(items: &Value) -> String {
    if items.get("prefixItems").is_some() { "arrays".to_owned() } else { kind(items) }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

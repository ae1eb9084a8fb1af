//! JSON as people write it, in which no object may have a key twice: whoever reads it would take one and say nothing of the other.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value, and the first key in it that an object has twice.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Strict {
    pub(super) value: Value,
    pub(super) twice: Option<Twice>,
}

/// A key that is there twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice {
    /// Where: `id`, `runs_in_order[2].order`.
    pub key: String,
    /// Its values, in the order of the text.
    pub values: (Value, Value),
}

impl Twice {
    /// The same, seen from around.
    fn within(self, outer: &str) -> Self {
        let dot = if self.key.starts_with('[') { "" } else { "." };
        Self { key: format!("{outer}{dot}{}", self.key), ..self }
    }
}

impl From<Value> for Strict {
    fn from(value: Value) -> Self {
        Self { value, twice: None }
    }
}

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        reader.deserialize_any(Reader)
    }
}

/// Builds it from what the text has.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Strict, E> {
        Ok(Value::from(value).into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Strict, E> {
        Ok(Value::from(value).into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Strict, E> {
        Ok(Value::from(value).into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Strict, E> {
        Ok(Value::from(value).into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Strict, E> {
        Ok(Value::from(value).into())
    }

    fn visit_string<E>(self, value: String) -> Result<Strict, E> {
        Ok(Value::from(value).into())
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Value::Null.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        let mut list = Vec::new();
        let mut twice = None;
        while let Some(item) = items.next_element::<Strict>()? {
            let place = format!("[{}]", list.len());
            twice = twice.or_else(|| item.twice.map(|twice| twice.within(&place)));
            list.push(item.value);
        }
        Ok(Strict { value: Value::Array(list), twice })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Strict, A::Error> {
        let mut map = Map::new();
        let mut twice = None;
        while let Some((key, entry)) = entries.next_entry::<String, Strict>()? {
            twice = twice.or_else(|| entry.twice.map(|twice| twice.within(&key)));
            // The first stays: with the error it says whose it is.
            match map.get(&key).cloned() {
                None => drop(map.insert(key, entry.value)),
                Some(first) => {
                    twice = twice.or(Some(Twice { key, values: (first, entry.value) }));
                }
            }
        }
        Ok(Strict { value: Value::Object(map), twice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_it_is_elsewhere() {
        for text in [
            "null",
            "[true, -1, 18446744073709551615, 1.5, 1e300, 36893488147419103232, \"a\\u00e4\"]",
            "{\"a\": {\"b\": []}, \"c\": {}}",
        ] {
            let strict: Strict = serde_json::from_str(text).expect("JSON");
            assert_eq!(strict, serde_json::from_str::<Value>(text).expect("JSON").into(), "{text}");
        }
        assert!(serde_json::from_str::<Strict>("{\"a\": }").is_err());
    }

    #[test]
    fn a_key_that_is_there_twice_is_told_with_its_place() {
        let check = |text: &str, key: &str, values: (i32, i32)| {
            let twice = serde_json::from_str::<Strict>(text).expect("JSON").twice;
            let values = (values.0.into(), values.1.into());
            assert_eq!(twice, Some(Twice { key: key.to_owned(), values }), "{text}");
        };
        check("{\"id\": 1, \"id\": 2}", "id", (1, 2));
        check("{\"id\": 1, \"i\\u0064\": 1}", "id", (1, 1));
        check("{\"runs\": [{}, {\"order\": 1, \"order\": 3}]}", "runs[1].order", (1, 3));
        check("{\"a\": {\"b\": {\"c\": 1, \"c\": 2}}}", "a.b.c", (1, 2));
    }
}

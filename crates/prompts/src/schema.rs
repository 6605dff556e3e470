//! JSON schemas of replies, in the subset that structured output understands: all in one piece, every property required (an absent
//! one is null), no others, choices as plain lists, no formats and ranges (those are checked afterwards). What the properties mean
//! is said in the prompts, and our comments are nobody's business.

use std::sync::Arc;

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// What structured output does not know, or has no use for.
const IGNORED: [&str; 6] = [
    "$schema", "title", "format", "minimum", "maximum", "default",
];

/// The schema of a reply, as JSON.
pub fn of<T: JsonSchema>() -> Arc<str> {
    let settings = SchemaSettings::draft2020_12();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(simplify).transform(&mut schema);
    schema.as_value().to_string().into()
}

fn simplify(schema: &mut Schema) {
    for key in IGNORED {
        schema.remove(key);
    }
    if let Some(variants) = schema.remove("oneOf") {
        let variants = variants.as_array().into_iter().flatten();
        let names: Vec<_> = variants.map(|variant| variant["const"].clone()).collect();
        schema.insert("type".to_owned(), json!("string"));
        schema.insert("enum".to_owned(), json!(names));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = properties.map(|properties| properties.keys().cloned().collect::<Vec<_>>());
    if let Some(names) = names {
        schema.insert("required".to_owned(), json!(names));
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

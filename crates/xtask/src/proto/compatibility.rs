//! Which changes between two descriptor sets break a client of the older one, on the wire or in JSON.

use std::collections::BTreeMap;

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto,
};

/// Every breaking change, one line each, naming what changed.
pub fn breaking_changes(released: &FileDescriptorSet, current: &FileDescriptorSet) -> Vec<String> {
    let (old, new) = (Index::of(released), Index::of(current));
    let mut changes = Vec::new();
    for (name, message) in &old.messages {
        match new.messages.get(name) {
            Some(now) => compare_messages(name, message, now, &mut changes),
            None => changes.push(format!("message {name} was removed")),
        }
    }
    for (name, values) in &old.enums {
        match new.enums.get(name) {
            Some(now) => compare_enums(name, values, now, &mut changes),
            None => changes.push(format!("enum {name} was removed")),
        }
    }
    for (name, service) in &old.services {
        match new.services.get(name) {
            Some(now) => compare_services(name, service, now, &mut changes),
            None => changes.push(format!("service {name} was removed")),
        }
    }
    changes
}

/// Everything declared, by full name.
#[derive(Default)]
struct Index<'a> {
    messages: BTreeMap<String, &'a DescriptorProto>,
    enums: BTreeMap<String, &'a EnumDescriptorProto>,
    services: BTreeMap<String, &'a ServiceDescriptorProto>,
}

impl<'a> Index<'a> {
    fn of(set: &'a FileDescriptorSet) -> Self {
        let mut index = Self::default();
        for file in &set.file {
            let package = file.package();
            file.message_type
                .iter()
                .for_each(|message| index.add_message(package, message));
            file.enum_type
                .iter()
                .for_each(|values| index.add_enum(package, values));
            for service in &file.service {
                index
                    .services
                    .insert(format!("{package}.{}", service.name()), service);
            }
        }
        index
    }

    fn add_message(&mut self, scope: &str, message: &'a DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        message
            .nested_type
            .iter()
            .for_each(|nested| self.add_message(&name, nested));
        message
            .enum_type
            .iter()
            .for_each(|values| self.add_enum(&name, values));
        self.messages.insert(name, message);
    }

    fn add_enum(&mut self, scope: &str, values: &'a EnumDescriptorProto) {
        self.enums
            .insert(format!("{scope}.{}", values.name()), values);
    }
}

fn compare_messages(
    name: &str,
    old: &DescriptorProto,
    new: &DescriptorProto,
    changes: &mut Vec<String>,
) {
    for field in &old.field {
        let place = format!("{name}.{}", field.name());
        if let Some(now) = new.field.iter().find(|now| now.number() == field.number()) {
            compare_fields(&place, (old, field), (new, now), changes);
        } else if let Some(now) = new.field.iter().find(|now| now.name() == field.name()) {
            changes.push(format!(
                "field {place} was renumbered from {} to {}",
                field.number(),
                now.number()
            ));
        } else if !is_reserved(new, field) {
            let number = field.number();
            changes.push(format!(
                "field {place} was removed: reserve its number ({number}) and its name"
            ));
        }
    }
}

fn is_reserved(message: &DescriptorProto, field: &FieldDescriptorProto) -> bool {
    // The end of a message's reserved range is exclusive.
    let number = message
        .reserved_range
        .iter()
        .any(|range| (range.start()..range.end()).contains(&field.number()));
    number
        && message
            .reserved_name
            .iter()
            .any(|name| name == field.name())
}

fn compare_fields(
    place: &str,
    (old_message, old): (&DescriptorProto, &FieldDescriptorProto),
    (new_message, new): (&DescriptorProto, &FieldDescriptorProto),
    changes: &mut Vec<String>,
) {
    let kind = |field: &FieldDescriptorProto| match field.type_name() {
        "" => field
            .r#type()
            .as_str_name()
            .trim_start_matches("TYPE_")
            .to_lowercase(),
        name => name.trim_start_matches('.').to_owned(),
    };
    let choice = |message: &DescriptorProto, field: &FieldDescriptorProto| {
        let index = field.oneof_index.filter(|_| !field.proto3_optional())?;
        Some(
            message
                .oneof_decl
                .get(usize::try_from(index).ok()?)?
                .name()
                .to_owned(),
        )
    };
    let label = |field: &FieldDescriptorProto| {
        field
            .label()
            .as_str_name()
            .trim_start_matches("LABEL_")
            .to_lowercase()
    };
    let aspects = [
        ("name", old.name().to_owned(), new.name().to_owned()),
        (
            "JSON name",
            old.json_name().to_owned(),
            new.json_name().to_owned(),
        ),
        ("type", kind(old), kind(new)),
        ("label", label(old), label(new)),
        (
            "oneof",
            format!("{:?}", choice(old_message, old)),
            format!("{:?}", choice(new_message, new)),
        ),
    ];
    for (aspect, before, after) in aspects
        .into_iter()
        .filter(|(_, before, after)| before != after)
    {
        changes.push(format!(
            "field {place}: its {aspect} changed from {before} to {after}"
        ));
    }
}

fn compare_enums(
    name: &str,
    old: &EnumDescriptorProto,
    new: &EnumDescriptorProto,
    changes: &mut Vec<String>,
) {
    for value in &old.value {
        let place = format!("{name}.{}", value.name());
        let mut same_number = new
            .value
            .iter()
            .filter(|now| now.number() == value.number())
            .peekable();
        if same_number.peek().is_none() {
            // The end of an enum's reserved range is inclusive, unlike a message's.
            let number = new
                .reserved_range
                .iter()
                .any(|range| (range.start()..=range.end()).contains(&value.number()));
            if !(number && new.reserved_name.iter().any(|name| name == value.name())) {
                let number = value.number();
                changes.push(format!(
                    "enum value {place} was removed: reserve its number ({number}) and its name"
                ));
            }
        } else if !same_number.any(|now| now.name() == value.name()) {
            changes.push(format!("enum value {place} was renamed"));
        }
    }
}

fn compare_services(
    name: &str,
    old: &ServiceDescriptorProto,
    new: &ServiceDescriptorProto,
    changes: &mut Vec<String>,
) {
    let shape = |method: &MethodDescriptorProto| {
        let side = |streaming, kind: &str| {
            format!(
                "{}{}",
                if streaming { "stream " } else { "" },
                kind.trim_start_matches('.')
            )
        };
        let input = side(method.client_streaming(), method.input_type());
        format!(
            "({input}) -> {}",
            side(method.server_streaming(), method.output_type())
        )
    };
    for method in &old.method {
        let place = format!("{name}/{}", method.name());
        match new.method.iter().find(|now| now.name() == method.name()) {
            None => changes.push(format!("method {place} was removed")),
            Some(now) if shape(now) != shape(method) => {
                changes.push(format!(
                    "method {place} changed from {} to {}",
                    shape(method),
                    shape(now)
                ));
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;

//! Whether a document can be used: checked before it is kept, with every problem at its field.

use memfleet_assembly::{Template, Tokenizers};
use memfleet_domain::Fault;
use memfleet_domain::fault::FieldViolation;
use memfleet_domain::ids::SettingName;
use memfleet_domain::model_profile::ModelProfile;
use memfleet_domain::policy::Policy;
use memfleet_gates::routing::Exemplars;

use crate::assemble::template as known_template;
use crate::node_policy::usable;
use crate::settings::{self, TenantSettings};

/// A policy: its values, its patterns, and that the template it names is there.
pub fn policy(policy: &Policy, tenant: &TenantSettings) -> Result<(), Fault> {
    let mut violations: Vec<_> = usable(policy)
        .into_iter()
        .map(|problem| FieldViolation {
            field: format!("policy.{}", problem.field),
            description: problem.description,
        })
        .collect();
    if let Some(name) = &policy.format.template
        && let Err(fault) = known_template(name, tenant)
    {
        violations.extend(fault.fields);
    }
    match violations.is_empty() {
        true => Ok(()),
        false => Err(Fault::invalid_fields(violations)),
    }
}

/// A template as TOML, which says the name that it is kept by.
pub fn template(name: &SettingName, body: &str) -> Result<(), Fault> {
    let template =
        Template::parse(body).map_err(|error| Fault::invalid("body", error.to_string()))?;
    named(name, "id", &template.id)
}

/// A model's profile as JSON, which says the name that it is kept by.
pub fn profile_document(
    name: &SettingName,
    body: &str,
    tokenizers: &Tokenizers,
) -> Result<(), Fault> {
    let read: ModelProfile =
        serde_json::from_str(body).map_err(|error| Fault::invalid("body", error.to_string()))?;
    named(name, "name", &read.name)?;
    profile(&read, tokenizers)
}

/// A model's profile; its tokenizer must be known here.
pub fn profile(profile: &ModelProfile, tokenizers: &Tokenizers) -> Result<(), Fault> {
    let known = tokenizers.names();
    if let Some(tokenizer) = profile.tokenizer.as_deref()
        && !known.contains(&tokenizer)
    {
        let known = known.join(", ");
        let problem = format!("`{tokenizer}` is not known here; known are {known}");
        return Err(Fault::invalid("profile.tokenizer", problem));
    }
    let start = profile.name.strip_suffix('*').unwrap_or(&profile.name);
    if start.contains('*') {
        let problem = "may end in `*`, which stands for any end, and have none elsewhere";
        return Err(Fault::invalid("profile.name", problem));
    }
    let (window, reserved) = (profile.window_tokens, profile.reserved_output_tokens);
    if window
        .zip(reserved)
        .is_some_and(|(window, reserved)| reserved >= window)
    {
        let problem =
            "leaves nothing of the window for a prompt: it must be less than `window_tokens`";
        return Err(Fault::invalid("profile.reserved_output_tokens", problem));
    }
    Ok(())
}

/// Labelled examples of gate 2 as TOML, by the language of spaces.
pub fn exemplars(name: &SettingName, body: &str) -> Result<(), Fault> {
    settings::names_examples(name.as_str()).map_err(|problem| Fault::invalid("name", problem))?;
    let read = Exemplars::parse(body);
    read.map(drop)
        .map_err(|error| Fault::invalid("body", error.to_string()))
}

fn named(name: &SettingName, field: &str, said: &str) -> Result<(), Fault> {
    if name.as_str() == said {
        return Ok(());
    }
    let problem = format!("is `{name}`, but the `{field}` in the document is `{said}`");
    Err(Fault::invalid("name", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_refused_where_it_fits_no_model_or_leaves_no_room() {
        let refused = |name: &str, window, reserved| {
            let profile = ModelProfile {
                name: name.to_owned(),
                window_tokens: window,
                reserved_output_tokens: reserved,
                ..ModelProfile::default()
            };
            let fault = super::profile(&profile, &Tokenizers::default()).err()?;
            Some(fault.fields[0].field.clone())
        };
        assert_eq!(refused("my*x", None, None).unwrap(), "profile.name");
        let room = refused("my*", Some(4_000), Some(4_000)).unwrap();
        assert_eq!(room, "profile.reserved_output_tokens");
        assert_eq!(refused("my*", Some(4_000), Some(3_999)), None);
        assert_eq!(refused("", None, Some(1)), None);
    }
}

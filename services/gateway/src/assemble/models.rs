//! What is known of models: shipped profiles, those of the tenant over them, that of the request over both.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use memfleet_domain::assembly::ProviderFormat;
use memfleet_domain::model_profile::ModelProfile;
use serde::Deserialize;

use crate::settings::TenantSettings;

#[derive(Deserialize)]
struct Shipped {
    model: Vec<ModelProfile>,
}

static SHIPPED: LazyLock<Vec<ModelProfile>> = LazyLock::new(|| {
    let shipped: Shipped = toml::from_str(include_str!("../../data/models.toml"))
        .expect("the shipped profiles are read by a test");
    shipped.model
});

/// A model that a prompt is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Its name; empty where nobody says it.
    pub name: String,
    /// Its context window in tokens, where it is known.
    pub window: Option<u32>,
    /// Tokens of it kept free for the answer, where something is said of them.
    pub reserved_output: Option<u32>,
    /// Name of its tokenizer.
    pub tokenizer: String,
    /// Whether it takes a system prompt.
    pub supports_system: bool,
    /// Whether it calls tools.
    pub supports_tools: bool,
}

/// All profiles by name, the tenant's over those that are shipped.
pub fn all(tenant: &TenantSettings) -> Vec<ModelProfile> {
    let named = |profile: &ModelProfile| (profile.name.clone(), profile.clone());
    let mut profiles: BTreeMap<_, _> = SHIPPED.iter().map(named).collect();
    profiles.extend(tenant.models.values().map(|model| named(&model.value)));
    profiles.into_values().collect()
}

/// What counts for the models of `OpenAI`, and where nobody says which model it is.
pub const DEFAULT_TOKENIZER: &str = "o200k_base";
/// What counts for models that nothing is known of.
const UNKNOWN_TOKENIZER: &str = "approximate";

/// The model that a request names, or that its prompt does. `format` is the provider whose request it is for, where it is for one.
pub fn model(
    asked: ModelProfile,
    in_prompt: Option<&str>,
    format: Option<ProviderFormat>,
    tenant: &TenantSettings,
) -> Model {
    let name = match asked.name.as_str() {
        "" => in_prompt.unwrap_or_default().to_owned(),
        name => name.to_owned(),
    };
    let best = |profiles: &mut dyn Iterator<Item = &ModelProfile>| {
        let fitting = profiles.filter_map(|profile| Some((profile.fits(&name)?, profile)));
        fitting
            .max_by_key(|(fits, _)| *fits)
            .map(|(_, profile)| profile.clone())
    };
    let own = best(&mut tenant.models.values().map(|model| &model.value));
    let shipped = best(&mut SHIPPED.iter());
    let known = asked
        .over(own.unwrap_or_default())
        .over(shipped.unwrap_or_default());
    let is_named = !name.is_empty();
    Model {
        name,
        window: known.window_tokens,
        reserved_output: known.reserved_output_tokens,
        tokenizer: known
            .tokenizer
            .unwrap_or_else(|| by_default(is_named, format).to_owned()),
        supports_system: known.supports_system.unwrap_or(true),
        supports_tools: known.supports_tools.unwrap_or(true),
    }
}

/// What counts for a model of which nobody says what does: where that may be wrong, a bound of it.
fn by_default(is_named: bool, format: Option<ProviderFormat>) -> &'static str {
    use ProviderFormat::{OpenaiChat, OpenaiResponses};
    match format {
        None | Some(OpenaiChat | OpenaiResponses) if !is_named => DEFAULT_TOKENIZER,
        _ => UNKNOWN_TOKENIZER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Versioned;

    fn named(name: &str) -> ModelProfile {
        ModelProfile {
            name: name.to_owned(),
            ..ModelProfile::default()
        }
    }

    #[test]
    fn a_model_is_known_by_its_name_the_tenant_stands_over_what_is_shipped_and_the_request_over_both()
     {
        let mut tenant = TenantSettings::default();
        let shipped = model(ModelProfile::default(), Some("gpt-4o-mini"), None, &tenant);
        assert_eq!(shipped.window, Some(128_000));
        assert_eq!(shipped.tokenizer, "o200k_base");
        let value = ModelProfile {
            window_tokens: Some(1_000),
            ..named("gpt-4o-mini")
        };
        tenant
            .models
            .insert(value.name.clone(), Versioned { version: 1, value });
        let own = model(named("gpt-4o-mini"), None, None, &tenant);
        assert_eq!(
            (own.window, own.tokenizer.as_str()),
            (Some(1_000), "o200k_base")
        );
        let asked = ModelProfile {
            window_tokens: Some(7),
            ..named("gpt-4o-mini")
        };
        assert_eq!(model(asked, Some("other"), None, &tenant).window, Some(7));
        let unknown = model(named("unheard-of"), None, None, &tenant);
        assert_eq!(
            (unknown.window, unknown.tokenizer.as_str()),
            (None, "approximate")
        );
        for (format, counted) in [
            (None, "o200k_base"),
            (Some(ProviderFormat::OpenaiChat), "o200k_base"),
            (Some(ProviderFormat::Gemini), "approximate"),
        ] {
            let nameless = model(ModelProfile::default(), None, format, &tenant);
            assert_eq!(nameless.tokenizer, counted);
        }
    }
}

//! Columns of a tenant's settings.

use memfleet_domain::ids::{SettingName, SpaceId};
use memfleet_ports::settings::{SettingKey, SettingKind};

use crate::damage::{Result, damaged};
use crate::turns::name;

/// The space of a document; the columns of what is for all of a tenant's are empty there.
pub fn setting_space(key: &SettingKey) -> &str {
    key.space.as_ref().map_or("", SpaceId::as_str)
}

/// Which document it is.
pub fn setting_key(kind: &str, space: &str, called: &str) -> Result<SettingKey> {
    let kind: Option<SettingKind> = kind.parse().ok();
    let space = (!space.is_empty()).then(|| name(SpaceId::new(space)));
    Ok(SettingKey {
        kind: kind.ok_or_else(|| damaged("a kind of setting that nobody knows"))?,
        space: space.transpose()?,
        name: name(SettingName::new(called))?,
    })
}

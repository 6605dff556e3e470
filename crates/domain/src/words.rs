//! Closed vocabularies: enums whose values have stable names.

/// Enums whose values are written, stored and read by a stable name. What is not one of them is refused with the list of those that are.
#[macro_export]
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of_value:meta])* $value:ident = $text:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
            pub enum $name {
                $($(#[$of_value])* #[serde(rename = $text)] $value,)*
            }

            impl $name {
                /// Every value, in the order of the wire.
                pub const ALL: &[Self] = &[$(Self::$value),*];

                /// Its stable name.
                pub fn name(self) -> &'static str {
                    match self {
                        $(Self::$value => $text,)*
                    }
                }
            }

            impl std::fmt::Display for $name {
                fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    formatter.pad(self.name())
                }
            }

            impl std::str::FromStr for $name {
                type Err = String;

                fn from_str(text: &str) -> std::result::Result<Self, String> {
                    Self::ALL.iter().find(|value| value.name() == text).copied().ok_or_else(|| {
                        format!("must be one of {}", [$($text),*].join(", "))
                    })
                }
            }
        )*
    };
}

//! What the descriptors say of the methods served: their names (which bounds the labels of metrics) and which are streams.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use prost::Message;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET as REFLECTION_V1;
use tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET as REFLECTION_V1ALPHA;

/// One method of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Method {
    /// `package.Service/Method`, the label of its metrics.
    pub name: Arc<str>,
    /// Whether either side sends several messages: such a call lives as long as its caller likes.
    pub streaming: bool,
    /// Marks streams of health and reflection, which are open to callers without a key for as long
    /// as these like.
    pub is_watch: bool,
}

/// Packages of the services that every server has.
const STANDARD_PACKAGES: [&str; 2] = ["grpc.health.", "grpc.reflection."];

/// The methods by request path (`/package.Service/Method`).
#[derive(Debug)]
pub(super) struct Methods {
    by_path: HashMap<String, Method>,
    services: BTreeSet<String>,
    unknown: Method,
}

impl Methods {
    /// Reads encoded file descriptor sets.
    pub(super) fn from_descriptors(descriptors: &[&[u8]]) -> Result<Self, prost::DecodeError> {
        let unknown = Method {
            name: "unknown".into(),
            streaming: false,
            is_watch: false,
        };
        let mut methods = Self {
            by_path: HashMap::new(),
            services: BTreeSet::new(),
            unknown,
        };
        let standard = [
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            REFLECTION_V1,
            REFLECTION_V1ALPHA,
        ];
        for set in descriptors.iter().copied().chain(standard) {
            for file in &FileDescriptorSet::decode(set)?.file {
                methods.add(file);
            }
        }
        Ok(methods)
    }

    fn add(&mut self, file: &FileDescriptorProto) {
        for service in &file.service {
            let service_name = format!("{}.{}", file.package(), service.name());
            for method in &service.method {
                let name = format!("{service_name}/{}", method.name());
                let streaming = method.client_streaming() || method.server_streaming();
                let is_standard = |package: &&str| service_name.starts_with(*package);
                let is_watch = streaming && STANDARD_PACKAGES.iter().any(is_standard);
                self.by_path.insert(
                    format!("/{name}"),
                    Method {
                        name: name.into(),
                        streaming,
                        is_watch,
                    },
                );
            }
            self.services.insert(service_name);
        }
    }

    /// The method at a request path; one named `unknown` for paths that no descriptor names.
    pub(super) fn at(&self, path: &str) -> &Method {
        self.by_path.get(path).unwrap_or(&self.unknown)
    }

    /// Full names of the services.
    pub(super) fn services(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_from_single_calls_and_unknown_paths_share_a_name() {
        let methods = Methods::from_descriptors(&[]).unwrap();
        assert!(!methods.at("/grpc.health.v1.Health/Check").streaming);
        assert!(methods.at("/grpc.health.v1.Health/Watch").streaming);
        assert_eq!(&*methods.at("/no.such/Thing").name, "unknown");
        let reflection = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
        assert!(methods.at(reflection).streaming);
        let mut services = methods.services();
        assert!(services.any(|service| service == "grpc.health.v1.Health"));
    }
}

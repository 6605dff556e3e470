//! What Qdrant's errors mean for a store.

use memfleet_ports::store::StoreError;
use qdrant_client::QdrantError;

/// The server is not the truth: whatever is wrong with it, the store still answers.
pub fn unavailable(error: QdrantError) -> StoreError {
    StoreError::Unavailable(match error {
        // Its metadata may hold headers.
        QdrantError::ResponseError { status } => {
            format!("Qdrant: {:?}: {}", status.code(), status.message())
        }
        other => format!("Qdrant: {other}"),
    })
}

//! Where terms are.

use std::collections::HashMap;

use memfleet_columns::{space_key, term_key, to_postings};
use memfleet_domain::Scope;
use memfleet_ports::candidates::TermPassages;
use sqlx::{PgConnection, Row};

use crate::failure::Outcome;
use crate::rows::to_u32;
use crate::scope::space_id;

pub async fn postings(
    connection: &mut PgConnection,
    scope: &Scope,
    terms: &[String],
) -> Outcome<Vec<TermPassages>> {
    let keys: Vec<i64> = terms.iter().map(|term| term_key(term)).collect();
    let rows = sqlx::query(concat!(
        "SELECT term, block, passages FROM postings WHERE tenant = $1 AND space = ",
        space_id!(),
        " AND term = ANY ($3) ORDER BY term, block"
    ))
    .bind(scope.tenant.as_str())
    .bind(space_key(scope))
    .bind(&keys)
    .fetch_all(connection)
    .await?;
    let mut found: HashMap<i64, TermPassages> = HashMap::new();
    for row in rows {
        let block = to_u32(row.try_get(1)?);
        let passages = to_postings(block, row.try_get(2)?)?;
        found.entry(row.try_get(0)?).or_default().extend(passages);
    }
    let passages = |key| found.get(key).cloned().unwrap_or_default();
    Ok(keys.iter().map(passages).collect())
}

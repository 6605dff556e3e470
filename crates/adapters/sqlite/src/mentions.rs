//! Which exchanges and which injections hold words of a turn. The turns of one are all over these lists, a page for each, so they are written for
//! many at once and by nobody's call, and whoever looks for a turn has those written first that wait.

use sqlx::SqliteConnection;

use crate::failure::Outcome;
use crate::store::SqliteStore;

/// How many are listed at once.
const MANY: i64 = 64;

/// One of the lists.
pub struct Mentions {
    count: &'static str,
    list: &'static str,
    done: &'static str,
}

/// Of exchanges.
pub static EXCHANGES: Mentions = Mentions {
    count: "SELECT count(*) FROM unlisted_exchanges",
    list: "INSERT OR IGNORE INTO exchange_turns (tenant, space, turn, exchange)
         SELECT e.tenant, t.value ->> 0, unhex(t.value ->> 1, '-'), e.id
         FROM unlisted_exchanges u JOIN exchanges e ON e.id = u.exchange, json_each(e.turns) t ORDER BY 1, 2, 3",
    done: "DELETE FROM unlisted_exchanges",
};

/// Of injections.
pub static INJECTIONS: Mentions = Mentions {
    count: "SELECT count(*) FROM unlisted_injections",
    list: "INSERT OR IGNORE INTO injection_turns (tenant, space, turn, at, id, injection)
         SELECT i.tenant, t.value ->> 0, unhex(t.value ->> 1, '-'), i.at, i.id, i.key
         FROM unlisted_injections u JOIN injections i ON i.key = u.injection, json_each(i.turns) t ORDER BY 1, 2, 3",
    done: "DELETE FROM unlisted_injections",
};

impl Mentions {
    /// How many wait to be listed.
    pub async fn waiting(&self, connection: &mut SqliteConnection) -> Outcome<i64> {
        Ok(sqlx::query_scalar(self.count).fetch_one(connection).await?)
    }

    /// Lists all that wait.
    pub async fn list_all(&self, connection: &mut SqliteConnection) -> Outcome<()> {
        for change in [self.list, self.done] {
            sqlx::query(change).execute(&mut *connection).await?;
        }
        Ok(())
    }
}

impl SqliteStore {
    /// Has those listed that wait, soon, each time that there are many more.
    pub(crate) fn list_soon(&self, mentions: &'static Mentions, waiting: i64) {
        if waiting == 0 || waiting % MANY != 0 {
            return;
        }
        let store = self.clone();
        tokio::spawn(async move {
            if let Err(error) = store.list(mentions).await {
                // Who looks for a turn lists them.
                tracing::debug!("turns are not listed: {}", error.0);
            }
        });
    }

    /// Lists all that wait.
    pub(crate) async fn list(&self, mentions: &Mentions) -> Outcome<()> {
        let mut write = self.write_briefly_as_worker().await?;
        mentions.list_all(&mut write).await?;
        write.commit().await
    }
}

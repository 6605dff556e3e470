//! Reader whose statements a test changes.

use async_trait::async_trait;
use memfleet_domain::Fault;
use memfleet_domain::statement::{RelationScores, Statement};
use memfleet_ports::testing::SentenceReader;
use memfleet_ports::turn_reader::{
    NeedQuestion, PromptReading, ReaderAnswers, TurnComparison, TurnInContext, TurnReader,
};

/// Reader by sentences that changes the statements of every turn before it gives them.
pub struct EditingReader {
    reader: SentenceReader,
    edit: fn(&mut Vec<Statement>),
}

impl EditingReader {
    pub fn new(edit: fn(&mut Vec<Statement>)) -> Self {
        Self {
            reader: SentenceReader::default(),
            edit,
        }
    }
}

#[async_trait]
impl TurnReader for EditingReader {
    async fn statements(
        &self,
        turns: Vec<TurnInContext>,
    ) -> Result<ReaderAnswers<Vec<Statement>>, Fault> {
        let mut read = self.reader.statements(turns).await?;
        read.answers.iter_mut().for_each(self.edit);
        Ok(read)
    }

    async fn relations(
        &self,
        pairs: Vec<TurnComparison>,
    ) -> Result<ReaderAnswers<Vec<RelationScores>>, Fault> {
        self.reader.relations(pairs).await
    }

    async fn needs(&self, question: NeedQuestion) -> Result<PromptReading, Fault> {
        self.reader.needs(question).await
    }
}

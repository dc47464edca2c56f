//! Checking everything.

use std::io;

use super::OfflineStore;
use super::findings::Findings;

impl OfflineStore {
    /// Looks at every byte that means something. Memory grows with the number of queues, not of messages.
    pub fn check(&self) -> io::Result<Findings> {
        let mut found = Findings::default();
        self.found_at_open.iter().for_each(|finding| found.add(finding.clone()));
        let seen = self.check_log(&mut found)?;
        self.check_queues(&seen, &mut found)?;
        self.check_compaction(&seen, &mut found)?;
        self.check_index(&mut found)?;
        self.check_checkpoint(&mut found);
        self.check_config(&mut found)?;
        Ok(found)
    }
}

//! What a trace knows of the workers' L1, and what is known of it after a replay.
//!
//! A replay finds the workers in any state that other launches have left. So the account of a
//! capture knows nothing but kernel text: its launches set the index of the launch messages, write
//! the messages and configurations that they use, and the table of go targets. Text lies where it
//! lay at the capture: before a replay it is sent again where it does not.

use super::super::cores::CoreSet;
use super::super::sequence::Compiled;
use super::{Account, Block, UNKNOWN};

impl Account {
    /// The account of a capture that begins now.
    pub(in super::super) fn for_trace(&self) -> Self {
        let mut account = self.clone();
        account.forget_mailboxes();
        account.in_flight = None;
        account.parked = Default::default();
        account.parked_targets = Default::default();
        account.counted = Some(0);
        account
    }

    /// Address of the text of a program that all of its cores have.
    pub(in super::super) fn resident(&self, compiled: &Compiled) -> Option<u32> {
        let (id, text) = self.find_text(compiled);
        text.filter(|_| self.missing(id, compiled).iter().all(CoreSet::is_empty))
    }

    /// For each role the cores that lack its text at `at`; notes that they get it. Other text that
    /// lies there is gone.
    pub(in super::super) fn bring_text(&mut self, compiled: &Compiled, at: u32) -> Vec<CoreSet> {
        let there = |block: &&mut Block| block.range.start == at && block.is_of(compiled);
        let id = match self.blocks.iter_mut().find(there) {
            Some(block) => block.id,
            None => {
                let range = at..at + compiled.text_bytes;
                self.blocks.retain(|block| !block.meets(&range));
                self.ids += 1;
                self.blocks.push(Block { id: self.ids, range, roles: Vec::new() });
                self.ids
            }
        };
        let missing = self.missing(id, compiled);
        if let Some(block) = self.blocks.iter_mut().find(|block| block.id == id) {
            block.note(compiled);
        }
        missing
    }

    /// Notes that a trace was replayed whose capture ended with the account `end`.
    pub(in super::super) fn replayed(&mut self, end: &Self) {
        for (message, &after) in self.messages.iter_mut().zip(&end.messages) {
            if after != UNKNOWN {
                *message = after;
            }
        }
        // Slots and messages may have been written on some cores: what they hold is sent again.
        self.contents = Default::default();
        self.held = Default::default();
        self.go_index = self.go_index.with(&end.go_index);
        self.disarmed = self.disarmed.with(&end.disarmed);
        if !end.targets.is_empty() {
            self.targets.clone_from(&end.targets);
        }
        self.stream = true;
        self.in_flight = None;
    }
}

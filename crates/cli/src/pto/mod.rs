//! `tilework pto`: the Ascend cluster.

pub mod args;
mod explore;
mod ids;
mod run;

use crate::failure::Outcome;
use args::PtoCommand;

/// Does a command.
pub fn command(command: PtoCommand) -> Outcome<()> {
    match command {
        PtoCommand::Ids(args) => ids::list(&args),
        PtoCommand::Run(args) => run::run(&args),
        PtoCommand::Explore(args) => explore::explore(&args),
    }
}

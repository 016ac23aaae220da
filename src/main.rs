//! The table of contents: parse the command line, run one command, turn an
//! error into an exit status.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use spark_exporter::cli::Cli;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(error) => {
            // A closed stderr is no reason to panic on the way out.
            let _ = writeln!(std::io::stderr(), "spark-exporter: {error:#}");
            ExitCode::from(2)
        }
    }
}

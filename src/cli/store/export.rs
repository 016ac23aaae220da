//! `spark-exporter store export`.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::Outcome;
use crate::store::{Backend, StoreError};

/// Writes all of the store as JSON lines to `output`, which is there once it
/// is whole, or to standard output.
pub(super) fn run(store: &dyn Backend, output: Option<&Path>) -> anyhow::Result<Outcome> {
    let Some(path) = output else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        let written = write(store, &mut out).and_then(|()| Ok(out.flush()?));
        return match written {
            // Who reads has seen enough (`head`).
            Err(error) if is_broken_pipe(&error) => Ok(Outcome::Good),
            written => written.map(|()| Outcome::Good),
        };
    };
    let context = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".spark-exporter-")
        .suffix(".part")
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .with_context(context)?;
    let mut out = BufWriter::new(file);
    write(store, &mut out).with_context(context)?;
    let file =
        out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(context)?;
    file.as_file().sync_all().with_context(context)?;
    file.persist(path).with_context(context)?;
    Ok(Outcome::Good)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn write(store: &dyn Backend, out: &mut impl Write) -> anyhow::Result<()> {
    let (meta, size) = (store.meta()?, store.size()?);
    line(
        out,
        &json!({"meta": {
            "version": store.version(),
            "created_ms": meta.created_ms,
            "forgotten_ms": meta.has_forgotten().then_some(meta.forgotten_ms),
            "runs": size.runs,
        }}),
    )?;
    for (name, totals) in store.totals()? {
        line(
            out,
            &json!({"totals": {
                "spark_cluster": name.cluster,
                "app_name": name.app_name,
                "totals": totals,
            }}),
        )?;
    }
    let progress = ProgressBar::new(size.runs);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos} of {len} runs") {
        progress.set_style(style);
    }
    // Of what `each` may fail by, only the store's errors pass through it.
    let mut failed = None;
    let stored = store.each_run(&mut |key, run| {
        let written = line(
            out,
            &json!({"run": {
                "spark_cluster": key.id.cluster,
                "app_id": key.id.app_id,
                "attempt_id": key.id.attempt_id,
                "start_ms": key.start_ms,
                "record": run.record,
                "summary": run.summary,
            }}),
        );
        progress.inc(1);
        written.map_err(|error| stopped(&mut failed, error))
    });
    progress.finish_and_clear();
    if let Some(error) = failed {
        return Err(error);
    }
    stored?;
    let mut failed = None;
    let stored = store.each_delivered(&mut |key, delivered| {
        let written = line(
            out,
            &json!({"delivered": {
                "spark_cluster": key.id.cluster,
                "app_id": key.id.app_id,
                "attempt_id": key.id.attempt_id,
                "start_ms": key.start_ms,
                "delivered": delivered,
            }}),
        );
        written.map_err(|error| stopped(&mut failed, error))
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(stored?),
    }
}

/// Keeps the error of writing, of which the store's way back has no place.
fn stopped(failed: &mut Option<anyhow::Error>, error: anyhow::Error) -> StoreError {
    let why = error.to_string();
    *failed = Some(error);
    StoreError::Unavailable { what: "the export".to_owned(), why }
}

fn line(out: &mut impl Write, value: &Value) -> anyhow::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

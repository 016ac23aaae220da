//! `speculation_waste`: speculative copies of tasks ran, and lost.

use std::time::Duration;

use super::context::{Context, StageView, ratio, seconds};
use super::draft::{Draft, Weight};
use super::{About, Confidence, FindingKind, Impact, Rule, Severity, Subject, Unit, Where, humane};

pub(super) const ABOUT: About = About {
    rule: Rule::SpeculationWaste,
    meaning: "Spark started copies of slow tasks, and the originals were there first: the copies \
              took cores for nothing.",
    details: r#"*Fires* where 5 speculative copies (`copies`) and more were killed because the original
ended first, where these ran for a minute in all (`at`), and were half (`lost_ratio`) of
the copies and more. A copy that wins is what speculation is for.

At most `warning`.

*Source*: SparkForensics (5 attempts, 60 s); the share is ours.

*Cost*: the core-seconds of the lost copies. No wall time: copies run on cores that had
nothing else to do, or take them from later tasks, which Spark does not tell.

*Silent* from REST, which does not tell how long they ran.
"#,
    evidence: &[
        ("lost_copies", "copies that were killed"),
        ("copies", "copies that ended"),
        ("lost_ratio", "lost / copies"),
        ("lost_time", "task time of the lost ones"),
    ],
    fires: &["speculation_waste"],
    near_misses: &["speculation"],
    resists: &[("speculation", "copies that win, whose originals are killed, are no waste")],
};

pub(super) fn find(context: &Context<'_>, drafts: &mut Vec<Draft>) {
    if context.thresholds.speculation_waste.enabled {
        drafts.extend(judge(context));
    }
}

fn judge(context: &Context<'_>) -> Option<Draft> {
    let thresholds = &context.thresholds.speculation_waste;
    let (mut copies, mut lost) = (0_u64, 0_u64);
    let (mut time, mut core) = (Duration::ZERO, 0.0);
    let mut worst: Option<(&StageView<'_>, Duration)> = None;
    for view in &context.stages {
        let Some(speculation) = view.stage.speculation else { continue };
        copies = copies.saturating_add(speculation.copies);
        lost = lost.saturating_add(speculation.lost);
        let lost_time = speculation.lost_time?;
        time = time.saturating_add(lost_time);
        core += lost_time.as_secs_f64() * view.cpus;
        if worst.is_none_or(|(_, most)| most < lost_time) {
            worst = Some((view, lost_time));
        }
    }
    let share = ratio(lost, copies)?;
    if lost < thresholds.copies || time < thresholds.at.get() || share < thresholds.lost_ratio {
        return None;
    }
    let (worst, of_worst) = worst?;
    let subject =
        if of_worst >= time.mul_f64(0.8) { worst.subject() } else { Subject::Application };
    let headline = format!(
        "{} of {} ran for {} and lost, most in stage {}",
        humane::number(lost),
        humane::count(copies, "speculative copy", "speculative copies"),
        humane::duration(time),
        worst.stage.id,
    );
    let impact = Impact { wall: None, core: Some(seconds(core)), estimated: false };
    let from = worst.name();
    Some(
        Draft::new(Rule::SpeculationWaste, FindingKind::Configuration, subject, headline)
            .weight(Weight::Saving { at_most: Severity::Warning })
            .confidence(Confidence::High)
            .evidence("lost_copies", lost as f64, Unit::Count, thresholds.copies as f64, &from)
            .evidence("copies", copies as f64, Unit::Count, None, &from)
            .evidence("lost_ratio", share, Unit::Ratio, thresholds.lost_ratio, &from)
            .evidence(
                "lost_time",
                time.as_secs_f64(),
                Unit::Seconds,
                thresholds.at.get().as_secs_f64(),
                &from,
            )
            .impact(impact, Vec::new())
            .advice_unless(
                "Slow tasks that have more to do are as slow in a copy: mend the skew first",
                Where::Data,
                "their records are even",
            )
            .advice_unless(
                "Let Spark start copies later: raise spark.speculation.multiplier, \
                 spark.speculation.quantile and spark.speculation.minTaskRuntime",
                Where::Conf,
                "some hosts are slow: then copies win, if they start soon",
            ),
    )
}

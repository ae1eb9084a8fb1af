//! The study's decisions scored on simulated cases whose truth is known.
#![forbid(unsafe_code)]

mod adaptive_cases;
mod baseline_cases;
mod budget_cases;
mod ceiling_cases;
mod choice_cases;
mod compare_cases;
mod damaged;
mod deep_cases;
mod drift_cases;
mod extent_cases;
mod few_settings_cases;
mod forecast_cases;
mod history_cases;
mod interval_cases;
mod knee_cases;
mod latency_cost_cases;
mod peak_cases;
mod queueing_cases;
mod quiet_cases;
mod random;
mod reading_cases;
mod repetition_cases;
mod resumption_cases;
mod score;
mod shape_cases;
mod split_cases;
mod thread_cases;
mod unseen_comparisons;
mod worked_figures;
mod written_cases;

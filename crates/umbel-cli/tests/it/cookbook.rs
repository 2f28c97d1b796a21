//! Every command of docs/cookbook.md, as written.

use crate::place::Place;

const COOKBOOK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cookbook.md"));

/// A command and what it prints, in order on one terminal.
struct Step {
    command: String,
    output: String,
}

/// The steps of one task: what stands behind `$ ` in blocks of console, up to the next one.
fn steps(task: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in task.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => {
                    steps.push(Step { command: command.into(), output: String::new() });
                }
                (None, Some(step)) => step.output += &format!("{line}\n"),
                (None, None) => panic!("output before any command: {line}"),
            },
            (false, _) => {}
        }
    }
    steps
}

/// Runs the task with this number.
fn cook(number: usize) {
    let (_, task) = COOKBOOK.split_once(&format!("\n## {number}. ")).expect("the task");
    let task = task.split("\n## ").next().expect("the text before the next one");
    let place = Place::new();
    let steps = steps(task);
    assert!(!steps.is_empty());
    for Step { command, output } in steps {
        let ran = place.shell(&format!("exec 2>&1; {command}"));
        assert_eq!(ran.out, output, "$ {command}");
    }
}

#[test]
fn there_are_ten_tasks_and_all_are_run() {
    assert_eq!(COOKBOOK.matches("\n## ").count(), 10);
    assert_eq!(COOKBOOK.matches("\n```").count() % 2, 0);
}

/// One test a task, so that they run side by side.
macro_rules! tasks {
    ($($name:ident = $number:literal;)*) => {
        $(#[test]
        fn $name() {
            cook($number);
        })*
    };
}

tasks! {
    task_1_crawling = 1;
    task_2_block_list = 2;
    task_3_already_recommended = 3;
    task_4_leaked_passwords = 4;
    task_5_logs_of_many_days = 5;
    task_6_shards = 6;
    task_7_csv_and_json = 7;
    task_8_window = 8;
    task_9_planning = 9;
    task_10_shipping = 10;
}

//! Every command of docs/cookbook.md, as written.

use crate::place::Place;
use serde_json::Value;
use std::collections::BTreeSet;

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
    // Behind the tasks stand the fields of reports.
    assert_eq!(COOKBOOK.matches("\n## ").count(), 11);
    assert!((1..=10).all(|number| COOKBOOK.contains(&format!("\n## {number}. "))));
    assert_eq!(COOKBOOK.matches("\n```").count() % 2, 0);
}

/// The names in all objects of a report.
fn names(report: &Value, all: &mut BTreeSet<String>) {
    match report {
        Value::Object(fields) => {
            for (name, value) in fields {
                all.insert(name.clone());
                names(value, all);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| names(value, all)),
        _ => {}
    }
}

/// What the tables of a verb call fields: the words in code of their first column.
fn documented(verb: &str) -> BTreeSet<String> {
    let (_, text) = COOKBOOK.split_once("\n## Reports for programs\n").expect("the section");
    let (_, text) = text.split_once(&format!("\n`umbel {verb} --")).expect("the verb");
    let text = text.split("\n\n`umbel ").next().unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let first = rows.map(|row| row.split(" | ").next().unwrap());
    first
        .flat_map(|cell| cell.split('`').step_by(2))
        .map(str::to_owned)
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn every_field_of_a_report_is_documented_and_nothing_else() {
    let place = Place::new();
    place.write("keys", "a\nb\nb\n");
    for family in crate::place::FAMILIES {
        place.umbel(&format!("build -q --family {family} -o {family} keys")).prints("");
    }
    place.umbel("dedup -q --total --state exact keys").prints("2\n");
    place.umbel("dedup -q --total --window 9 --state last keys").prints("2\n");
    place.umbel("dedup -q --total --window 9s -n 9 --state latest keys").prints("2\n");
    let info = format!("info --json {} exact last latest", crate::place::FAMILIES.join(" "));
    let decrements = "decrements"; // Stable filters are made by programs.
    let verbs: [(&str, Vec<&str>, &[&str]); 8] = [
        (
            "dedup",
            vec!["dedup --report json -o d keys", "dedup --report json --force -o d -d keys"],
            &[],
        ),
        ("build", vec!["build --report json -o f keys"], &[]),
        ("add", vec!["add --report json cuckoo keys", "remove --report json cuckoo keys"], &[]),
        ("merge", vec!["merge --json -o m bloom bloom"], &[]),
        ("info", vec![&info], &["server", "shards", "generation", decrements, "private"]),
        ("verify", vec!["verify --json bloom keys"], &[]),
        ("plan", vec!["plan --json -n 1000"], &[]),
        ("bench", vec!["bench --report json --family blocked keys"], &[]),
    ];
    for (verb, commands, elsewhere) in verbs {
        let mut all: BTreeSet<String> = elsewhere.iter().map(|name| (*name).to_owned()).collect();
        for command in commands {
            let ran = place.umbel(command);
            // Errors about files stand beside the objects.
            let text = if verb == "dedup" { ran.err } else { ran.out };
            for report in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
                names(
                    &report.unwrap_or_else(|error| panic!("{command}: {error}: {text}")),
                    &mut all,
                );
            }
        }
        assert_eq!(all, documented(verb), "{verb}");
    }
}

/// `printed` and `dropped` are about the output, `new` and `repeated` about the input.
#[test]
fn printed_and_repeated_are_what_the_cookbook_says() {
    let place = Place::new();
    place.write("keys", "a\nb\na\na\nb\nc\n");
    for (args, printed) in [
        ("", 3),
        ("-d", 2),
        ("--repeats", 3),
        ("--total", 3),
        ("-d --total", 2),
        ("-u", 1),
        ("-c", 3),
    ] {
        let ran = place.umbel(&format!("dedup --report json {args} keys"));
        let report: Value = serde_json::from_str(&ran.err).expect("an object");
        let fields =
            ["records", "new", "repeated", "printed", "dropped"].map(|name| report[name].as_u64());
        assert_eq!(fields, [6, 3, 3, printed, 6 - printed].map(Some), "{args}: {report}");
    }
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

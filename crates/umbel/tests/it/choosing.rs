//! What `docs/choosing.md` says of space.

use umbel::{blocked, bloom, split};

#[test]
fn choosing_md_tells_the_bits_that_filters_take() {
    const ITEMS: u64 = 1_000_000;
    let document = include_str!("../../../../docs/choosing.md");
    let rows = document.lines().filter(|line| line.starts_with("| 0."));
    let mut checked = 0;
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let rate: f64 = cells[0].parse().unwrap();
        let in_lines = |lines| blocked::Shape::for_rate_in_lines(ITEMS, rate, lines).unwrap();
        let chosen = blocked::Shape::for_rate(ITEMS, rate).unwrap();
        let expected = [
            bloom::Shape::for_rate(ITEMS, rate).unwrap().bytes(),
            in_lines(1).bytes(),
            in_lines(2).bytes(),
            split::Shape::for_rate_tight(ITEMS, rate).unwrap().bytes(),
        ];
        for (number, bytes) in expected.into_iter().enumerate() {
            let bits = format!("{:.2}", bytes as f64 * 8.0 / ITEMS as f64);
            let bold = number as u32 == chosen.lines_per_key();
            let expected = if bold { format!("**{bits}**") } else { bits };
            assert_eq!(cells[number + 1], expected, "{row}");
        }
        checked += 1;
    }
    assert_eq!(checked, 6);
}

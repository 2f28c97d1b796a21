//! A filter on a server that was restarted answers again when the caller says that it has all keys.

use crate::place::Place;
use crate::server::Node;

const LOST: &str = "the server was restarted or has taken over from another one, and may have lost keys; insert them with \
                    umbel adopt, or build the filter again";

/// Every verb that asks or changes the filter says what to do.
fn answers_nothing(place: &Place, url: &str, why: &str) {
    for command in [
        format!("check {url}"),
        format!("check -v {url}"),
        format!("dedup --state {url}"),
        format!("add {url}"),
    ] {
        place.umbel_with(&command, "a\n").fails(why);
    }
}

#[test]
fn a_filter_answers_again_after_a_restart_when_it_is_adopted() {
    let Some(mut node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("list"));
    place.umbel_with(&format!("build -o {url} -n 100"), "a\nb\n").prints("");
    place.umbel_with(&format!("check {url}"), "a\nb\nx\n").prints("a\nb\n");
    node.restart();
    answers_nothing(&place, &url, &format!("{shown}: {LOST}"));
    place.write("keys", "a\nb\nc\n");
    let adopted = format!("umbel: {shown}: adopted with 3 keys; it answers now\n");
    place.umbel(&format!("adopt {url} keys")).gives(0, "", &adopted);
    place.umbel_with(&format!("check {url}"), "a\nb\nc\nx\n").prints("a\nb\nc\n");
    // Once more, and with the word of the caller.
    node.restart();
    answers_nothing(&place, &url, &format!("{shown}: {LOST}"));
    let adopted = format!("umbel: {shown}: adopted as it is; it answers now\n");
    place.umbel(&format!("adopt {url} --whole")).gives(0, "", &adopted);
    place.umbel_with(&format!("check {url}"), "a\nb\nc\nx\n").prints("a\nb\nc\n");
    // A filter that needs no adoption stays as it is, and takes the keys.
    let again = format!(
        "umbel: {shown}: was complete already, on this server\numbel: {shown}: adopted with 1 key; it answers now\n"
    );
    place.umbel_with(&format!("adopt {url} -"), "d\n").gives(0, "", &again);
    place.umbel_with(&format!("check {url}"), "c\nd\nx\n").prints("c\nd\n");
}

/// Until all keys are in, nothing is answered.
#[test]
fn an_adoption_that_fails_leaves_a_filter_that_answers_nothing() {
    let Some(mut node) = Node::start() else { return };
    let (place, (url, shown)) = (Place::new(), node.filter("list"));
    place.umbel_with(&format!("build -o {url} -n 100"), "a\nb\n").prints("");
    node.restart();
    place.write("keys", "a\n");
    place.umbel(&format!("adopt {url} keys missing")).refuses("missing: ");
    let incomplete = format!(
        "{shown}: the filter does not have all keys yet, or a command that inserts them was interrupted; insert them with umbel \
         adopt, or build the filter again"
    );
    place.umbel_with(&format!("check {url}"), "a\n").fails(&incomplete);
    place.umbel(&format!("adopt {url} keys")).prints("");
    place.umbel_with(&format!("check {url}"), "a\nb\nx\n").prints("a\nb\n");
}

#[test]
fn only_a_filter_on_a_server_is_adopted_and_the_caller_says_what_it_has() {
    let place = Place::new();
    place.umbel("adopt redis://127.0.0.1:1/0?key=x").refuses("<FILE|--whole>");
    place.umbel("adopt redis://127.0.0.1:1/0?key=x keys --whole").refuses("cannot be used with");
    place.umbel("adopt list.umbel --whole").fails(
        "list.umbel: expected a filter on a server, redis://host:port/0?key=name, found the name of a file; a filter in a file needs \
         no adoption",
    );
    let Some(node) = Node::start() else { return };
    let (url, shown) = node.filter("list");
    let missing =
        format!("{shown}: the filter is not there: evicted, expired, flushed or never made");
    place.umbel(&format!("adopt {url} --whole")).fails(&missing);
    place.umbel(&format!("adopt {url}&create --whole")).refuses("&create is for dedup --state");
}

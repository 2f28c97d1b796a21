//! The descriptions of commands: names, arguments, and the version that clients check.

use super::client::Reply;
use super::server::{Engine, Server, engines};

/// All texts in a reply, at any depth.
fn flat(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Text(text) => vec![String::from_utf8_lossy(text).into_owned()],
        Reply::Array(array) => array.iter().flat_map(flat).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn command_docs_have_arguments() {
    // For each command the names of its arguments, and the tokens of those that have one.
    let cases = [
        ("bf.reserve", "key error_rate capacity expansion nonscaling EXPANSION NONSCALING"),
        ("bf.madd", "key item multiple"),
        ("bf.insert", "key capacity error expansion nocreate nonscaling item ITEMS optional"),
        ("bf.loadchunk", "key iterator data"),
        ("cf.reserve", "key capacity BUCKETSIZE MAXITERATIONS EXPANSION"),
        ("cf.insertnx", "key CAPACITY NOCREATE ITEMS item multiple"),
        ("cf.compact", "key"),
    ];
    for engine in engines().into_iter().filter(|engine| *engine != Engine::Redis62) {
        let server = Server::start(engine);
        let mut client = server.client();
        for (name, words) in cases {
            let docs = flat(&client.ask(&format!("COMMAND DOCS {name}")));
            let at = docs.iter().position(|text| text == "arguments");
            let arguments = &docs[at.expect("arguments")..];
            for word in words.split(' ') {
                assert!(
                    arguments.iter().any(|text| text == word),
                    "{engine:?} {name} {word}: {docs:?}"
                );
            }
        }
    }
}

#[test]
fn names_are_lower_case_and_the_version_is_that_of_redisbloom_8_8() {
    for engine in engines() {
        let server = Server::start(engine);
        let mut client = server.client();
        let commands = client.ask("COMMAND");
        let names: Vec<_> =
            commands.array().iter().map(|command| flat(&command.array()[0])[0].clone()).collect();
        let ours = |name: &&String| {
            name.to_ascii_lowercase().starts_with("bf.")
                || name.to_ascii_lowercase().starts_with("cf.")
        };
        let ours: Vec<_> = names.iter().filter(ours).collect();
        assert_eq!(ours.len(), 26, "{engine:?}");
        assert!(
            ours.iter().all(|name| **name == name.to_ascii_lowercase()),
            "{engine:?}: {ours:?}"
        );
        let modules = client.ask("MODULE LIST");
        let is_ours = |module: &&Reply| module.array().contains(&Reply::Text(b"bf".to_vec()));
        let bf = modules.array().iter().find(is_ours).expect("the module").array();
        let at =
            bf.iter().position(|word| *word == Reply::Text(b"ver".to_vec())).expect("a version");
        assert_eq!(bf[at + 1], Reply::Integer(80_800), "{engine:?}");
    }
}

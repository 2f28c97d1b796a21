//! Every command and reply in RESP2 and RESP3, by redis-py: the table is in `replies.py`.

use super::server::{Server, engines, installed};
use std::path::Path;
use std::process::Command;

#[test]
fn redis_py_gets_the_replies_of_redisbloom() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/replies.py");
    for engine in engines() {
        let server = Server::start(engine);
        let output = Command::new(installed().join("bin/python"))
            .arg(&script)
            .args([server.port.to_string(), format!("{engine:?}")])
            .output()
            .expect("python runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{engine:?}:\n{text}");
        let lines = text.lines().filter(|line| line.starts_with("ok ")).count();
        assert!(lines >= 350, "{engine:?}: only {lines} replies were compared");
    }
}

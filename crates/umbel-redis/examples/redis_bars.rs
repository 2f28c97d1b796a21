//! Benchmarks of filters on a stock server: server CPU time per key, ours and other clients' methods, in one
//! run.
//!
//! `cargo run --release -p umbel-redis --example redis_bars`, with `redis-server` on the path or the path of a
//! server as the first argument. All times are the CPU time of the server, from `/proc`, so other load on the
//! machine changes little. Rounds of all methods alternate.

use redis::{Client, Cmd, Connection, Pipeline, Value};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use umbel::blocked::Shape;
use umbel_redis::{Answer, GoZeroBloom, Limits, Options, Policy, Server, SharedBloom};

/// Keys in a batch.
const BATCH: u64 = 1_000;
/// The number of keys in the filters during look-ups.
const KEYS: u64 = 1_000_000;
/// go-zero's recommendation: twenty bits per key.
const BITS: u64 = 20 * KEYS;
/// The number of rounds.
const ROUNDS: u64 = 40;

/// go-zero's two scripts, in our words: set all bits; is one of them 0?
const GO_SET: &str = "for _, at in ipairs(ARGV) do redis.call('setbit', KEYS[1], at, 1) end";
const GO_TEST: &str = "for _, at in ipairs(ARGV) do if redis.call('getbit', KEYS[1], at) == 0 then return false end end return true";

struct Node {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Node {
    fn start(more: &[String]) -> Self {
        let program = std::env::args().nth(1).unwrap_or_else(|| "redis-server".into());
        let free = || TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let (port, bus) = (free(), free().to_string());
        let folder = std::env::temp_dir().join(format!("umbel-bars-{port}"));
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        command.args(["--appendonly", "no", "--dir"]).arg(&folder).args(more);
        if !more.is_empty() {
            command.args(["--cluster-port", &bus]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let node = Self { child: command.spawn().expect("a server starts"), port, folder };
        while Client::open(node.url()).unwrap().get_connection().is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
        if !more.is_empty() {
            node.call(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
        }
        node
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    fn connection(&self) -> Connection {
        Client::open(self.url()).unwrap().get_connection().unwrap()
    }

    fn call(&self, arguments: &[&str]) -> Value {
        let mut command = Cmd::new();
        for argument in arguments {
            command.arg(*argument);
        }
        command.query(&mut self.connection()).unwrap()
    }

    /// The CPU time of the server so far, in nanoseconds: of all its threads, as the scheduler counts.
    fn nanoseconds(&self) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// One method, and its cost so far.
struct Way {
    name: &'static str,
    nanoseconds: u64,
    keys: u64,
}

impl Way {
    fn new(name: &'static str) -> Self {
        Self { name, nanoseconds: 0, keys: 0 }
    }

    fn per_key(&self) -> f64 {
        self.nanoseconds as f64 / self.keys as f64 / 1_000.0
    }
}

/// The keys of a round; those below `KEYS` are in the filters.
fn batch(first: u64) -> Vec<Vec<u8>> {
    (first..first + BATCH).map(|key| format!("user:{key}").into_bytes()).collect()
}

/// A bit field command of some positions.
fn bit_field(
    name: &str,
    key: &str,
    positions: &[u64],
    operation: &[&str],
    value: Option<u8>,
) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    for position in positions {
        command.arg(operation).arg(*position);
        if let Some(value) = value {
            command.arg(value);
        }
    }
    command
}

/// The methods of other clients: one script and round trip per key, or one bit field command per key in one
/// pipeline.
struct Others {
    connection: Connection,
    set: String,
    test: String,
}

impl Others {
    fn new(node: &Node) -> Self {
        let mut connection = node.connection();
        let mut load =
            |text: &str| redis::cmd("SCRIPT").arg("LOAD").arg(text).query(&mut connection).unwrap();
        let (set, test) = (load(GO_SET), load(GO_TEST));
        Self { connection, set, test }
    }

    fn script(&mut self, sha: &str, keys: &[Vec<u8>], bits: u64) {
        for key in keys {
            let mut call = redis::cmd("EVALSHA");
            call.arg(sha).arg(1).arg("go").arg(&GoZeroBloom::positions(bits, key)[..]);
            let _: Value = call.query(&mut self.connection).unwrap();
        }
    }

    fn set(&mut self, keys: &[Vec<u8>]) {
        self.script(&self.set.clone(), keys, BITS);
    }

    fn test(&mut self, keys: &[Vec<u8>]) {
        self.script(&self.test.clone(), keys, BITS);
    }

    /// The same filter as a plain bitmap with `probes` bits per key in `bits`.
    fn pipelined(&mut self, key: &str, keys: &[Vec<u8>], probes: usize, bits: u64, set: bool) {
        let mut pipeline = Pipeline::new();
        for item in keys {
            let positions = &GoZeroBloom::positions(bits, item)[..probes];
            pipeline.add_command(if set {
                bit_field("BITFIELD", key, positions, &["SET", "u1"], Some(1))
            } else {
                bit_field("BITFIELD_RO", key, positions, &["GET", "u1"], None)
            });
        }
        let _: Vec<Value> = pipeline.query(&mut self.connection).unwrap();
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    println!("server µs a key (user and system, /proc/PID/schedstat), batches of {BATCH}\n");
    runtime.block_on(async {
        one_server().await;
        creation().await;
        cluster().await;
    });
}

/// Measures the cost of a method for the server.
macro_rules! time {
    ($node:expr, $way:expr, $keys:expr, $work:expr) => {{
        let before = $node.nanoseconds();
        let result = $work;
        $way.nanoseconds += $node.nanoseconds() - before;
        $way.keys += $keys.len() as u64;
        result
    }};
}

/// The cost of our two filters and of the other methods.
async fn one_server() {
    let node = Node::start(&[]);
    let server = Server::replicated(&[&node.url()], patient()).await.unwrap();
    let mut others = Others::new(&node);
    let options = Options::default();
    let mut shared = Vec::new();
    // The rate of go-zero at twenty bits per key, and 1 %, for which seven bits per key are best. On a server
    // every line costs a command, so one line per key may be worth its space.
    for (name, rate, lines) in [("two", 6.7e-5, 2), ("one", 6.7e-5, 1), ("ours", 0.01, 1)] {
        let shape = Shape::for_rate_in_lines(KEYS, rate, lines).unwrap();
        println!(
            "SharedBloom at {} %, lines a key: {lines}; bits a key: {:.2}, of them set by a key: {}",
            rate * 100.0,
            shape.bits() as f64 / KEYS as f64,
            shape.probes()
        );
        shared.push(
            SharedBloom::<[u8]>::create(&server, name, shape, Default::default(), &options)
                .await
                .unwrap(),
        );
    }
    for filter in &shared {
        filter.complete().await.unwrap();
    }
    let go = GoZeroBloom::create(&server, "go", BITS, Policy::Warn).await.unwrap();
    go.complete().await.unwrap();
    let few = (KEYS as f64 * 9.585) as u64;
    let mut add = [
        "go-zero's way",
        "BITFIELD, 14 probes, pipelined",
        "BITFIELD, 7 probes, pipelined",
        "SharedBloom, 0.0067 %, two lines",
        "SharedBloom, 0.0067 %, one line",
        "SharedBloom, 1 %",
        "GoZeroBloom",
    ]
    .map(Way::new);
    // Half full with other keys, so that the fill is realistic.
    let rest: Vec<Vec<u8>> =
        (ROUNDS * BATCH..KEYS).map(|key| format!("user:{key}").into_bytes()).collect();
    for keys in rest.chunks(10_000) {
        for filter in &shared {
            filter.insert_batch(keys).await.unwrap();
        }
        go.insert_batch(keys).await.unwrap();
        others.pipelined("few", keys, 7, few, true);
    }
    for round in 0..ROUNDS {
        let keys = batch(round * BATCH);
        // Each method gets keys that are new to its bits, because different keys set go-zero's bits.
        let own = |way: u64| -> Vec<Vec<u8>> {
            keys.iter().map(|key| [key, &b"/"[..], &way.to_le_bytes()].concat()).collect()
        };
        let (a, b, c) = (own(1), own(2), own(3));
        time!(node, add[0], a, others.set(&a));
        time!(node, add[1], b, others.pipelined("go", &b, 14, BITS, true));
        time!(node, add[2], keys, others.pipelined("few", &keys, 7, few, true));
        for (way, filter) in add[3..6].iter_mut().zip(&shared) {
            time!(node, way, keys, filter.insert_batch(&keys).await.unwrap());
        }
        time!(node, add[6], c, go.insert_batch(&c).await.unwrap());
        go.insert_batch(&keys).await.unwrap();
    }
    report("insert", &add);
    compare("SharedBloom / go-zero's way", &add, &[(3, 0), (4, 0), (5, 0)], 0.2);
    compare("GoZeroBloom / go-zero's way", &add, &[(6, 0)], 0.25);
    for (what, first) in [("contains, present keys", 0), ("contains, absent keys", 10 * KEYS)] {
        let mut ask = [
            "go-zero's way",
            "BITFIELD_RO, 14 probes, pipelined",
            "BITFIELD_RO, 7 probes, pipelined",
            "SharedBloom, 0.0067 %, two lines",
            "SharedBloom, 0.0067 %, one line",
            "SharedBloom, 1 %",
            "GoZeroBloom",
        ]
        .map(Way::new);
        let mut wrong = 0;
        for round in 0..ROUNDS {
            let keys = batch(first + round * BATCH);
            time!(node, ask[0], keys, others.test(&keys));
            time!(node, ask[1], keys, others.pipelined("go", &keys, 14, BITS, false));
            time!(node, ask[2], keys, others.pipelined("few", &keys, 7, few, false));
            let expected = if first == 0 { Answer::Maybe } else { Answer::Absent };
            for (way, filter) in ask[3..6].iter_mut().zip(&shared) {
                let answers = time!(node, way, keys, filter.contains_batch(&keys).await);
                wrong += answers.iter().filter(|answer| **answer != expected).count();
            }
            let answers = time!(node, ask[6], keys, go.contains_batch(&keys).await);
            wrong += answers.iter().filter(|answer| **answer != expected).count();
        }
        report(what, &ask);
        println!(
            "  answers that are not as expected               {wrong} of {}",
            4 * ROUNDS * BATCH
        );
        compare("SharedBloom / go-zero's way", &ask, &[(3, 0), (4, 0), (5, 0)], 0.06);
        compare("SharedBloom / BITFIELD at the same rate", &ask, &[(3, 1), (4, 1), (5, 2)], 0.3);
        compare("GoZeroBloom / go-zero's way", &ask, &[(6, 0)], 0.25);
    }
}

fn report(what: &str, ways: &[Way]) {
    println!("{what}");
    for way in ways {
        println!("  {:<46} {:>7.3} µs", way.name, way.per_key());
    }
}

/// The relative costs of some methods, and their limits.
fn compare(what: &str, ways: &[Way], pairs: &[(usize, usize)], bar: f64) {
    let ratio = |(ours, theirs): &(usize, usize)| ways[*ours].per_key() / ways[*theirs].per_key();
    let ratios: Vec<String> = pairs.iter().map(|pair| format!("{:.3}", ratio(pair))).collect();
    println!("  {what:<46} {}   (at most {bar})", ratios.join(", "));
}

fn patient() -> Limits {
    Limits { connect: Duration::from_secs(10), reply: Duration::from_secs(10), retries: 2 }
}

/// A filter for 1e8 keys at 1 %: the duration of the longest command, from the server's slow log.
async fn creation() {
    let node = Node::start(&[]);
    node.call(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    node.call(&["CONFIG", "SET", "slowlog-max-len", "100000"]);
    let server = Server::replicated(&[&node.url()], patient()).await.unwrap();
    let shape = Shape::for_rate(100_000_000, 0.01).unwrap();
    let start = Instant::now();
    let filter = SharedBloom::<[u8]>::create(
        &server,
        "large",
        shape,
        Default::default(),
        &Options::default(),
    )
    .await
    .unwrap();
    let took = start.elapsed();
    let log: Vec<Vec<Value>> =
        redis::from_redis_value(node.call(&["SLOWLOG", "GET", "-1"])).unwrap();
    let longest = log.iter().filter_map(|entry| match entry.get(2) {
        Some(Value::Int(microseconds)) => Some(*microseconds),
        _ => None,
    });
    let longest = longest.max().unwrap_or(0) as f64 / 1_000.0;
    println!(
        "creation, 1e8 keys at 1 %: {} MB in {} keys, {} commands, {:.2} s",
        shape.bytes() / 1_000_000,
        filter.shards(),
        log.len(),
        took.as_secs_f64()
    );
    println!(
        "  the longest command                            {longest:.1} ms           (at most 50)\n"
    );
}

/// Three masters: the distribution of the bits, and the cost of a batch.
async fn cluster() {
    let more = ["--cluster-enabled", "yes"].map(String::from);
    let nodes: Vec<Node> = (0..3).map(|_| Node::start(&more)).collect();
    let (first, others) = nodes.split_first().unwrap();
    for node in others {
        let bus: String = info_of(node, "cluster-port");
        first.call(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), &bus]);
    }
    for (node, (from, to)) in
        nodes.iter().zip([("0", "5460"), ("5461", "10922"), ("10923", "16383")])
    {
        node.call(&["CLUSTER", "ADDSLOTSRANGE", from, to]);
    }
    for node in &nodes {
        loop {
            let info: String = redis::from_redis_value(node.call(&["CLUSTER", "INFO"])).unwrap();
            if info.contains("cluster_slots_ok:16384") && info.contains("cluster_known_nodes:3") {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    std::thread::sleep(Duration::from_secs(2));
    let urls: Vec<String> = nodes.iter().map(Node::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let server = Server::cluster(&urls, patient()).await.unwrap();
    let shape = Shape::for_rate(KEYS, 0.01).unwrap();
    let filter = SharedBloom::<[u8]>::create(
        &server,
        "spread",
        shape,
        Default::default(),
        &Options::default(),
    )
    .await
    .unwrap();
    filter.complete().await.unwrap();
    for first in (0..KEYS).step_by(10_000) {
        let keys: Vec<Vec<u8>> =
            (first..first + 10_000).map(|key| format!("user:{key}").into_bytes()).collect();
        filter.insert_batch(&keys).await.unwrap();
    }
    println!("cluster, {KEYS} keys at 1 % in {} shards over three masters", filter.shards());
    let mut held = Vec::new();
    for node in &nodes {
        let keys: Vec<String> = redis::from_redis_value(node.call(&["KEYS", "*"])).unwrap();
        let mut ones = 0_i64;
        for key in &keys {
            ones +=
                redis::from_redis_value::<i64>(node.call(&["BITCOUNT", key, "128", "-1"])).unwrap();
        }
        held.push(ones);
    }
    let third = held.iter().sum::<i64>() as f64 / 3.0;
    let shares: Vec<String> =
        held.iter().map(|ones| format!("{:+.2} %", (*ones as f64 / third - 1.0) * 100.0)).collect();
    println!(
        "  each master's share of the set bits, off a third by  {}   (at most 5 %)",
        shares.join(", ")
    );
    let mut way = Way::new("contains");
    for round in 0..ROUNDS {
        let keys = batch(round * BATCH);
        let before: u64 = nodes.iter().map(Node::nanoseconds).sum();
        let answers = filter.contains_batch(&keys).await;
        way.nanoseconds += nodes.iter().map(Node::nanoseconds).sum::<u64>() - before;
        way.keys += BATCH;
        assert!(answers.iter().all(|answer| *answer == Answer::Maybe));
    }
    println!(
        "  SharedBloom.contains_batch, all servers together     {:.3} µs a key",
        way.per_key()
    );
}

fn info_of(node: &Node, name: &str) -> String {
    let config: Vec<String> = redis::from_redis_value(node.call(&["CONFIG", "GET", name])).unwrap();
    config.into_iter().nth(1).unwrap_or_default()
}

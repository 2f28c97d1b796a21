//! SharedBloom on a healthy server.

use crate::servers::{Engine, Node};
use std::collections::HashSet;
use umbel::blocked::Shape;
use umbel::format::Stored;
use umbel::{BlockedBloomFilter, Keyed, Portable};
use umbel_redis::{
    Answer, Error, Found, Hazard, Opening, Options, Policy, Reason, Server, SharedBloom,
};

/// Options with this number of shards.
pub(crate) fn in_shards(shards: u32) -> Options {
    Options { shards: Some(shards), ..Options::default() }
}

/// Creates a filter, and marks it as complete while it is empty.
pub(crate) async fn created<T: ?Sized, H: Stored<T>>(
    server: &Server,
    name: &str,
    shape: Shape,
    hasher: H,
    options: &Options,
) -> Result<SharedBloom<T, H>, Error> {
    let filter = SharedBloom::create(server, name, shape, hasher, options).await?;
    filter.complete().await?;
    Ok(filter)
}

const BOTH: [Engine; 2] = [Engine::Redis, Engine::Valkey];

#[tokio::test]
async fn what_was_inserted_is_found_and_answers_are_those_of_a_local_filter() {
    for engine in BOTH {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        // One line per key, and two; one key on the server, and several.
        for (rate, shards) in [(0.01, 1), (0.01, 5), (0.001, 1), (0.001, 7)] {
            let shape = Shape::for_rate(5_000, rate).unwrap();
            let name = format!("seen {rate} {shards}");
            let hasher = Portable::seeded(3);
            let options = in_shards(shards);
            let made = created::<u64, _>(&server, &name, shape, hasher, &options);
            let shared = made.await.unwrap();
            let mut local = BlockedBloomFilter::<u64, _>::with(shape, hasher).unwrap();
            let keys: Vec<u64> = (0..5_000).collect();
            for keys in keys.chunks(700) {
                let told = shared.insert_batch(keys).await.unwrap();
                let fresh = keys
                    .iter()
                    .map(|key| if local.insert(key) { Answer::Absent } else { Answer::Maybe });
                assert_eq!(told, fresh.collect::<Vec<_>>(), "{name}");
            }
            let asked: Vec<u64> = (0..20_000).collect();
            let answers = shared.contains_batch(&asked).await;
            let found = asked
                .iter()
                .map(|key| if local.contains(key) { Answer::Maybe } else { Answer::Absent });
            assert_eq!(answers, found.collect::<Vec<_>>(), "{name}");
            assert_eq!(shared.contains(&4_999).await, Answer::Maybe);
            assert_eq!(shared.insert(&4_999).await, Ok(Answer::Maybe));
            let downloaded = shared.download().await.unwrap();
            assert!(downloaded.words() == local.words(), "{name}");
            assert_eq!(shared.check().await, Ok(()));
        }
    }
}

#[tokio::test]
async fn of_equal_keys_in_a_batch_the_first_is_new() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    for (rate, shards) in [(0.01, 1), (0.001, 6)] {
        let shape = Shape::for_rate(100_000, rate).unwrap();
        let name = format!("{rate}");
        let (hasher, options) = (Portable::default(), in_shards(shards));
        let made = created::<u64, _>(&server, &name, shape, hasher, &options);
        let filter = made.await.unwrap();
        let keys: Vec<u64> = (0..900).map(|number| number / 3).collect();
        let told = filter.insert_batch(&keys).await.unwrap();
        for (number, answer) in told.into_iter().enumerate() {
            let expected = if number % 3 == 0 { Answer::Absent } else { Answer::Maybe };
            assert_eq!(answer, expected, "{number}");
        }
    }
}

#[tokio::test]
async fn upload_and_download_keep_every_bit() {
    for engine in BOTH {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let server = node.server().await;
        for (capacity, rate, shards) in [(1, 0.01, 1), (300_000, 0.001, 3), (1_000_000, 0.01, 1)] {
            let mut local = BlockedBloomFilter::<u64>::new(capacity, rate);
            local.extend(0..capacity);
            let name = format!("{capacity}");
            let shards = in_shards(shards);
            let shared = SharedBloom::upload(&server, &name, &local, &shards).await.unwrap();
            assert!(shared.download().await.unwrap().words() == local.words());
            assert_eq!(shared.contains(&0).await, Answer::Maybe);
            // The filter accepts more keys, and a second upload does not overwrite it.
            shared.insert(&(capacity + 1)).await.unwrap();
            let again = SharedBloom::upload(&server, &name, &local, &shards).await;
            assert_eq!(again.err(), Some(Error::Exists));
            assert_eq!(shared.contains(&(capacity + 1)).await, Answer::Maybe);
        }
    }
}

#[tokio::test]
async fn of_clients_that_create_a_filter_at_the_same_time_one_succeeds() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let shape = Shape::for_rate(30_000_000, 0.01).unwrap();
    let (mut handles, options) = (Vec::new(), in_shards(5));
    for _ in 0..4 {
        let server = node.server().await;
        handles.push(tokio::spawn(async move {
            SharedBloom::<u64>::create(&server, "one", shape, Portable::default(), &options).await
        }));
    }
    let (mut made, mut refused) = (Vec::new(), 0);
    for handle in handles {
        match handle.await.unwrap() {
            Ok(filter) => made.push(filter),
            Err(error) => {
                assert_eq!(error, Error::Exists);
                refused += 1;
            }
        }
    }
    assert_eq!((made.len(), refused), (1, 3));
    assert_eq!(made[0].is_complete().await, Ok(false));
}

#[tokio::test]
async fn of_clients_that_open_or_create_a_filter_one_creates_it_and_all_share_it() {
    for engine in BOTH {
        let Some(node) = Node::start(engine, &[]) else { continue };
        let shape = Shape::for_rate(30_000_000, 0.01).unwrap();
        let (mut handles, options) = (Vec::new(), in_shards(5));
        for _ in 0..4 {
            let server = node.server().await;
            handles.push(tokio::spawn(async move {
                let hasher = Portable::default();
                SharedBloom::<u64>::open_or_create(&server, "one", shape, hasher, &options).await
            }));
        }
        let (mut filters, mut creators) = (Vec::new(), 0);
        for handle in handles {
            let (filter, opening) = handle.await.unwrap().unwrap();
            creators += u32::from(opening == Opening::Created);
            filters.push(filter);
        }
        assert_eq!(creators, 1, "{engine:?}");
        let incomplete = Answer::Unknown(Reason::Incomplete);
        for (number, filter) in filters.iter().enumerate() {
            assert_eq!(filter.insert(&(number as u64)).await, Ok(incomplete));
        }
        for filter in &filters {
            assert_eq!(filter.contains_batch(&[0_u64, 4]).await, [incomplete; 2]);
        }
        filters[0].complete().await.unwrap();
        for filter in &filters {
            assert_eq!(filter.contains_batch(&[0_u64, 1, 2, 3]).await, [Answer::Maybe; 4]);
            assert_eq!(filter.contains(&4).await, Answer::Absent);
        }
        // Again, with keys: it is opened unchanged.
        let (server, hasher) = (node.server().await, Portable::default());
        let again = SharedBloom::<u64>::open_or_create(&server, "one", shape, hasher, &options);
        let (again, opening) = again.await.unwrap();
        assert_eq!(opening, Opening::Opened);
        assert_eq!(again.contains_batch(&[3_u64, 4]).await, [Answer::Maybe, Answer::Absent]);
        let other = Shape::for_rate(1_000, 0.01).unwrap();
        let again = SharedBloom::<u64>::open_or_create(&server, "one", other, hasher, &options);
        assert!(matches!(again.await, Err(Error::Mismatch { .. })));
    }
}

#[tokio::test]
async fn a_filter_that_is_not_the_expected_one_is_not_opened() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let (shape, other) =
        (Shape::for_rate(1_000, 0.01).unwrap(), Shape::for_rate(1_000, 0.001).unwrap());
    let options = Options { generation: Some(7), ..in_shards(2) };
    let secret = Keyed::new([7; 16]);
    SharedBloom::<str, _>::create(&server, "a", shape, secret, &options).await.unwrap();
    let open = async |options: Options, hasher| {
        SharedBloom::<str, Keyed>::open(&server, "a", hasher, &options).await
    };
    let found = open(Options::default(), secret).await.unwrap();
    assert_eq!((found.shape(), found.shards(), found.generation()), (&shape, 2, 7));
    let expected = Options { shape: Some(shape), ..options };
    open(expected, secret).await.unwrap();
    for (options, hasher, what) in [
        (Options { shape: Some(other), ..options }, secret, "shape"),
        (Options { generation: Some(8), ..options }, secret, "generation"),
        (in_shards(3), secret, "shards"),
        // A filter that answers `Absent` for every key would be the worst outcome.
        (Options::default(), Keyed::new([8; 16]), "secret"),
    ] {
        let error = open(options, hasher).await.unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        let shape = options.shape.unwrap_or(shape);
        let either =
            SharedBloom::<str, _>::open_or_create(&server, "a", shape, hasher, &options).await;
        assert!(either.unwrap_err().to_string().contains(what), "{what}");
        let create = SharedBloom::<str, _>::create(&server, "a", shape, hasher, &options).await;
        assert_eq!(create.err(), Some(Error::Exists), "{what}");
    }
    let portable = SharedBloom::<str>::open(&server, "a", Portable::default(), &options).await;
    assert!(portable.unwrap_err().to_string().contains("hash"));
    let numbers = SharedBloom::<u64, Keyed>::open(&server, "a", secret, &options).await;
    assert!(numbers.unwrap_err().to_string().contains("hash"));
    assert!(matches!(
        SharedBloom::<str, Keyed>::open_as_it_is(&server, "a", &options).await,
        Err(Error::Hasher(_))
    ));
    let missing = SharedBloom::<str>::open(&server, "b", Portable::default(), &options).await;
    assert_eq!(missing.err(), Some(Error::Unknown(Reason::Missing)));
}

#[tokio::test]
async fn the_secret_never_leaves() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let secret = Keyed::new(*b"only for its own");
    let shape = Shape::for_rate(100, 0.01).unwrap();
    let filter =
        created::<str, _>(&server, "keyed", shape, secret, &Options::default()).await.unwrap();
    filter.insert("a").await.unwrap();
    assert_eq!(filter.contains("a").await, Answer::Maybe);
    assert!(!format!("{filter:?} {server:?}").contains("only"));
    let bytes: Vec<u8> = redis::from_redis_value(node.call(&["GET", "keyed"])).unwrap();
    assert!(!bytes.windows(16).any(|part| part == secret.secret()));
}

#[tokio::test]
async fn servers_that_lose_keys_are_noticed() {
    let Some(node) = Node::start(Engine::Redis, &["--maxmemory-policy", "allkeys-lru"]) else {
        return;
    };
    let server = node.server().await;
    let shape = Shape::for_rate(100, 0.01).unwrap();
    let create = async |policy| {
        let options = Options { policy, ..Options::default() };
        let (hasher, name) = (Portable::default(), "a");
        let opened = SharedBloom::<str>::open_or_create(&server, name, shape, hasher, &options);
        opened.await.map(|(filter, _)| filter)
    };
    let evictable = Hazard::Evictable { policy: "allkeys-lru".into() };
    // A refused filter is deleted.
    assert_eq!(create(Policy::Refuse).await.err(), Some(Error::Hazard(evictable.clone())));
    assert_eq!(node.call(&["DBSIZE"]), redis::Value::Int(0));
    let warned = create(Policy::Warn).await.unwrap();
    assert_eq!(warned.hazards(), std::slice::from_ref(&evictable));
    assert_eq!(create(Policy::Refuse).await.err(), Some(Error::Hazard(evictable)));
    node.call(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    assert_eq!(create(Policy::Refuse).await.unwrap().hazards(), []);
    node.call(&["PEXPIRE", "a", "1000000"]);
    let hazards = create(Policy::Warn).await.unwrap().hazards().to_vec();
    assert!(
        matches!(hazards[..], [Hazard::Expires { .. }, Hazard::Evictable { .. }]),
        "{hazards:?}"
    );
    assert!(create(Policy::Refuse).await.is_err());
}

#[tokio::test]
async fn only_a_filter_is_taken_away() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let server = node.server().await;
    let shape = Shape::for_rate(1_000, 0.01).unwrap();
    let filter =
        SharedBloom::<str>::create(&server, "a", shape, Portable::default(), &in_shards(3))
            .await
            .unwrap();
    let keys: HashSet<String> = filter.keys().map(str::to_owned).collect();
    assert_eq!(keys.len(), 3);
    let found = Found::find(&server, "a").await.unwrap();
    assert!(found.is_ready() && found.shards() == 3 && found.generation() == 1);
    // One of its keys belongs to another program by then.
    let [mine, ..] = &filter.keys().skip(1).collect::<Vec<_>>()[..] else { unreachable!() };
    node.call(&["SET", mine, "precious"]);
    found.delete(&server).await.unwrap();
    let left: HashSet<String> = redis::from_redis_value(node.call(&["KEYS", "*"])).unwrap();
    assert_eq!(left, HashSet::from([(*mine).to_owned()]));
}

/// While other clients write, keys that were not found are read again. The counters of the server show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn absent_keys_are_absent_while_others_write() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let shape = Shape::for_rate(5_000_000, 0.01).unwrap();
    let open = async || {
        let (server, options) = (node.server().await, Options::default());
        let (hasher, name) = (Portable::default(), "f");
        let opened = SharedBloom::<u64>::open_or_create(&server, name, shape, hasher, &options);
        let (filter, _) = opened.await.unwrap();
        filter.complete().await.unwrap();
        filter
    };
    let calls = |name: &str| -> u64 {
        let line = node.info("commandstats", &format!("cmdstat_{name}"));
        let calls = line.split(',').next().and_then(|part| part.strip_prefix("calls="));
        calls.and_then(|calls| calls.parse().ok()).unwrap_or(0)
    };
    let writers: Vec<_> = [open().await, open().await]
        .into_iter()
        .zip([1_u64, 2])
        .map(|(filter, seed)| {
            tokio::spawn(async move {
                for number in 0.. {
                    filter.insert(&(seed << 40 | number)).await.unwrap();
                }
            })
        })
        .collect();
    let filter = open().await;
    let absent: Vec<u64> = (0..4_000).collect();
    for _ in 0..5_000 {
        let answers = filter.contains_batch(&absent).await;
        assert!(answers.iter().all(|answer| !answer.is_unknown()));
        assert!(answers.iter().filter(|answer| answer.is_absent()).count() > 3_900);
        // A transaction without WATCH is a repeated read.
        if calls("exec") > calls("watch") + 5 {
            break;
        }
    }
    for writer in writers {
        writer.abort();
    }
    assert!(calls("exec") > calls("watch"), "nobody ever came between");
}

#[tokio::test]
async fn a_user_with_a_password_and_few_rights_is_enough() {
    let Some(node) = Node::start(Engine::Redis, &[]) else { return };
    let rights = [
        "ACL",
        "SETUSER",
        "filters",
        "on",
        ">secret word",
        "~seen*",
        "+getrange",
        "+strlen",
        "+setrange",
        "+bitfield",
        "+bitfield_ro",
        "+eval",
        "+evalsha",
        "+unlink",
        "+pttl",
        "+type",
        "+watch",
        "+multi",
        "+exec",
        "+info",
    ];
    node.call(&rights);
    let url = |word: &str| format!("redis://filters:{word}@127.0.0.1:{}/0", node.port);
    let server = umbel_redis::Server::connect(&url("secret%20word")).await.unwrap();
    let shape = Shape::for_rate(1_000, 0.01).unwrap();
    let create = async |name| {
        created::<str, _>(&server, name, shape, Portable::default(), &in_shards(2)).await
    };
    let filter = create("seen").await.unwrap();
    assert_eq!(filter.insert("a").await, Ok(Answer::Absent));
    assert_eq!(filter.contains_batch(&["a", "b"]).await, [Answer::Maybe, Answer::Absent]);
    assert_eq!(create("other").await.err(), Some(Error::Unknown(Reason::NotPermitted)));
    let wrong = umbel_redis::Server::connect(&url("guessed")).await;
    assert_eq!(wrong.err(), Some(Error::Unknown(Reason::NotPermitted)));
    // Permissions that are removed while the filter is open.
    node.call(&["ACL", "SETUSER", "filters", "-info"]);
    assert_eq!(filter.contains("b").await, Answer::Unknown(Reason::NotPermitted));
    node.call(&["ACL", "SETUSER", "filters", "+info", "-getrange"]);
    assert_eq!(filter.contains("b").await, Answer::Unknown(Reason::NotPermitted));
}

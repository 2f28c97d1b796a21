//! Three masters with a replica each: spreading, failing over, moving.

use crate::chaos::{Model, Place};
use crate::servers::{Cluster, Engine, in_step};
use crate::shared::created;
use std::sync::Arc;
use umbel::Portable;
use umbel::blocked::Shape;
use umbel_redis::{
    Answer, Error, GoZeroBloom, Options, Policy, Reason, RedissonBloom, SharedBloom,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_spreads_evenly_and_survives_the_loss_of_a_master() {
    let Some(mut cluster) = Cluster::start(Engine::Redis) else { return };
    let server = cluster.server().await;
    let (count, options) = (1_000_000, Options::default());
    let shape = Shape::for_rate(count, 0.01).unwrap();
    let filter =
        created::<u64, _>(&server, "f", shape, Portable::default(), &options).await.unwrap();
    assert_eq!(filter.shards(), 12);
    let keys: Vec<u64> = (0..count).collect();
    for keys in keys.chunks(20_000) {
        filter.insert_batch(keys).await.unwrap();
    }

    // Each master holds its third of the bits, within 5 %.
    let held: Vec<u64> = cluster
        .masters
        .iter()
        .map(|node| {
            let names: Vec<String> = redis::from_redis_value(node.call(&["KEYS", "*"])).unwrap();
            let ones = |name: &String| {
                redis::from_redis_value::<u64>(node.call(&["BITCOUNT", name, "128", "-1"])).unwrap()
            };
            names.iter().map(ones).sum()
        })
        .collect();
    let third = held.iter().sum::<u64>() as f64 / 3.0;
    assert!(held.iter().all(|ones| (*ones as f64 / third - 1.0).abs() < 0.05), "{held:?}");
    let local = filter.download().await.unwrap();
    assert_eq!(local.count_ones(), held.iter().sum::<u64>());
    assert!(keys.iter().step_by(997).all(|key| local.contains(key)));

    // A master is killed, and with it the writes that its replica has not received.
    in_step(&cluster.masters[0], &cluster.replicas[0]);
    cluster.replicas[0].signal("STOP");
    let late: Vec<u64> = (2 * count..2 * count + 3_000).collect();
    filter.insert_batch(&late).await.unwrap();
    cluster.masters[0].kill();
    cluster.replicas[0].signal("CONT");
    cluster.replicas[0].until("replication", "role", "master");
    for node in cluster.masters[1..].iter().chain(&cluster.replicas) {
        node.until_cluster("cluster_state", "ok");
    }
    // A third of the keys is unknown, and two thirds are known as before. No acknowledged key is absent.
    let mut history = 0;
    for (number, answer) in filter.contains_batch(&late).await.into_iter().enumerate() {
        match answer {
            Answer::Maybe => {}
            Answer::Unknown(Reason::History) => history += 1,
            other => panic!("{number}: {other:?}"),
        }
    }
    assert!((850..1_150).contains(&history), "{history}");
    let open = SharedBloom::<u64>::open(&server, "f", Portable::default(), &options).await.unwrap();
    assert!(open.contains_batch(&late).await.iter().all(|answer| !answer.is_absent()));
    assert_eq!(open.check().await, Err(Reason::History));
    // A caller inserts possibly lost keys again, and marks the filter as complete.
    let refused = open.insert_batch(&late).await;
    assert_eq!(refused, Err(Error::Unknown(Reason::History)));
    open.adopt().await.unwrap();
    open.insert_batch(&late).await.unwrap();
    open.complete().await.unwrap();
    for filter in [&filter, &open] {
        assert_eq!(filter.contains_batch(&late).await, vec![Answer::Maybe; late.len()]);
        let absent: Vec<u64> = (9 * count..9 * count + 1_000).collect();
        let known = filter.contains_batch(&absent).await;
        assert!(known.iter().filter(|answer| answer.is_absent()).count() > 950);
    }
    slot_that_moves(&cluster, &filter, &late).await;
    one_key(&cluster).await;
}

/// The same under load, with a model of the acknowledged keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_absent_while_masters_die() {
    let Some(mut cluster) = Cluster::start(Engine::Valkey) else { return };
    let (server, options) = (cluster.server().await, Options::default());
    let shape = Shape::for_rate(200_000, 0.001).unwrap();
    created::<u64, _>(&server, "f", shape, Portable::default(), &options).await.unwrap();
    let place = Place { urls: cluster.urls(), cluster: true };
    let model = Arc::new(Model::default());
    let clients: Vec<_> = (0..2)
        .map(|seed| tokio::spawn(model.clone().client(place.clone(), seed * 1_000_000)))
        .collect();
    for dies in 0..2 {
        model.work().await;
        let (master, replica) = (&mut cluster.masters[dies], &cluster.replicas[dies]);
        in_step(master, replica);
        replica.signal("STOP");
        model.work().await;
        master.kill();
        replica.signal("CONT");
        replica.until("replication", "role", "master");
        for node in cluster.masters[dies + 1..].iter().chain(&cluster.replicas) {
            node.until_cluster("cluster_state", "ok");
        }
        model.notice().await;
        model.repair(&place).await;
        // Two of three masters have to agree when the next one dies.
        cluster.masters[dies].restart();
        cluster.masters[dies].until("replication", "master_link_status", "up");
    }
    model.work().await;
    model.end(clients, &place).await;
}

/// A shard moves to another master. Its bits are the same, but that server has another history.
async fn slot_that_moves(cluster: &Cluster, filter: &SharedBloom<u64>, keys: &[u64]) {
    let (from, to) = (&cluster.masters[1], &cluster.masters[2]);
    let names: Vec<String> = redis::from_redis_value(from.call(&["KEYS", "f:*"])).unwrap();
    let name = &names[0];
    let slot: u64 = redis::from_redis_value(from.call(&["CLUSTER", "KEYSLOT", name])).unwrap();
    let slot = slot.to_string();
    let id = |node: &crate::servers::Node| -> String {
        redis::from_redis_value(node.call(&["CLUSTER", "MYID"])).unwrap()
    };
    let (from_id, to_id) = (id(from), id(to));
    to.call(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    from.call(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    // Half-way: the key is still here. Then it is there, and reads need ASKING.
    assert!(filter.contains_batch(keys).await.iter().all(|answer| *answer == Answer::Maybe));
    from.call(&["MIGRATE", "127.0.0.1", &to.port.to_string(), name, "0", "5000"]);
    assert!(filter.contains_batch(keys).await.iter().all(|answer| !answer.is_absent()));
    for node in [to, from] {
        node.call(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    }
    let answers = filter.contains_batch(keys).await;
    assert!(answers.iter().all(|answer| !answer.is_absent()));
    assert!(answers.contains(&Answer::Unknown(Reason::History)), "{:?}", &answers[..20]);
    // An insert away from home is an error and writes nothing: the slot may move back, to a copy without the
    // key.
    let before = to.call(&["GET", name]);
    let news: Vec<u64> = (50_000_000..50_000_500).collect();
    assert_eq!(filter.insert_batch(&news).await, Err(Error::Unknown(Reason::History)));
    assert_eq!(to.call(&["GET", name]), before);
    filter.adopt().await.unwrap();
    let answers = filter.contains_batch(keys).await;
    let incomplete = Answer::Unknown(Reason::Incomplete);
    assert!(answers.iter().all(|answer| [Answer::Maybe, incomplete].contains(answer)));
    assert!(answers.contains(&incomplete));
    filter.insert_batch(&news).await.unwrap();
    filter.complete().await.unwrap();
    assert_eq!(filter.contains_batch(keys).await, vec![Answer::Maybe; keys.len()]);
    assert_eq!(filter.contains_batch(&news).await, vec![Answer::Maybe; news.len()]);
}

/// Filters of one key also work in a cluster.
async fn one_key(cluster: &Cluster) {
    let server = cluster.server().await;
    let go = GoZeroBloom::create(&server, "go", 100_000, Policy::Warn).await.unwrap();
    go.complete().await.unwrap();
    assert_eq!(go.insert(b"a").await, Ok(Answer::Absent));
    assert_eq!(go.contains_batch(&[&b"a"[..], b"b"]).await, [Answer::Maybe, Answer::Absent]);
    let java = RedissonBloom::create(&server, "java", 1_000, 0.01, Policy::Warn).await.unwrap();
    java.complete().await.unwrap();
    assert_eq!(java.insert(b"a").await, Ok(Answer::Absent));
    assert_eq!(java.contains_batch(&[&b"a"[..], b"b"]).await, [Answer::Maybe, Answer::Absent]);
}

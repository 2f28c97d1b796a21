//! The module in real engines: Redis 6.2, 7.0 and 8.0, Valkey 8.1 and 9. `crates/umbel-module/engines` installs them.

mod client; // a minimal client
mod server; // engines, started and stopped

mod crc64; // the checksum of DUMP payloads
mod data; // filters of every type with their items

mod clients; // umbel-redis
mod cluster; // keys in slots, filters that move between nodes
mod conversations; // 24,000 commands with the replies of RedisBloom
mod described; // the output of COMMAND DOCS and MODULE LIST
mod errors; // the exact text of every error
mod golden; // files, payloads and chunks of RedisBloom
mod hostile; // damaged payloads, then every command
mod laws; // the laws of umbel-laws, through an engine
mod memory; // memory of keys, and refusals when none is left
mod persistence; // RDB, AOF, RESTORE, COPY, DEBUG DIGEST
mod replication; // replicas, failover, events
mod replies; // every command and reply in RESP2 and RESP3, by redis-py
mod sketches; // count-min, top-k and t-digest keys, kept
mod streams; // commands that older primaries accepted, from a stream and from an AOF
mod surface; // flags, key specs, categories, settings
mod traffic; // random traffic against an exact model

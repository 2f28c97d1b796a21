//! The module in real engines: Redis 6.2, 7.0 and 8.0, Valkey 8.1 and 9. `crates/umbel-module/engines` installs them.

mod client; // forty lines of protocol
mod server; // engines, started and stopped

mod crc64; // the checksum of DUMP payloads
mod data; // filters of every type, filled, and what must be found in them

mod clients; // umbel-redis
mod cluster; // keys in slots, filters that move between nodes
mod conversations; // 24,000 commands that RedisBloom answered, answered again
mod described; // what COMMAND DOCS and MODULE LIST say
mod errors; // every error, word for word
mod golden; // files, payloads and chunks of RedisBloom
mod hostile; // damaged payloads, then every command
mod laws; // the law-book, through an engine
mod memory; // what keys take, and what happens when there is none left
mod persistence; // RDB, AOF, RESTORE, COPY, DEBUG DIGEST
mod replication; // replicas, failover, events
mod replies; // every command and reply in RESP2 and RESP3, by redis-py
mod sketches; // count-min, top-k and t-digest keys, carried
mod streams; // what older primaries accepted, from a stream and from an AOF
mod surface; // flags, key specs, categories, settings
mod traffic; // anything in any order, beside an exact model

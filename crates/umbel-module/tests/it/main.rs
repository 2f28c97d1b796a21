//! The module in real engines: Redis 6.2, Redis 7.0 and Valkey 9. `crates/umbel-module/engines` installs them.

mod client; // forty lines of protocol
mod server; // engines, started and stopped

mod crc64; // the checksum of DUMP payloads
mod data; // filters of every type, filled, and what must be found in them

mod clients; // umbel-redis
mod cluster; // keys in slots, filters that move between nodes
mod errors; // every error, word for word
mod hostile; // damaged payloads, then every command
mod laws; // the law-book, through an engine
mod memory; // what keys take, and what happens when there is none left
mod persistence; // RDB, AOF, RESTORE, COPY, DEBUG DIGEST
mod replication; // replicas, failover, events
mod replies; // every command and reply in RESP2 and RESP3, by redis-py
mod surface; // flags, key specs, categories, settings
mod traffic; // anything in any order, beside an exact model

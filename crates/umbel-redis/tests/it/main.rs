//! All tests that need a server, real or simulated, in one program.

mod chaos; // faults while clients insert and look up keys, with a model
mod cluster; // three masters with replicas
mod fake; // malformed replies
mod foreign; // go-zero, Redisson, and the blocking interface
mod laws; // the laws of `umbel-laws` over a network
mod lost; // every kind of loss
mod made; // creating, opening, completing
mod module; // BF.* and CF.*
mod reader; // a reader written from the documentation
mod servers; // real servers, started and killed
mod shared; // SharedBloom on a healthy server

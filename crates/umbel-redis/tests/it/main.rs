//! Everything that needs a server, real or not, in one program.

mod chaos; // faults while clients insert and ask, with a model beside
mod cluster; // three masters with replicas
mod fake; // replies that are none
mod foreign; // go-zero, Redisson, and the face that waits
mod laws; // the law-book behind a network
mod lost; // whatever can be lost
mod made; // created, opened, completed
mod module; // BF.* and CF.*
mod reader; // what is stored, read from its documentation
mod servers; // real ones, started and killed
mod shared; // SharedBloom on a server that behaves

//! What the real programs wrote and answered, and what happens to bytes that they did not write.

mod blooms;

mod redis;
mod samples;
mod statics;

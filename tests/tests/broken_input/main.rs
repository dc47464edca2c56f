//! Everything a peer, an operator or a disk may do wrong, against the real processes. After each attack the servers live, hold
//! bounded memory, have not flooded their logs, and serve a well-behaved client.

mod bodies;
mod crowds;
mod damaged_files;
mod fields;
mod frames;
mod full_disk;
mod names;
mod registrations;
mod rig;
mod slow_readers;
mod stops;
mod wrong_starts;

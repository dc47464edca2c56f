//! Everything a peer, an operator or a disk may do wrong, against the real processes. After each attack the servers live, hold
//! bounded memory, have not flooded their logs, and serve a well-behaved client.

mod bodies;
mod compaction;
mod crowds;
mod damaged_files;
mod deleted_names;
mod fields;
mod frames;
mod full_disk;
mod full_disk_kinds;
mod inner_batches;
mod light_queues;
mod names;
mod queue_kinds;
mod registrations;
mod rig;
mod slow_readers;
mod stops;
mod store_tools;
mod wrong_starts;

//! The name server as an operator meets it: brokers that die, servers that are restarted, certificates that are renewed, peers that
//! mean no good, and its own start, stop and files. Real processes throughout.

mod certificates;
mod crowd;
mod deaths;
mod process;
mod restarts;
mod rig;

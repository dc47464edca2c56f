//! The JSON bodies of requests and answers, and the tables kept in files, under Java's names.
//!
//! They are read with [`crate::json::from_slice`] and written with the writers beside it. Every field may be absent:
//! then it has the value a new Java object has. Tables are sorted, so what is written does not depend on chance.

/// Declares bodies: structs whose JSON names are their field names in Java's spelling, each field with the default
/// given or its type's own.
macro_rules! bodies {
    ($($(#[$meta:meta])* pub struct $name:ident {
        $($(#[$fmeta:meta])* $field:ident : $ty:ty $(= $default:expr)?),* $(,)?
    })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        pub struct $name {
            $($(#[$fmeta])* pub $field: $ty,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: bodies!(@default $ty $(, $default)?),)* }
            }
        }
    )*};
    (@default $ty:ty, $default:expr) => { $default };
    (@default $ty:ty) => { <$ty>::default() };
}

mod admin;
mod assignment;
mod auth;
mod connection;
mod controller;
mod data_version;
mod group;
mod heartbeat;
mod lock;
mod message_queue;
mod offset;
mod pop;
mod register;
mod route;
mod static_topic;
mod stats;
mod topic;

pub use admin::*;
pub use assignment::*;
pub use auth::*;
pub use connection::*;
pub use controller::*;
pub use data_version::DataVersion;
pub use group::*;
pub use heartbeat::*;
pub use lock::*;
pub use message_queue::MessageQueue;
pub use offset::*;
pub use pop::*;
pub use register::*;
pub use route::*;
pub use static_topic::*;
pub use stats::*;
pub use topic::*;

//! The name server: where brokers say who they are and which topics they serve, and where clients ask for it.

pub mod route_table;

//! Whole servers, real processes, real clients.

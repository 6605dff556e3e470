//! A tiny jar, built and damaged.

// Package rawlimit measures the same work without a product, as the limit of what a
// product could reach on the machine: a raw SMTP sender to the same sink, a bare HTTP
// handler, raw publishing to NATS, and raw inserts into SQLite.
//
// Each limit runs in a process of its own and in the same run as the experiment that
// it belongs to.
package rawlimit

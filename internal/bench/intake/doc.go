// Package intake holds the experiments about what clients send to the API:
// subscribers, subscriptions and events, one by one and in bulk. It also measures a
// server that has nothing to do.
//
// The limit of a request is a bare HTTP handler, and the limit of a row is a raw
// insert, both measured in the same run. Package bench lists and calls the
// experiments.
package intake

// Package delivertest is what every driver has to pass: the contract of
// driver.Driver and driver.Queue as tests, run against each way out and a real
// peer of its kind.
package delivertest

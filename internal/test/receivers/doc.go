// Package receivers has the receivers of webhooks that the documents show, and
// that use the official libraries of Standard Webhooks for Python and
// JavaScript, verify what the built program sends.
package receivers

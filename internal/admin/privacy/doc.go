// Package privacy erases people and exports their data, as data protection laws such as the GDPR require.
//
// State. Eraser contains the waiting erasures. The registry stores them, so that they survive a stop.
//
// Failure. Each step of an erasure is repeated until it succeeds. The API calls the package.
package privacy

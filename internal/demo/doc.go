// Package demo makes what the demonstration needs and the real world would bring:
// people with wishes. It keeps nothing and does no I/O; the same seed gives the
// same people.
package demo

// Package rendering holds the experiments that format messages and digests without
// sending them, with one thread in a process of its own. The limit is the template
// engine alone, with all values at hand. Package bench lists and calls them.
package rendering

// Package filetype finds out the type of a file in a mail by its name and its bytes, and
// refuses programs and files that are not what they claim to be. The catalog and the intake of
// messages call it.
//
// State: none. The result depends on the arguments alone, not on tables of the machine.
//
// Failure: errors are *fanfare.Error with the code Invalid. The message begins with the name of
// the file; the caller adds the pointer.
package filetype

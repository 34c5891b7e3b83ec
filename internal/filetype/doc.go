// Package filetype says of what type a file is that goes with a mail, by its name and
// by its bytes, and refuses those that should not go: programs, and files that are not
// what they say.
//
// State: none. What a file is follows from what is given alone, and from no table of
// the machine.
//
// Failure: errors are *fanfare.Error with the code Invalid, whose message begins with
// the name of the file; the caller says where it stands.
package filetype

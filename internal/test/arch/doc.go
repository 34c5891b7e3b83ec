// Package arch holds the rules that a compiler does not know, as tests:
// who may import whom and why, how large a file may be, what a log, a comment
// or a test may not contain. It has no code of its own and reads the sources as
// text and syntax, so that it also sees files behind build tags.
//
// A failure names the file and the line, the rule, the reason for it and what
// to do. Where a rule is wrong, change its table here, with the reason, in the
// same commit as the code that needs it.
package arch

// Package arch tests the architecture rules that the compiler does not check: allowed imports and their reasons, file
// sizes, and the content of logs, comments and tests. It has no code of its own and reads the sources as text and syntax,
// so that it also covers files behind build tags.
//
// A failure names the file and line, the rule, the reason for the rule and the fix. If a rule is wrong, change its table
// here, with the reason, in the commit that needs the change.
package arch

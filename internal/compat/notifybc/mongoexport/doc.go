// Package mongoexport reads the files that mongoexport writes: one document on each line, or a JSON array of documents, in MongoDB's
// Extended JSON.
//
// [Document] converts the types of Extended JSON, versions 1 and 2, canonical and relaxed, to plain JSON as the NotifyBC API returns it:
// an ObjectId becomes its hexadecimal digits, a date the text in UTC with milliseconds, a number a number. The id of the document (_id)
// becomes id, and the version that mongoose adds (__v) is left out.
//
// # State and failure
//
// A [Reader] holds one document at a time, of at most 16 MB, MongoDB's own limit. After an error in one document it continues with the
// next line of a file with lines, and ends in an array.
package mongoexport

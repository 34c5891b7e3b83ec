// Package files keeps the files that clients of GOV.UK Notify send by link: a message has a link
// to a download page in place of the file. The API of Notify stores files here, and its listener
// serves the pages.
//
// State. A file is stored encrypted in the database until it expires. The key is in the link only,
// so that neither the database nor a backup of it reveals a file. Counters of wrong addresses are
// in memory.
//
// Failure. An error about a file is a *fanfare.Error with the code Invalid and a message in the
// words of Notify. A link that is wrong, expired or erased leads to a page that says so.
package files

// Package searchfilter makes for each message a small filter that says which texts the message cannot contain, so that a search reads only the other
// messages. The indexer of package mailbox stores the filters, and the searches of IMAP and JMAP ask them.
//
// A filter is a Bloom filter of all runs of three and of five characters in the texts of a message. The characters are folded more than any search folds
// them: without case, without compatibility forms, without marks, and with white space as one space. Texts that are equal for a search are therefore equal
// for the filter, and a text that is a part of another is a part of it after the fold, too. A filter can say that a message may contain a text which it does
// not contain, never the reverse: the search reads the message and decides.
//
// State. A Builder has the runs of one message. Filters and patterns do not change.
//
// Failure. There is none. A message with too many runs gets a filter that excludes nothing, and so does a pattern that is too short.
package searchfilter

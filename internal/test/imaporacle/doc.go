// Package imaporacle compares the IMAP server with Dovecot, as Debian ships it. Random scripts of IMAP4rev1 commands with fixed seeds are
// sent to both servers, over two connections of one account each.
//
// After each command, NOOP is sent on the connection of the command and then on the other one. It is a barrier: both clients know the
// same state before the next command. The responses to a command and to the NOOP after it are an observation: a set of fields, such as the
// flags of one message or one data item of STATUS. Fields in which the observations differ must be explained by a rule. A rule names the
// sentence of an RFC that permits both answers, or that Dovecot breaks. The parser of responses shares no code with the server.
//
// If only one client knows the flags or the ModSeq of a message, because only its server has sent them, the other client asks for them, so that
// the states are compared after each command. If the results of SEARCH differ, Dovecot is asked for each search key alone.
//
// An observation leaves out what the RFCs do not fix:
//
//   - numbers: UIDVALIDITY (RFC 3501, section 2.3.1.1), and ModSeqs except for their order in each message
//   - the order of untagged responses, flags and attributes, and which of the responses until the barrier has the news (RFC 3501, section 5.2)
//   - whether a string is quoted or a literal (RFC 3501, section 4.3)
//   - the case of INBOX (RFC 3501, section 5.1), of system flags (RFC 3501, section 9), of types and names of parameters in MIME (RFC 2045,
//     section 5.1), and of encodings (RFC 2045, section 6.1)
//   - the time zone of INTERNALDATE
//   - the text of status responses, and whether a connection that ends with BYE answers the command before it
//
// The tests have the build tag peers, because they need Dovecot and root. A script with an unexplained difference is shortened before
// it is reported. FANFARE_IMAP_SCRIPTS sets the number of scripts and FANFARE_IMAP_SEED the first seed; `make imap-oracle` runs 10,000.
package imaporacle
